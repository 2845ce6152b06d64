/** Retention: the same suite for every kind of store. */
import { expect, test } from 'vitest';
import { AgentFailure } from '../../../src/agent/failure.ts';
import { type Manifest, manifestText } from '../../../src/agent/format/manifest.ts';
import { MANIFEST } from '../../../src/domain/agent-task.ts';
import { ABOUT_DATA } from '../about-data.ts';
import {
  both,
  type Case,
  CLUSTER,
  DATA,
  folder,
  manifestOf,
  nameAt,
  SCHEDULE,
  type Suite,
  withMethod,
} from './prune-kit.ts';
import { SHARED_BUCKET_CASES } from './prune-shared.ts';

const CASES: readonly Case[] = [
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
    'a manifest whose object is deleted does not count, and is removed when no rule would keep the snapshot',
    async (it) => {
      await it.snapshot(9, {}, { data: undefined });
      const good = await it.snapshot(5);
      const lost = await it.snapshot(1, {}, { data: undefined });
      expect(await it.run({ keepLast: 1 }), ABOUT_DATA).toEqual({ kept: 1, removed: 0 });
      expect(await it.keys(), ABOUT_DATA).toEqual([...both(good), `${lost}${MANIFEST}`]);
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

export function pruneSuite(open: () => Promise<Suite>): void {
  for (const [i, [name, holds]] of [...CASES, ...SHARED_BUCKET_CASES].entries())
    test(name, async () => holds(folder(await open(), `prune/${i}`)));
}
