/** Retention in a bucket that others write to, that agents left things in, and that keeps what is deleted. */
import { expect } from 'vitest';
import { AgentFailure } from '../../../src/agent/failure.ts';
import { manifestText } from '../../../src/agent/format/manifest.ts';
import { sealKey } from '../../../src/agent/format/seal-key.ts';
import { MANIFEST } from '../../../src/domain/agent-task.ts';
import { ABOUT_DATA } from '../about-data.ts';
import { both, type Case, DATA, HOUR, manifestOf, NOW, nameAt, SCHEDULE, withMethod } from './prune-kit.ts';

export const SHARED_BUCKET_CASES: readonly Case[] = [
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
    'forged snapshots of old minutes that say they were taken just now push out no recorded one',
    async (it) => {
      const real = [await it.snapshot(9), await it.snapshot(5), await it.snapshot(3)];
      const recorded = real.map((key) => ({ name: key.replace('.db', ''), uid: `uid-${key}`, sha256: 'a'.repeat(64) }));
      const takenAt = new Date(NOW - HOUR).toISOString();
      for (const hours of [100, 101, 102, 103]) await it.snapshot(hours, { takenAt });
      await it.run({ keepLast: 3 }, { recorded });
      expect(await it.keys(), ABOUT_DATA).toEqual(real.flatMap(both));
    },
  ],

  [
    'between one that a drill proved and the newest ones, snapshots that are not recorded any more count as good',
    async (it) => {
      const names = [];
      for (const hours of [90, 8, 7, 6, 2, 1]) names.push(await it.snapshot(hours));
      const [proven = '', ...rest] = names;
      const recorded = [proven, ...rest.slice(-2)].map((key) => ({
        name: key.replace('.db', ''),
        uid: `uid-${key}`,
        sha256: 'a'.repeat(64),
      }));
      await it.run({ keepLast: 4 }, { recorded, allRecordedFrom: NOW - 2 * HOUR });
      expect(await it.keys(), ABOUT_DATA).toEqual([proven, ...rest.slice(1)].flatMap(both));
      expect(it.reported.filter((line) => line.startsWith('not trusted'))).toEqual([]);
    },
  ],

  [
    'an object whose manifest was lost is kept for as long as others of its age, and the newest good one beside it',
    async (it) => {
      const [old, lost, good] = [
        await it.snapshot(90),
        await it.snapshot(60, {}, { data: DATA, schedule: SCHEDULE.uid }),
        await it.snapshot(1),
      ];
      await it.store.delete(`${it.prefix}/${lost}${MANIFEST}`);
      expect(await it.run({ keepLast: 2 }), ABOUT_DATA).toEqual({ kept: 2, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual([...both(old), lost, ...both(good)]);
      expect(await it.run({ keepLast: 1 }, { restored: { name: lost.replace('.db', '') } }), ABOUT_DATA).toMatchObject({
        removed: 1,
      });
      expect(await it.keys(), ABOUT_DATA).toEqual([lost, ...both(good)]);
      await it.run({ keepLast: 1 });
      expect(await it.keys(), ABOUT_DATA).toEqual(both(good));
    },
  ],

  [
    'a copy that gets its manifest while retention reads the folder is not removed as unfinished',
    async (it) => {
      const late = await it.snapshot(60, {}, { data: DATA, schedule: SCHEDULE.uid });
      const good = await it.snapshot(1);
      let isLate = true;
      const list = withMethod(
        it.store,
        'list',
        (store) =>
          async function* (prefix) {
            for await (const object of store.list(prefix)) if (!object.key.endsWith(`${late}${MANIFEST}`)) yield object;
          },
      );
      const at = withMethod(list, 'head', (store) => async (key) => {
        if (!key.endsWith(`${late}${MANIFEST}`)) return store.head(key);
        if (!isLate) return store.head(key);
        isLate = false;
        return undefined;
      });
      await it.run({ keepLast: 1 }, { at });
      expect(await it.keys(), ABOUT_DATA).toEqual([...both(late), ...both(good)]);
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
];
