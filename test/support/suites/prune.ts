/** Retention: the same suite for every kind of store. */

import { expect, test } from 'vitest';
import { AgentFailure } from '../../../src/agent/failure.ts';
import { type Manifest, manifestText } from '../../../src/agent/format/manifest.ts';
import { type KeyRing, sealKey } from '../../../src/agent/format/seal-key.ts';
import type { Store } from '../../../src/agent/stores/store.ts';
import { prune } from '../../../src/agent/tasks/prune.ts';
import { MANIFEST, type Place, type PruneTask } from '../../../src/domain/agent-task.ts';
import { ABOUT_DATA } from '../about-data.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-03-01T12:00:00Z');
const CLUSTER = { name: 'db', uid: 'cluster-uid' };
const SCHEDULE = { name: 'hourly', uid: 'schedule-uid' };
const DATA = Buffer.from('a database');
const NEVER = new AbortController().signal;

const nameAt = (hoursAgo: number, of = SCHEDULE.name): string =>
  `${of}-${new Date(NOW - hoursAgo * HOUR).toISOString().replace(/\D/g, '').slice(0, 12)}`;

const manifestOf = (object: string, hoursAgo: number, patch: Partial<Manifest> = {}): Manifest => ({
  version: 1,
  object: { key: object, sizeBytes: DATA.length, sha256: 'a'.repeat(64) },
  database: { sizeBytes: DATA.length, sha256: 'a'.repeat(64) },
  snapshot: { namespace: 'ns', name: object.replace('.db', ''), uid: `uid-${object}` },
  cluster: { ...CLUSTER, id: 'cafe000000000001' },
  schedule: SCHEDULE,
  revision: 1,
  totalKeys: 1,
  etcdVersion: '3.6.1',
  authEnabled: false,
  member: 'db-0',
  compression: 'none',
  takenAt: new Date(NOW - hoursAgo * HOUR).toISOString(),
  durationMs: 1,
  ...patch,
});

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Everything below a prefix of its own. */
function folder({ store, putByOthers }: Suite, prefix: string) {
  const put = (key: string, bytes: Uint8Array, uid: string, schedule?: string): Promise<void> =>
    store.put(`${prefix}/${key}`, once(bytes), { uid, schedule, replace: false, signal: NEVER });
  const reported: string[] = [];
  return {
    store,
    reported,
    put,
    putByOthers: (key: string) => putByOthers(`${prefix}/${key}`, DATA.toString()),
    snapshot: async (
      hoursAgo: number,
      patch: Partial<Manifest> = {},
      stored: {
        readonly of?: string;
        readonly data?: Uint8Array | undefined;
        readonly uid?: string;
        readonly schedule?: string;
      } = { data: DATA },
    ): Promise<string> => {
      const name = `${nameAt(hoursAgo, stored.of)}.db`;
      const manifest = manifestOf(name, hoursAgo, patch);
      if (stored.data) await put(name, stored.data, stored.uid ?? manifest.snapshot.uid, stored.schedule);
      await put(`${name}${MANIFEST}`, Buffer.from(manifestText(manifest)), manifest.snapshot.uid);
      return name;
    },
    run: (
      retention: PruneTask['retention'],
      {
        at = store,
        signal = NEVER,
        keys,
        ...more
      }: { at?: Store; signal?: AbortSignal; keys?: KeyRing } & Partial<Omit<PruneTask, 'at'>> = {},
    ) => {
      const place: Place = { kind: 'pvc', root: '/' };
      const names = { cluster: CLUSTER, schedule: SCHEDULE };
      return prune(
        at,
        { task: 'prune', at: place, prefix, ...names, retention, now: NOW, ...more },
        (line) => reported.push(line),
        signal,
        keys,
      );
    },
    keys: async (): Promise<readonly string[]> => {
      const found: string[] = [];
      for await (const { key } of store.list(`${prefix}/`)) found.push(key.slice(prefix.length + 1));
      return found;
    },
  };
}

/** The store with one method replaced. */
const withMethod = <Name extends keyof Store>(store: Store, name: Name, method: (of: Store) => Store[Name]): Store =>
  new Proxy(store, {
    get: (target, asked: keyof Store) =>
      asked === name ? method(target) : (target[asked] as (...args: readonly unknown[]) => unknown).bind(target),
  });

