/** The agent tries a location of each kind: what it reports, and that it leaves nothing behind. */
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AgentFailure } from '../../src/agent/failure.ts';
import { openStore, type Store, type StoredObject } from '../../src/agent/stores/store.ts';
import { probe } from '../../src/agent/tasks/probe.ts';
import type { ProbeTask } from '../../src/domain/agent-task.ts';
import { reader, type TestPlace } from '../support/servers/stores.ts';
import { withMethod } from '../support/suites/prune-kit.ts';
import { failure, keys, open, put, text, WORLDS } from './stores-world.ts';

const NEVER = new AbortController().signal;
const SCHEDULE = { name: 'nightly', uid: 'schedule-uid' };
const FINE = { ok: true, task: 'probe' };
const denied = new AgentFailure('AccessDenied', 'the role lacks it');

async function* refusedList(): AsyncGenerator<StoredObject> {
  yield await Promise.reject(denied);
}

describe.each(WORLDS)('%s', (_name, _kind, start) => {
  let world: TestPlace;
  let store: Store;
  const tried = (at: Store = store, prefix = 'some/folder') => {
    const task: ProbeTask = { task: 'probe', at: world.place, prefix, schedule: SCHEDULE };
    return probe(at, task, NEVER);
  };
  beforeAll(async () => {
    world = await start();
    store = await open(world);
  }, 300_000);
  afterAll(() => world?.close());

  test('a usable one keeps nothing of it, in a folder and without one, and other objects stay', async () => {
    await put(store, 'some/folder/other.db', text('x'));
    expect(await tried()).toEqual(FINE);
    expect(await tried(store, '')).toEqual(FINE);
    expect(await keys(store)).toEqual(['some/folder/other.db']);
  });

  test('what a killed agent has left behind is deleted, and that of another schedule is not', async () => {
    await put(store, 'some/folder/etcd-operator-probe-schedule-uid-1', text('x'), { uid: SCHEDULE.uid });
    await put(store, 'some/folder/etcd-operator-probe-other-1', text('x'), { uid: 'other' });
    expect(await tried()).toEqual(FINE);
    expect(await keys(store, 'some/folder/etcd')).toEqual(['some/folder/etcd-operator-probe-other-1']);
    await store.delete('some/folder/etcd-operator-probe-other-1');
  });

  test('credentials that may neither list nor delete are usable, and reported', async () => {
    const refuse = (): Promise<never> => Promise.reject(denied);
    const listless = withMethod(store, 'list', () => refusedList);
    const cannotDelete = { cannotDelete: 'the role lacks it' };
    expect(await tried(withMethod(store, 'delete', () => refuse))).toEqual({ ...FINE, ...cannotDelete });
    expect(await tried(listless)).toEqual({ ...FINE, cannotList: 'the role lacks it' });
    expect(await tried(withMethod(listless, 'delete', () => refuse))).toEqual({
      ...FINE,
      ...cannotDelete,
      cannotList: 'the role lacks it',
    });
    expect(await tried()).toEqual(FINE); // and deletes what is left
    expect(await keys(store, 'some/folder/etcd')).toEqual([]);
  });

  test('a lock keeps it from being deleted, and is no failure', async () => {
    const locked = new AgentFailure('ObjectLocked', 'until tomorrow');
    expect(await tried(withMethod(store, 'delete', () => () => Promise.reject(locked)))).toEqual(FINE);
    expect(await tried()).toEqual(FINE);
  });

  test('wrong credentials are the failure that a snapshot would have', async () => {
    const { wrongSecrets } = world; // a volume has none, and the server for Google accepts all
    const wrong = wrongSecrets ? await openStore(world.place, reader(wrongSecrets)) : undefined;
    if (wrong) expect(await failure(tried(wrong))).toMatchObject({ reason: 'AccessDenied' });
  });

  test('a service that does not list, or returns other bytes, is found', async () => {
    const empty = withMethod(store, 'list', () => async function* () {});
    expect(await failure(tried(empty))).toMatchObject({ reason: 'Misconfigured' });
    const other = withMethod(store, 'get', (of) => async (key, signal) => {
      const { size } = await of.get(key, signal);
      return { size, body: text('other bytes') };
    });
    expect(await failure(tried(other))).toMatchObject({ reason: 'StoreUnreachable' });
    expect(await tried()).toEqual(FINE);
  });

  test('one that is not there is reported', async () => {
    if (world.place.kind === 'pvc') rmSync(world.folder, { recursive: true });
    const other = world.place.kind === 'azure' ? { container: 'missing' } : { bucket: 'missing' };
    const missing = await openStore({ ...world.place, ...other }, reader(world.secrets));
    expect(await failure(tried(missing))).toMatchObject({ reason: 'BucketNotFound' });
  });
});
