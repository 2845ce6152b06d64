import { expect, test } from 'vitest';
import { ModelApiServer, refused } from '../../test/sim/model/kube.ts';
import { ApiError, isConflict } from '../kube/errors.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import { type ExecuteOptions, execute, type Outcome, TargetGone, type Write } from './execute.ts';
import { type NamedCall, type ObjectRef, type Plan, RetryLater, refTo, type Step } from './plan.ts';

type Status = { readonly told?: string; readonly token?: string };
type Thing = KubeObject & { readonly status?: Status };
const things: Resource<Thing> = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' };
const parts: Resource = { group: '', version: 'v1', plural: 'parts', kind: 'Part' };
const signal = new AbortController().signal;

const aPart = (name: string) => ({ apiVersion: 'v1', kind: 'Part', metadata: { name, namespace: 'n' } });
const ref = (name: string) => ({ namespace: 'n', name });
const create = (name: string): Step => ({ do: 'create', object: aPart(name) });

const AWAY = 'Internal error occurred: failed calling webhook "webhook.example.com": connection refused';

/** A Thing on a model of the API server. Parts called "bad" are refused by policy. */
async function aWorld(onPart: (server: ModelApiServer, name: string) => void = () => {}) {
  const server: ModelApiServer = new ModelApiServer({
    admit: (resource, object) => {
      if (resource.kind === 'Part') onPart(server, object.metadata.name ?? '');
      if (object.metadata.name === 'bad') throw refused('the quota is used up');
      if (object.metadata.name === 'unasked') throw new ApiError('POST', 500, { message: AWAY });
      return object;
    },
  });
  const thing = await server.create(things, { metadata: { name: 'a', namespace: 'n' } });
  const told: string[] = [];
  const writes: Write[] = [];
  const carryOut = (
    more: Partial<Plan<Status, NamedCall>>,
    call?: ExecuteOptions<NamedCall>['call'],
    of = thing,
  ): Promise<Outcome> =>
    execute(
      { rule: 'r', message: 'because', steps: [], status: {}, events: [], ...more },
      of,
      things,
      {
        client: server,
        recorder: { record: (_resource, _object, { note }) => void told.push(note) },
        resources: new Map<string, Resource>([
          ['Thing', things],
          ['Part', parts],
        ]),
        onWrite: (write) => void writes.push(write),
        mayWait: () => false,
        needsVersion: (changes) => 'token' in changes,
        ...(call && { call }),
      },
      signal,
    );
  const status = async (): Promise<Status | undefined> => (await server.get(things, ref('a')))?.status;
  const names = (): readonly (string | undefined)[] => server.peek(parts).map((p) => p.metadata.name);
  return { server, thing, carryOut, told, writes, status, names };
}

/** Another object that has the name of one that was looked at. */
async function replaced(server: ModelApiServer): Promise<ObjectRef> {
  const old = await server.create(parts, aPart('part'));
  const before = refTo('Part', { ...old, metadata: { ...old.metadata, name: 'part' } });
  await server.delete(parts, ref('part'), { uid: before.uid });
  await server.create(parts, aPart('part'));
  return before;
}

/** An object that has changed since it was looked at. */
async function changed(server: ModelApiServer): Promise<ObjectRef> {
  const before = refTo('Part', await server.create(parts, aPart('part')), { resourceVersion: true });
  await server.patch(parts, ref('part'), { metadata: { labels: { by: 'somebody' } } });
  return before;
}

const refusal = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(() => 'nothing was refused').catch((e: unknown) => e);

test('what is to be recorded is durable before the first step', async () => {
  const found: unknown[] = [];
  const { carryOut } = await aWorld((server) => found.push(server.peek(things)[0]?.status));
  await carryOut({ latch: { token: 't' }, status: { token: 't', told: 'x' }, steps: [create('part')] });
  expect(found).toEqual([{ token: 't', told: 'x' }]);
});

test('what is told of a status that was recorded is not lost with a step that fails', async () => {
  const { carryOut, server, told } = await aWorld();
  await server.create(parts, aPart('old'));
  const notices = [{ type: 'Normal', reason: 'Valid', note: 'all is well' }] as const;
  const failing = carryOut({ latch: { token: 't' }, status: { told: 'x' }, events: notices, steps: [create('old')] });
  expect(await refusal(failing)).toSatisfy(isConflict);
  expect(told).toEqual(['all is well']);
});

test('a record that cannot be made keeps everything from being done', async () => {
  const { carryOut, server, names } = await aWorld();
  await server.patch(things, ref('a'), { metadata: { labels: { by: 'somebody' } } });
  expect(await refusal(carryOut({ latch: { token: 't' }, steps: [create('part')] }))).toSatisfy(isConflict);
  expect(names()).toEqual([]);
});

test.each<[string, Step]>([
  ['refused by policy', create('bad')],
  ['failed', create('old')],
])('after a step that is %s, no other is taken', async (_how, step) => {
  const { carryOut, names, server } = await aWorld();
  await server.create(parts, aPart('old'));
  expect(await refusal(carryOut({ steps: [step, create('next')] }))).toBeInstanceOf(Error);
  expect(names()).toEqual(['old']);
});