const both = (name: string): readonly string[] => [name, `${name}${MANIFEST}`];

const CASES: readonly (readonly [string, (it: ReturnType<typeof folder>) => Promise<void>])[] = [
  [
    'snapshots that no rule keeps are removed with their manifests, and nothing the second time',
    async (it) => {
      const names = [];
      for (const hours of [9, 5, 3, 1]) names.push(await it.snapshot(hours));
      expect(await it.run({ keepLast: 2 }), ABOUT_DATA).toEqual({ kept: 2, removed: 2 });
      expect(await it.keys(), ABOUT_DATA).toEqual(names.slice(2).flatMap(both));
      expect(await it.run({ keepLast: 2 }), ABOUT_DATA).toEqual({ kept: 2, removed: 0 });
      expect(it.reported.filter((line) => line.startsWith('removed'))).toHaveLength(2);
    },
  ],

  [
    'the last snapshot is kept, however old',
    async (it) => {
      const name = await it.snapshot(5000);
      expect(await it.run({ maxAge: '1h' }), ABOUT_DATA).toEqual({ kept: 1, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual(both(name));
    },
  ],

  [
    'the newest snapshot with a successful drill is kept, by the name or the uid of its EtcdSnapshot, and does not count against the limit',
    async (it) => {
      const [, proven, , newest] = [
        await it.snapshot(900),
        await it.snapshot(800),
        await it.snapshot(3),
        await it.snapshot(1),
      ];
      const name = proven.replace('.db', '');
      expect(await it.run({ keepLast: 2 }, { restored: { name } })).toEqual({ kept: 3, removed: 1 });
      const restored = { name: 'renamed', uid: `uid-${proven}` };
      expect(await it.run({ keepLast: 1, maxAge: '1h' }, { restored })).toEqual({ kept: 2, removed: 1 });
      expect(await it.keys()).toEqual([...both(proven), ...both(newest)]);
      expect(it.reported.some((line) => line.includes(proven) && line.includes('restored by a drill'))).toBe(true);
      expect(await it.run({ keepLast: 1 }, { restored: { name: 'another', uid: 'another' } })).toEqual({
        kept: 1,
        removed: 1,
      });
    },
  ],

  [
    'foreign objects are not removed: another cluster, another schedule, none, no manifest, garbage',
    async (it) => {
      const mine = await it.snapshot(1);
      const others = [
        await it.snapshot(10, { cluster: { ...CLUSTER, uid: 'another', id: 'cafe000000000001' } }),
        await it.snapshot(11, { schedule: { ...SCHEDULE, uid: 'another' } }),
        await it.snapshot(13, {}, { of: 'daily', data: DATA }),
      ];
      const byHand: Manifest = { ...manifestOf(`${nameAt(14)}.db`, 14) };
      delete (byHand as { schedule?: unknown }).schedule;
      await it.put(`${nameAt(14)}.db`, DATA, 'x');
      await it.put(`${nameAt(14)}.db${MANIFEST}`, Buffer.from(manifestText(byHand)), 'x');
      await it.put(`${nameAt(15)}.db`, DATA, 'x');
      await it.put(`${nameAt(16)}.db`, DATA, 'x');
      await it.put(`${nameAt(16)}.db${MANIFEST}`, Buffer.from('{'), 'x');
      await it.put(`hourly-deeper/${nameAt(17)}.db`, DATA, 'x');
      await it.put(
        `hourly-deeper/${nameAt(17)}.db${MANIFEST}`,
        Buffer.from(manifestText(manifestOf(`${nameAt(17)}.db`, 17))),
        'x',
      );
      const before = await it.keys();
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 1, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual(before);
      expect(before).toEqual(expect.arrayContaining([mine, ...others]));
      expect(it.reported.some((line) => line.startsWith('left alone'))).toBe(true);
    },
  ],

  [
    'a schedule whose name has the same prefix is another one',
    async (it) => {
      await it.snapshot(1);
      const theirs = await it.snapshot(
        9,
        { schedule: { name: 'hourly-too', uid: 'too' } },
        { of: 'hourly-too', data: DATA },
      );
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 1, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual(expect.arrayContaining([...both(theirs)]));
    },
  ],

  [
    'a manifest whose object is deleted is removed, and does not count',
    async (it) => {
      const good = await it.snapshot(5);
      await it.snapshot(1, {}, { data: undefined });
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 1, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual(both(good));
    },
  ],

  [
    'a damaged snapshot does not count in place of a good one',
    async (it) => {
      const [old, good, damaged] = [
        await it.snapshot(9),
        await it.snapshot(5),
        await it.snapshot(1, {}, { data: Buffer.from('half') }),
      ];
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 2, removed: 1 });
      expect(await it.keys(), ABOUT_DATA).toEqual([...both(good), ...both(damaged)]);
      expect(old).not.toBe(good);
      expect(it.reported.some((line) => line.startsWith('damaged'))).toBe(true);
    },
  ],

  [
    'a foreign object in place of ours is not removed',
    async (it) => {
      await it.snapshot(1);
      const theirs = await it.snapshot(9, {}, { data: DATA, uid: 'foreign' });
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 2, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual(expect.arrayContaining([...both(theirs)]));
    },
  ],

  [
    'a removal that was interrupted between object and manifest is finished the next time',
    async (it) => {
      await it.snapshot(9);
      const kept = await it.snapshot(1);
      let deletions = 0;
      const dies = withMethod(it.store, 'delete', (store) => (key) => {
        if (++deletions > 1) return Promise.reject(new AgentFailure('StoreUnreachable', 'unreachable'));
        return store.delete(key);
      });
      await expect(it.run({ keepLast: 1 }, { at: dies })).rejects.toThrow('unreachable');
      expect(await it.keys(), ABOUT_DATA).toHaveLength(3);
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 1, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual(both(kept));
    },
  ],

  [
    'a foreign object is not removed by a forged manifest beside it: one without an owner, and one of another schedule',
    async (it) => {
      await it.snapshot(1);
      const bare = await it.snapshot(9, {}, { data: undefined });
      await it.putByOthers(bare);
      const theirs = await it.snapshot(8, {}, { data: DATA, schedule: 'another-schedule' });
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 3, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual(expect.arrayContaining([...both(bare), ...both(theirs)]));
    },
  ],

  [
    'forged snapshots, newer than those that the operator has recorded or in their place, push out no real one',
    async (it) => {
      const real = [await it.snapshot(9), await it.snapshot(5), await it.snapshot(3)];
      const recorded = real.map((key) => ({ name: key.replace('.db', ''), uid: `uid-${key}`, sha256: 'a'.repeat(64) }));
      for (const hours of [4, 2, 1]) await it.snapshot(hours);
      await it.run({ keepLast: 3 }, { recorded });
      expect(await it.keys(), ABOUT_DATA).toEqual(expect.arrayContaining(real.flatMap(both)));
      const [oldest = { name: '' }, ...newer] = recorded;
      const replaced = [{ ...oldest, sha256: 'b'.repeat(64) }, ...newer];
      await it.run({ keepLast: 2 }, { recorded: replaced });
      expect(await it.keys(), ABOUT_DATA).toEqual(expect.arrayContaining(real.slice(1).flatMap(both)));
      expect(it.reported.some((line) => line.startsWith('not trusted'))).toBe(true);
    },
  ],

  [
    'of an encrypted schedule, only snapshots whose manifest is authenticated push out others',
    async (it) => {
      const key = sealKey(Buffer.alloc(32, 7));
      const encryption = { algorithm: 'AES-256-GCM', keyId: key.id } as const;
      const names = [];
      for (const hours of [9, 5]) {
        const name = `${nameAt(hours)}.db.enc`;
        const { object, ...manifest } = manifestOf(name, hours, { encryption });
        const snapshot = { ...manifest.snapshot, name: nameAt(hours) };
        const written = { ...manifest, snapshot, object: { ...object, path: name } };
        await it.put(name, DATA, snapshot.uid, SCHEDULE.uid);
        await it.put(`${name}${MANIFEST}`, Buffer.from(manifestText(written, key)), snapshot.uid, SCHEDULE.uid);
        names.push(name);
      }
      for (const hours of [3, 2, 1]) await it.snapshot(hours, {}, { data: DATA, schedule: SCHEDULE.uid });
      await it.run({ keepLast: 2 }, { keys: { current: key, all: [key] } });
      expect(await it.keys(), ABOUT_DATA).toEqual(expect.arrayContaining(names.flatMap(both)));
      await it.run({ keepLast: 1 }, { keys: { current: key, all: [key] } });
      expect(await it.keys(), ABOUT_DATA).not.toContain(names[0]);
      expect(await it.keys(), ABOUT_DATA).toContain(names[1]);
    },
  ],

  [
    'a fresh snapshot is kept although the clock of the node that took it is a year behind',
    async (it) => {
      const takenAt = new Date(NOW - 365 * 24 * HOUR).toISOString();
      const names = [await it.snapshot(3, { takenAt }), await it.snapshot(2), await it.snapshot(1, { takenAt })];
      expect(await it.run({ maxAge: '24h' }), ABOUT_DATA).toEqual({ kept: 3, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual(names.flatMap(both));
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 1, removed: 2 });
      expect(await it.keys(), ABOUT_DATA).toEqual(both(names[2] ?? ''));
    },
  ],

  [
    'a snapshot that the store has locked is counted, and those after it are removed',
    async (it) => {
      const names = [];
      for (const hours of [9, 8, 7, 1]) names.push(await it.snapshot(hours));
      const [locked = ''] = names;
      const locks = withMethod(it.store, 'delete', (store) => (key) => {
        if (key.endsWith(locked)) return Promise.reject(new AgentFailure('ObjectLocked', 'until tomorrow'));
        return store.delete(key);
      });
      expect(await it.run({ keepLast: 1 }, { at: locks }), ABOUT_DATA).toEqual({ kept: 2, removed: 2, locked: 1 });
      expect(await it.keys(), ABOUT_DATA).toEqual([...both(locked), ...both(names[3] ?? '')]);
      expect(it.reported.some((line) => line.startsWith('locked'))).toBe(true);
    },
  ],

  [
    'an object whose agent was killed before it wrote the manifest is removed after two days, and only if it is of this schedule',
    async (it) => {
      const kept = await it.snapshot(1);
      const at = (hoursAgo: number): string => `${nameAt(hoursAgo)}.db.zst.enc`;
      await it.put(at(49), DATA, 'killed', SCHEDULE.uid);
      for (const [key, schedule] of [
        [at(47), SCHEDULE.uid],
        [at(50), 'another-schedule'],
        [at(51), undefined],
        [`${nameAt(52)}.txt`, SCHEDULE.uid],
      ] as const)
        await it.put(key, DATA, 'killed', schedule);
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 1, removed: 0 });
      const left = [at(47), at(50), at(51), `${nameAt(52)}.txt`];
      expect([...(await it.keys())].sort(), ABOUT_DATA).toEqual([...left, ...both(kept)].sort());
    },
  ],

  [
    'many manifests are read at once',
    async (it) => {
      for (let hours = 1; hours <= 20; hours++) await it.snapshot(hours);
      let [now, most] = [0, 0];
      const counts = withMethod(it.store, 'get', (store) => async (key, signal) => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setTimeout(resolve, 50));
        return store.get(key, signal).finally(() => (now -= 1));
      });
      expect(await it.run({ keepLast: 1 }, { at: counts }), ABOUT_DATA).toEqual({ kept: 1, removed: 19 });
      expect(most).toBe(16);
    },
  ],

  [
    'an invalid duration removes nothing',
    async (it) => {
      await it.snapshot(9);
      await expect(it.run({ maxAge: 'long' })).rejects.toMatchObject({ reason: 'Misconfigured' });
      expect(await it.keys(), ABOUT_DATA).toHaveLength(2);
    },
  ],

  [
    'an aborted run ends',
    async (it) => {
      for (const hours of [9, 1]) await it.snapshot(hours);
      const signal = AbortSignal.abort(new Error('end'));
      await expect(it.run({ keepLast: 1 }, { signal })).rejects.toThrow('end');
      expect(await it.keys(), ABOUT_DATA).toHaveLength(4);
    },
  ],
];

export interface Suite {
  readonly store: Store;
  /** An object that no agent has written. */
  readonly putByOthers: (key: string, content: string) => Promise<void>;
}

export function pruneSuite(open: () => Promise<Suite>): void {
  for (const [i, [name, holds]] of CASES.entries()) test(name, async () => holds(folder(await open(), `prune/${i}`)));
}
