import { expect, test } from 'vitest';
import { ModelApiServer } from '../../test/sim/model/kube.ts';
import { ApiError, noAnswer } from './errors.ts';
import { EventRecorder, type EventText } from './events.ts';
import type { Resource } from './object.ts';
import { events } from './resources.ts';

const things: Resource = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' };
const thing = { metadata: { name: 'a', namespace: 'n', uid: 'u' } };
const said: EventText = { type: 'Warning', reason: 'QuorumLost', note: 'one of three answers' };

const slow = noAnswer('POST', 'Timeout', 'too slow');
const busy = new ApiError('POST', 429, { message: 'too many' });
const broken = new ApiError('POST', 503, { message: 'away' });
const refused = new ApiError('POST', 403, { message: 'the namespace is being deleted' });
const notLeading = noAnswer('POST', 'NotLeading', 'somebody else leads');

/** A recorder on a server that answers its first writes with these errors, before it carries them out or `after`. */
function aRecorder(faults: readonly Error[], after = false) {
  const server = new ModelApiServer();
  const errors: unknown[] = [];
  const slept: number[] = [];
  let asked = 0;
  const create: ModelApiServer['create'] = async (resource, object) => {
    const fault = faults[asked++];
    if (fault && !after) throw fault;
    const made = await server.create(resource, object);
    if (fault) throw fault;
    return made;
  };
  const recorder = new EventRecorder({
    client: new Proxy(server, { get: (to, key) => (key === 'create' ? create : Reflect.get(to, key, to)) }),
    controller: 'c',
    instance: 'i',
    now: () => 1_000,
    sleep: (ms, { aborted }) => {
      slept.push(aborted ? 0 : ms);
      return Promise.resolve();
    },
    onError: (error) => errors.push(error),
  });
  /** Once all is written or given up. */
  const told = async (): Promise<readonly unknown[]> => {
    await new Promise((resolve) => setImmediate(resolve));
    return server.peek(events).map(({ note }) => note);
  };
  return { recorder, errors, slept, told };
}

test.each([
  ['did not answer', [slow, slow], [500, 2_000]],
  ['had too much to do', [busy], [500]],
  ['was away', [broken, broken, broken, broken], [500, 2_000, 5_000, 10_000]],
])('what a server that %s did not take is told again', async (_what, faults, pauses) => {
  const { recorder, errors, slept, told } = aRecorder(faults);
  recorder.record(things, thing, said);
  expect(await told()).toEqual([said.note]);
  expect(slept).toEqual(pauses);
  expect(errors).toEqual([]);
});

test('what was carried out and not answered is there once', async () => {
  const { recorder, errors, told } = aRecorder([slow], true);
  recorder.record(things, thing, said);
  expect(await told()).toEqual([said.note]);
  expect(errors).toEqual([]);
});

test.each([
  ['is refused', [refused]],
  ['is not ours to tell any more', [notLeading]],
  ['nobody hears for long', [broken, broken, broken, broken, broken]],
])('what %s is given up, and the next is told', async (_what, faults) => {
  const { recorder, errors, told } = aRecorder(faults);
  recorder.record(things, thing, said);
  recorder.record(things, thing, { ...said, note: 'two of three answer' });
  expect(await told()).toEqual(['two of three answer']);
  expect(errors).toEqual([faults[0]]);
});

test('at the end nobody waits between two attempts', async () => {
  const { recorder, slept, told } = aRecorder([slow, slow]);
  recorder.record(things, thing, said);
  await recorder.flush();
  expect(await told()).toEqual([said.note]);
  expect(slept).toEqual([0, 0]);
});
