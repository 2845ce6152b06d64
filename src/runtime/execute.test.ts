import { describe, expect, test } from 'vitest';
import { ModelApiServer, refused } from '../../test/sim/model/kube.ts';
import { ApiError, isConflict } from '../kube/errors.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import { systemClock } from './clock.ts';
import { type Executed, type ExecuteOptions, execute, TargetGone, type Write } from './execute.ts';
import { type NamedCall, type ObjectRef, type Plan, RetryLater, refTo, type Step, type UpkeepTask } from './plan.ts';

type Status = { readonly message?: string; readonly token?: string };
type Thing = KubeObject & { readonly status?: Status };
const things: Resource<Thing> = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' };
const parts: Resource = { group: '', version: 'v1', plural: 'parts', kind: 'Part' };
const signal = new AbortController().signal;

const aPart = (name: string) => ({ apiVersion: 'v1', kind: 'Part', metadata: { name, namespace: 'n' } });
const ref = (name: string) => ({ namespace: 'n', name });
const create = (name: string): Step => ({ do: 'create', object: aPart(name) });

const WEBHOOK_DOWN = 'Internal error occurred: failed calling webhook "webhook.example.com": connection refused';

/** What an API server makes of it whose CRD has no token. */
function withoutToken(object: KubeObject): KubeObject {
  const { token: _, ...status } = (object as Thing).status ?? {};
  return { ...object, status } as Thing;
}

/** A Thing on a model of the API server. Parts called "bad" are refused by policy. */
async function aWorld(onPart: (server: ModelApiServer, name: string) => void = () => {}, keepsToken = true) {
  const server: ModelApiServer = new ModelApiServer({
    admit: (resource, object) => {
      if (resource.kind === 'Thing' && !keepsToken) return withoutToken(object);
      if (resource.kind === 'Part') onPart(server, object.metadata.name ?? '');
      if (object.metadata.name === 'bad') throw refused('the quota is used up');
      if (object.metadata.name === 'webhook-down') throw new ApiError('POST', 500, { message: WEBHOOK_DOWN });
      return object;
    },
  });
  const thing = await server.create(things, { metadata: { name: 'a', namespace: 'n' } });
  const notes: string[] = [];
  const writes: Write[] = [];
  const run = (
    more: Partial<Plan<Status, NamedCall>>,
    call?: ExecuteOptions<NamedCall>['call'],
    subject = thing,
    clock = systemClock,
  ): Promise<Executed<NamedCall>> =>
    execute(
      { rule: 'r', message: 'because', steps: [], status: {}, events: [], ...more },
      subject,
      things,
      {
        client: server,
        clock,
        signal,
        recorder: { record: (_resource, _object, { note }) => void notes.push(note) },
        resources: new Map<string, Resource>([
          ['Thing', things],
          ['Part', parts],
        ]),
        onWrite: (write) => void writes.push(write),
        shouldCoalesce: () => false,
        needsVersion: (changes) => 'token' in changes,
        ...(call && { call }),
      },
      signal,
    );
  const status = async (): Promise<Status | undefined> => (await server.get(things, ref('a')))?.status;
  const names = (): readonly (string | undefined)[] => server.peek(parts).map((p) => p.metadata.name);
  return { server, thing, run, notes, writes, status, names };
}

/** The reference to a deleted object, whose name another object has now. */
async function replaced(server: ModelApiServer): Promise<ObjectRef> {
  const old = await server.create(parts, aPart('part'));
  const before = refTo('Part', { ...old, metadata: { ...old.metadata, name: 'part' } });
  await server.delete(parts, ref('part'), { uid: before.uid });
  await server.create(parts, aPart('part'));
  return before;
}

/** The reference to an object that has changed since it was observed. */
async function changed(server: ModelApiServer): Promise<ObjectRef> {
  const before = refTo('Part', await server.create(parts, aPart('part')), { resourceVersion: true });
  await server.patch(parts, ref('part'), { metadata: { labels: { by: 'another-controller' } } });
  return before;
}

/** The error of the step that failed, or of a write that the whole plan depends on. */
const refusal = (promise: Promise<Executed<NamedCall>>): Promise<unknown> =>
  promise.then(({ steps }) => (steps.is === 'failed' ? steps.error : 'nothing was refused')).catch((e: unknown) => e);

test('a latch is written before the first step runs', async () => {
  const found: unknown[] = [];
  const { run } = await aWorld((server) => found.push(server.peek(things)[0]?.status));
  await run({ latch: { token: 't' }, status: { token: 't', message: 'x' }, steps: [create('part')] });
  expect(found).toEqual([{ token: 't', message: 'x' }]);
});

test('the Events of a status that was written with a latch are recorded although a step fails', async () => {
  const { run, server, notes } = await aWorld();
  await server.create(parts, aPart('old'));
  const events = [{ type: 'Normal', reason: 'Valid', note: 'all is well' }] as const;
  const failing = run({ latch: { token: 't' }, status: { message: 'x' }, events: events, steps: [create('old')] });
  expect(await refusal(failing)).toSatisfy(isConflict);
  expect(notes).toEqual(['all is well']);
});

