/** The agent copies a stored snapshot from each kind of store to each other kind. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AgentFailure } from '../../src/agent/failure.ts';
import { manifestText } from '../../src/agent/format/manifest.ts';
import type { Store } from '../../src/agent/stores/store.ts';
import { copy } from '../../src/agent/tasks/copy.ts';
import { type CopyTask, manifestKey } from '../../src/domain/agent-task.ts';
import type { TestPlace } from '../support/servers/stores.ts';
import { CLUSTER, folder, manifestOf, NOW, nameAt, SCHEDULE, withMethod } from '../support/suites/prune-kit.ts';
import { bytes, failure, get, keys, MIB, open, put, putByOthers, text, WORLDS } from './stores-world.ts';

const NEVER = new AbortController().signal;
const sha256 = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');
const places: TestPlace[] = [];
const stores: Store[] = [];
let sources = 0;

beforeAll(async () => {
  for (const [, , start] of WORLDS) {
    const place = await start();
    places.push(place);
    stores.push(await open(place));
  }
}, 300_000);
afterAll(() => Promise.all(places.map((place) => place.close())));

async function* one(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content;
}

/** A snapshot of this size at the first location, and the task that copies it. */
async function stored(from: Store, size: number, hoursAgo = 3): Promise<CopyTask> {
  const name = nameAt(hoursAgo);
  const key = `first-${++sources}/${name}.db`;
  const content = Buffer.concat(await Array.fromAsync(bytes(size)));
  const about = { sizeBytes: content.length, sha256: sha256(content) };
  const manifest = manifestOf(`${name}.db`, hoursAgo, { object: { key: `${name}.db`, ...about }, database: about });
  const { uid } = manifest.snapshot;
  const owner = { uid, schedule: SCHEDULE.uid };
  await put(from, key, bytes(size), owner);
  await put(from, manifestKey(key), text(manifestText(manifest)), owner);
  const place = { kind: 'pvc', root: '/' } as const;
  const toKey = `second/${sources}/${name}.db`;
  return { task: 'copy', from: place, key, to: place, toKey, uid, schedule: SCHEDULE.uid, sha256: about.sha256 };
}

const pairs = WORLDS.flatMap(([from], i) => WORLDS.map(([to], j) => [from, to, i, j] as const)).filter(
  ([, , i, j]) => i === 1 || j === 1 || i === j,
);

describe.each(pairs)('from %s to %s', (_from, _to, i, j) => {
  const ends = (): readonly [Store, Store] => [stores[i] as Store, stores[j] as Store];

  test('the copy and its manifest are the same bytes, of the same owner, and a second run changes nothing', async () => {
    const [from, to] = ends();
    const task = await stored(from, 9 * MIB);
    const result = { ok: true, task: 'copy', uri: to.uri(task.toKey) };
    expect(await copy(from, to, task, NEVER)).toEqual(result);
    for (const of of [(key: string) => key, manifestKey])
      expect(sha256(await get(to, of(task.toKey)))).toBe(sha256(await get(from, of(task.key))));
    expect(await to.head(task.toKey)).toMatchObject({ uid: task.uid, schedule: SCHEDULE.uid });
    const gone = withMethod(from, 'get', () => () => Promise.reject(new Error('it is read a second time')));
    expect(await copy(gone, to, task, NEVER)).toEqual(result);
  });
});

describe.each(WORLDS.map(([name], i) => [name, i] as const))('to %s', (_name, i) => {
  const ends = (): readonly [Store, Store] => [stores[1] as Store, stores[i] as Store];

  test('an object that a killed agent has left is replaced', async () => {
    const [from, to] = ends();
    const task = await stored(from, 1_000);
    await put(to, task.toKey, text('half of it'), { uid: task.uid });
    await copy(from, to, task, NEVER);
    expect(sha256(await get(to, task.toKey))).toBe(task.sha256);
  });

  test('an object of another writer is not touched', async () => {
    const [from, to] = ends();
    const task = await stored(from, 1_000);
    await putByOthers(places[i] as TestPlace, task.toKey, 'theirs').catch(() =>
      put(to, task.toKey, text('theirs'), { uid: 'theirs' }),
    );
    expect(await failure(copy(from, to, task, NEVER))).toMatchObject({ reason: 'ObjectExists' });
    expect((await get(to, task.toKey)).toString()).toBe('theirs');
  });

  test.each<[string, (from: Store) => Store, string]>([
    [
      'bytes that have changed',
      (from) =>
        withMethod(from, 'get', (of) => async (key, signal) => {
          const { size, body } = await of.get(key, signal);
          if (key.endsWith('.json')) return { size, body };
          const content = Buffer.concat(await Array.fromAsync(body));
          content[0] = (content[0] ?? 0) ^ 1;
          return { size, body: one(content) };
        }),
      'SnapshotDamaged',
    ],
    [
      'an object that is lost',
      (from) =>
        withMethod(from, 'get', (of) => async (key, signal) => {
          if (key.endsWith('.json')) return of.get(key, signal);
          throw new AgentFailure('ObjectNotFound', 'there is none');
        }),
      'ObjectNotFound',
    ],
  ])('%s leaves nothing at the second location', async (_what, broken, reason) => {
    const [from, to] = ends();
    const task = await stored(from, 1_000);
    expect(await failure(copy(broken(from), to, task, NEVER))).toMatchObject({ reason });
    expect(await keys(to, task.toKey)).toEqual([]);
  });

  test('another snapshot than the recorded one is not copied', async () => {
    const [from, to] = ends();
    const task = await stored(from, 1_000);
    for (const other of [{ sha256: 'b'.repeat(64) }, { uid: 'another' }])
      expect(await failure(copy(from, to, { ...task, ...other }, NEVER))).toMatchObject({ reason: 'SnapshotDamaged' });
    expect(await keys(to, task.toKey)).toEqual([]);
  });

  test('the copies have a retention of their own', async () => {
    const [from, to] = ends();
    const prefix = `kept-${i}`;
    for (const hours of [9, 5, 1]) {
      const task = await stored(from, 1_000, hours);
      await copy(from, to, { ...task, toKey: `${prefix}/${nameAt(hours)}.db` }, NEVER);
    }
    const second = folder({ store: to, putByOthers: () => Promise.resolve() }, prefix);
    expect(await second.run({ keepLast: 1 }, { cluster: CLUSTER, now: NOW })).toEqual({ kept: 1, removed: 2 });
    expect(await second.keys()).toEqual([`${nameAt(1)}.db`, `${nameAt(1)}.db.manifest.json`]);
  });
});