test('after a call that is refused for now, no other step is taken, and the status is told', async () => {
  const { carryOut, names, status } = await aWorld();
  const asked: NamedCall[] = [];
  const step: Step<NamedCall> = { do: 'call', call: { name: 'promote', target: 'x' }, retryMs: 7 };
  const outcome = await carryOut({ steps: [step, create('next')], status: { told: 'waiting' } }, (call) => {
    asked.push(call);
    return Promise.reject(new RetryLater('not in sync'));
  });
  expect([outcome, asked.length, names()]).toEqual([{ is: 'retryLater', message: 'not in sync', retryMs: 7 }, 1, []]);
  expect(await status()).toEqual({ told: 'waiting' });
});

test('a refusal by policy is told in the status, as an Event, and to whoever asked', async () => {
  const { carryOut, status, told } = await aWorld();
  const error = await refusal(carryOut({ steps: [create('bad')], status: { told: 'no room' } }));
  expect(String(error)).toContain('the quota is used up');
  expect([await status(), told]).toEqual([{ told: 'no room' }, ['refused by the API server: the quota is used up']]);
});

test('a webhook that is away does not keep the status from being told either', async () => {
  const { carryOut, status, told } = await aWorld();
  const error = await refusal(carryOut({ steps: [create('unasked')], status: { told: 'so it is' } }));
  expect(String(error)).toContain('failed calling webhook');
  expect([await status(), told]).toEqual([{ told: 'so it is' }, [`refused by the API server: ${AWAY}`]]);
});

test.each<[string, Partial<Plan<Status, NamedCall>>]>([
  ['a latch', { latch: { told: 'older' } }],
  ['what must not be written from a stale view', { status: { told: 'older', token: 'a' } }],
])('%s is not written over a newer status', async (_, more) => {
  const { carryOut, server, status } = await aWorld();
  await server.patch(things, ref('a'), { status: { told: 'newer' } }, { subresource: 'status' });
  expect(await refusal(carryOut(more))).toSatisfy(isConflict);
  expect(await status()).toEqual({ told: 'newer' });
});

test('a status is written beside the fields of another controller', async () => {
  const { carryOut, server, status } = await aWorld();
  await server.patch(things, ref('a'), { status: { token: 'of another' } }, { subresource: 'status' });
  await carryOut({ status: { told: 'mine' } });
  expect(await status()).toEqual({ token: 'of another', told: 'mine' });
});

test.each<[string, (at: ObjectRef) => Step]>([
  ['deleted', (what) => ({ do: 'delete', what })],
  ['patched', (to) => ({ do: 'patch', to, fields: { metadata: { labels: { ours: 'yes' } } } })],
])(
  'another object of the same name is not %s, and neither is one that has changed where that matters',
  async (_what, step) => {
    for (const make of [replaced, changed]) {
      const { carryOut, server } = await aWorld();
      const at = await make(server);
      const before = await server.get(parts, ref('part'));
      expect(await refusal(carryOut({ steps: [step(at)] }))).toSatisfy(isConflict);
      expect(await server.get(parts, ref('part'))).toEqual(before);
    }
  },
);

test('a change of what is gone by now is stale, and that of a status too', async () => {
  const { carryOut, server } = await aWorld();
  const part = refTo('Part', await server.create(parts, aPart('part')));
  await server.delete(parts, ref('part'), { uid: part.uid });
  const patch: Step = { do: 'patch', to: part, fields: { metadata: { labels: { ours: 'yes' } } } };
  expect(await refusal(carryOut({ steps: [patch] }))).toBeInstanceOf(TargetGone);
  await server.delete(things, ref('a'), { uid: (await server.get(things, ref('a')))?.metadata.uid ?? '' });
  expect(await refusal(carryOut({ status: { told: 'x' } }))).toBeInstanceOf(TargetGone);
});

test('a status is not written to another object of the same name', async () => {
  const { carryOut, server, thing } = await aWorld();
  await server.delete(things, ref('a'), { uid: thing.metadata.uid ?? '' });
  await server.create(things, { metadata: { name: 'a', namespace: 'n' } });
  const { resourceVersion: _, ...metadata } = thing.metadata; // the uid alone tells the two apart
  const outcome = carryOut({ status: { told: 'x' } }, undefined, { ...thing, metadata });
  expect(await refusal(outcome)).toSatisfy(isConflict);
  expect((await server.get(things, ref('a')))?.status).toBeUndefined();
});

test('every write says which version the cache has to reach', async () => {
  const { carryOut, writes, server } = await aWorld();
  await carryOut({ latch: { token: 't' }, status: {}, steps: [create('part')] });
  const versions = [await server.get(things, ref('a')), await server.get(parts, ref('part'))].map(
    (o) => o?.metadata.resourceVersion,
  );
  expect(writes.map((w) => w.resourceVersion)).toEqual(versions);
});