test('no step runs when the latch cannot be written', async () => {
  const { run, server, names } = await aWorld();
  await server.patch(things, ref('a'), { metadata: { labels: { by: 'another-controller' } } });
  expect(await refusal(run({ latch: { token: 't' }, steps: [create('part')] }))).toSatisfy(isConflict);
  expect(names()).toEqual([]);
});

describe('a latch that the API server drops, because its CRDs are older', () => {
  const DROPPED =
    'the API server drops status.token: the CRDs are older than the operator. Install the CRDs of its chart (crds.enabled=true), or those under templates/crds';
  const aRow = (row: string): UpkeepTask<NamedCall> => ({ row, target: `Part ${row}`, steps: [create(row)] });
  const olderWorld = () => aWorld(() => {}, false);

  test('is a failure: no step that depends on it runs, and the rest of the status is written', async () => {
    const { run, names, status, notes } = await olderWorld();
    const latch = { token: 't', message: 'x' };
    const { steps, dropped } = await run({ latch, status: latch, steps: [create('part')] });
    expect([steps, dropped?.fields]).toEqual([
      { is: 'failed', step: create('part'), error: expect.objectContaining({ message: DROPPED }) },
      ['status.token'],
    ]);
    expect([names(), await status(), notes]).toEqual([[], { message: 'x' }, [DROPPED]]);
  });

  test('holds up the rows that latch it, and no others', async () => {
    const { run, names } = await olderWorld();
    const upkeep = [aRow('trust'), aRow('labels')];
    const plan = { latch: { token: 't' }, steps: [create('own')], upkeep };
    const executed = await run({ ...plan, latchedBy: { token: ['trust'], message: ['r'] } });
    expect(executed.upkeep.map(({ outcome }) => outcome.is)).toEqual(['failed', 'done']);
    expect(names()).toEqual(expect.arrayContaining(['labels', 'own']));
    expect(names()).toHaveLength(2);
  });

  test('is no failure while it is not written, nor when the object has it already', async () => {
    const { run, names } = await olderWorld();
    expect((await run({ status: { token: 't' }, steps: [create('a')] })).dropped).toBeUndefined();
    const { run: again, server, thing } = await aWorld();
    const latched = await server.patch(things, ref('a'), { status: { token: 't' } }, { subresource: 'status' });
    const executed = await again({ latch: { token: 't' }, status: { token: 't' } }, undefined, latched);
    expect([executed.dropped, thing.status, names()]).toEqual([undefined, undefined, ['a']]);
  });
});

test.each<[string, Step]>([
  ['was refused by policy', create('bad')],
  ['failed', create('old')],
])('no step runs after one that %s', async (_how, step) => {
  const { run, names, server } = await aWorld();
  await server.create(parts, aPart('old'));
  expect(await refusal(run({ steps: [step, create('next')] }))).toBeInstanceOf(Error);
  expect(names()).toEqual(['old']);
});

test('no step runs after a call that is refused for now, and the status is written', async () => {
  const { run, names, status } = await aWorld();
  const calls: NamedCall[] = [];
  const step: Step<NamedCall> = { do: 'call', call: { name: 'promote', target: 'x' }, retryMs: 7 };
  const outcome = await run({ steps: [step, create('next')], status: { message: 'waiting' } }, (call) => {
    calls.push(call);
    return Promise.reject(new RetryLater('not in sync'));
  });
  expect(outcome.steps).toEqual({ is: 'failed', step, error: new RetryLater('not in sync') });
  expect([calls.length, names()]).toEqual([1, []]);
  expect(await status()).toEqual({ message: 'waiting' });
});

test('a refusal by policy is in the status, in an Event and in the error', async () => {
  const { run, status, notes } = await aWorld();
  const error = await refusal(run({ steps: [create('bad')], status: { message: 'no room' } }));
  expect(String(error)).toContain('the quota is used up');
  expect([await status(), notes]).toEqual([
    { message: 'no room' },
    ['refused by the API server: the quota is used up'],
  ]);
});

test('the status is written although an admission webhook is unreachable', async () => {
  const { run, status, notes } = await aWorld();
  const error = await refusal(run({ steps: [create('webhook-down')], status: { message: 'so it is' } }));
  expect(String(error)).toContain('failed calling webhook');
  expect([await status(), notes]).toEqual([{ message: 'so it is' }, [`refused by the API server: ${WEBHOOK_DOWN}`]]);
});

test.each<[string, Partial<Plan<Status, NamedCall>>]>([
  ['a latch', { latch: { message: 'older' } }],
  ['a field that must not be written from a stale cache', { status: { message: 'older', token: 'a' } }],
])('%s is not written over a newer status', async (_, more) => {
  const { run, server, status } = await aWorld();
  await server.patch(things, ref('a'), { status: { message: 'newer' } }, { subresource: 'status' });
  expect(await refusal(run(more))).toSatisfy(isConflict);
  expect(await status()).toEqual({ message: 'newer' });
});

