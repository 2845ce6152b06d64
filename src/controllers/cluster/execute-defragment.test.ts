/** A request for a defragmentation outlives the reconcile that has sent it. */
import { expect, test } from 'vitest';
import type { Ask } from '../../etcd/client.ts';
import type { Result } from '../../etcd/errors.ts';
import type { DefragmentCall } from './calls.ts';
import { DefragmentRequests } from './execute-defragment.ts';

const call: DefragmentCall = {
  is: 'defragment',
  name: 'defragment',
  target: 'db-2',
  cluster: 'ns/db',
  clusterID: 'beef',
  hosts: {},
  endpoint: 'http://10.0.0.2:2379',
  request: 'first',
  timeoutMs: 900_000,
};

/** A member that answers when the test says so. */
function aMember() {
  const asked: Ask[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<Result<void>>();
  const defragment = (ask: Ask): Promise<Result<void>> => {
    asked.push(ask);
    return promise;
  };
  return { defragment, asked, resolve, reject };
}
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('it waits for minutes, and no reconcile aborts it', () => {
  const member = aMember();
  const requests = new DefragmentRequests();
  requests.send(member, call);
  expect(member.asked).toMatchObject([{ endpoint: call.endpoint, timeoutMs: 900_000, access: { clusterId: 0xbeefn } }]);
  expect(member.asked[0]?.signal).toBeUndefined();
  expect(requests.responseTo('ns/db', 'first')).toEqual({ is: 'awaited' });
});

test.each<[string, (member: ReturnType<typeof aMember>) => void, object]>([
  ['its success', ({ resolve }) => resolve({ ok: true, value: undefined }), { is: 'succeeded' }],
  [
    'the error of etcd',
    ({ resolve }) => resolve({ ok: false, error: { kind: 'other', message: 'no space left on device' } }),
    { is: 'failed', message: 'no space left on device' },
  ],
  ['a fault of the client', ({ reject }) => reject(new Error('broken')), { is: 'failed', message: 'Error: broken' }],
])('%s is the response to this request, and to no other', async (_name, answer, response) => {
  const member = aMember();
  const requests = new DefragmentRequests();
  requests.send(member, call);
  answer(member);
  await settled();
  expect(requests.responseTo('ns/db', 'first')).toEqual(response);
  expect(requests.responseTo('ns/db', 'second')).toBeUndefined();
  expect(requests.responseTo('ns/other', 'first')).toBeUndefined();
  requests.forget('ns/db');
  expect(requests.responseTo('ns/db', 'first')).toBeUndefined();
});

test('a late response to an earlier request is not taken for that of the present one', async () => {
  const [early, late] = [aMember(), aMember()];
  const requests = new DefragmentRequests();
  requests.send(early, call);
  requests.send(late, { ...call, request: 'second' });
  early.resolve({ ok: true, value: undefined });
  await settled();
  expect(requests.responseTo('ns/db', 'second')).toEqual({ is: 'awaited' });
});