test('a status patch keeps the fields of another controller', async () => {
  const { run, server, status } = await aWorld();
  await server.patch(things, ref('a'), { status: { token: 'of another' } }, { subresource: 'status' });
  await run({ status: { message: 'mine' } });
  expect(await status()).toEqual({ token: 'of another', message: 'mine' });
});

test.each<[string, (at: ObjectRef) => Step]>([
  ['deleted', (what) => ({ do: 'delete', what })],
  ['patched', (to) => ({ do: 'patch', to, fields: { metadata: { labels: { ours: 'yes' } } } })],
])(
  'another object of the same name is not %s, and neither is one whose resourceVersion has changed',
  async (_what, step) => {
    for (const make of [replaced, changed]) {
      const { run, server } = await aWorld();
      const at = await make(server);
      const before = await server.get(parts, ref('part'));
      expect(await refusal(run({ steps: [step(at)] }))).toSatisfy(isConflict);
      expect(await server.get(parts, ref('part'))).toEqual(before);
    }
  },
);

test('a patch of a deleted object fails with TargetGone, and so does a status patch', async () => {
  const { run, server } = await aWorld();
  const part = refTo('Part', await server.create(parts, aPart('part')));
  await server.delete(parts, ref('part'), { uid: part.uid });
  const patch: Step = { do: 'patch', to: part, fields: { metadata: { labels: { ours: 'yes' } } } };
  expect(await refusal(run({ steps: [patch] }))).toBeInstanceOf(TargetGone);
  await server.delete(things, ref('a'), { uid: (await server.get(things, ref('a')))?.metadata.uid ?? '' });
  expect(await refusal(run({ status: { message: 'x' } }))).toBeInstanceOf(TargetGone);
});

test('a status is not written to another object of the same name', async () => {
  const { run, server, thing } = await aWorld();
  await server.delete(things, ref('a'), { uid: thing.metadata.uid ?? '' });
  await server.create(things, { metadata: { name: 'a', namespace: 'n' } });
  const { resourceVersion: _, ...metadata } = thing.metadata; // only the uid distinguishes the two
  const outcome = run({ status: { message: 'x' } }, undefined, { ...thing, metadata });
  expect(await refusal(outcome)).toSatisfy(isConflict);
  expect((await server.get(things, ref('a')))?.status).toBeUndefined();
});

test('every write reports the resourceVersion that the cache has to reach', async () => {
  const { run, writes, server } = await aWorld();
  await run({ latch: { token: 't' }, status: {}, steps: [create('part')] });
  const versions = [await server.get(things, ref('a')), await server.get(parts, ref('part'))].map(
    (o) => o?.metadata.resourceVersion,
  );
  expect(writes.map((w) => w.resourceVersion)).toEqual(versions);
});

const task = (row: string, ...steps: readonly Step<NamedCall>[]): UpkeepTask<NamedCall> => ({
  row,
  target: row,
  steps,
});

test('upkeep runs although a step failed, and one task that fails keeps no other from running', async () => {
  const { run, names, status } = await aWorld();
  const { steps, upkeep } = await run({
    steps: [create('bad')],
    upkeep: [task('a', create('bad'), create('after-bad')), task('b', create('good'))],
    status: { message: 'still written' },
  });
  expect([steps.is, upkeep.map(({ task: { row }, outcome }) => [row, outcome.is])]).toEqual([
    'failed',
    [
      ['a', 'failed'],
      ['b', 'done'],
    ],
  ]);
  expect([names(), await status()]).toEqual([['good'], { message: 'still written' }]);
});

test('a task of upkeep that hangs is given up, and the status is written', async () => {
  const { run, status, names } = await aWorld();
  const hangs: Step<NamedCall> = { do: 'call', call: { name: 'hang', target: 'x' }, retryMs: 1 };
  const clock = { ...systemClock, after: (ms: number, call: () => void) => systemClock.after(ms / 1_000, call) };
  const { upkeep } = await run(
    { upkeep: [task('a', hangs), task('b', create('good'))], status: { message: 'written' } },
    (_call, limit) => new Promise((_, reject) => limit.addEventListener('abort', () => reject(limit.reason as Error))),
    undefined,
    clock,
  );
  expect(upkeep.map(({ outcome }) => outcome.is)).toEqual(['failed', 'done']);
  expect([names(), await status()]).toEqual([['good'], { message: 'written' }]);
});

test('a deferred task is not run', async () => {
  const { run, names } = await aWorld();
  await run({ upkeep: [{ ...task('a', create('part')), deferred: 'backOff' }] });
  expect(names()).toEqual([]);
});

test('the status is written after an error of the API server that is no refusal', async () => {
  const { run, status } = await aWorld((_, name) => {
    if (name === 'full') throw new ApiError('POST', 500, { message: 'range is full' });
  });
  expect(String(await refusal(run({ steps: [create('full')], status: { message: 'no address' } })))).toContain('full');
  expect(await status()).toEqual({ message: 'no address' });
});
