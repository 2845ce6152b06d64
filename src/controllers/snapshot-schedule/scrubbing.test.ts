/** Scrubs: when one starts, what its result changes, and what it keeps retention from. */
import { describe, expect, test } from 'vitest';
import {
  aRun,
  aSchedule,
  at,
  aWork,
  condition,
  doing,
  events,
  pruneTaskOf,
  STORED,
  settled,
} from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { backedUpAt, type EtcdSnapshotScheduleStatus, uselessBackup } from '../../api/etcd-snapshot-schedule.ts';
import type { ScrubTask } from '../../domain/agent-task.ts';
import { resolveSource } from '../../domain/restore-source.ts';
import type { Job } from '../../gen/kube.ts';
import { iso } from '../../lib/time.ts';
import { jobNames } from './build.ts';
import { scrubName } from './build-scrub.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const RUNS = [aRun('05:00:00', STORED)];
const [NAME, OTHER] = ['hourly-202603010500', 'hourly-202603010400'];
/** No snapshot is due, and one is stored. */
const planned = (spec = {}, more: Partial<Observed> = {}): Observed =>
  settled(at('05:30:00', { scrub: 'Weekly', suspend: true, ...spec }, undefined, { runs: RUNS, ...more }));
const nextOf = ({ object }: Observed): string => object.status?.nextScrubTime ?? '';
/** At the time of the next scrub. */
const due = (o: Observed): Observed => settled({ ...o, now: Date.parse(nextOf(o)) });
const ENDED = (o: Observed) => iso(Date.parse(nextOf(o)) + 60_000);
/** After its Job has ended with this result. */
function after(o: Observed, result: { readonly ok: boolean } & Record<string, unknown>): Observed {
  const name = scrubName(o.object, nextOf(o));
  const type = result.ok ? 'Complete' : 'Failed';
  const job = aWork(name, { type, at: ENDED(o) }, result, nextOf(o));
  return { ...o, now: Date.parse(ENDED(o)) + 1_000, jobs: [job] };
}
const INTACT = { ok: true, task: 'scrub', snapshot: { name: OTHER, uid: 'u' }, sizeBytes: 9 } as const;
const damagedAt = (name: string) =>
  ({
    ...INTACT,
    snapshot: { name, uid: 'u' },
    damage: { reason: 'SnapshotDamaged', message: 'a byte differs' },
  }) as const;
const taskOf = (o: Observed): ScrubTask => {
  const [step] = decide(o).steps;
  return pruneTaskOf((step?.do === 'create' ? step.object : undefined) as Job) as unknown as ScrubTask;
};

describe('when a scrub starts', () => {
  test('the first one starts within a week after it was asked for, at another time for another schedule', () => {
    const first = Date.parse(nextOf(planned())) - planned().now;
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(7 * DAY + HOUR + 1);
    const other = aSchedule({ scrub: 'Weekly', suspend: true });
    const object = { ...other, metadata: { ...other.metadata, uid: 'another' } };
    expect(nextOf(settled(at('05:30:00', {}, undefined, { object })))).not.toBe(nextOf(planned()));
  });

  test.each<[string, object, boolean]>([
    ['a schedule with drills has scrubs', { scrub: undefined, drill: {} }, true],
    ['a schedule without drills has none, as before', { scrub: undefined }, false],
    ['scrub: Never switches them off', { scrub: 'Never', drill: {} }, false],
    ['scrub: Daily', { scrub: 'Daily' }, true],
  ])('%s', (_name, spec, isOn) => {
    expect(nextOf(planned(spec)) !== '').toBe(isOn);
    expect(condition(decide(planned(spec)), 'SnapshotsIntact').startsWith('Unknown/Waiting')).toBe(isOn);
  });

  test('its Job starts at that very time, and once', () => {
    const world = planned();
    expect(doing(decide(world))).toEqual(['waitForNext']);
    expect(decide({ ...world, now: Date.parse(nextOf(world)) - 5_000 }).requeueAfterMs).toBe(5_000);
    const name = scrubName(world.object, nextOf(world));
    expect(doing(decide(due(world)))).toEqual(['scrub', `+${name}`]);
    expect(doing(decide({ ...due(world), jobs: [aWork(name)] }))).toEqual(['waitForNext']);
  });

  test.each<[string, (o: Observed) => Observed]>([
    ['while a prune Job runs', (o) => ({ ...o, jobs: [aWork('hourly-prune-other')] })],
    ['while a drill runs', (o) => ({ ...o, jobs: [aWork('hourly-drill-other')] })],
    ['while the scrub of an earlier time runs', (o) => ({ ...o, jobs: [aWork('hourly-scrub-other')] })],
    ['without a cluster', (o) => ({ ...o, cluster: undefined })],
    ['without the image of the operator', (o) => ({ ...o, operatorImage: '' })],
    ['S2: where the administrator does not permit the destination', (o) => ({ ...o, notPermitted: 'not in the list' })],
  ])('not %s', (_name, change) => {
    expect(doing(decide(change(due(planned()))))).toEqual(['waitForNext']);
  });

  test('not before a snapshot is stored', () => {
    expect(doing(decide(due(planned({}, { runs: [] }))))).toEqual(['waitForNext']);
  });

  test('a time that a clock that was ahead has recorded is planned again', () => {
    const ahead = { ...planned().object.status, nextScrubTime: '2031-01-01T00:00:00Z' };
    const world = at('05:30:00', { scrub: 'Weekly', suspend: true }, ahead, { runs: RUNS });
    expect(Date.parse(decide(world).latch?.nextScrubTime ?? '') - world.now).toBeLessThan(8 * DAY);
  });

  test('its task names what was verified, what is damaged, and what the operator has recorded', () => {
    const artifact = { ...STORED.artifact, uri: 's3://b/x', checksum: `sha256:${'a'.repeat(64)}` };
    const runs = [aRun('05:00:00', { ...STORED, artifact })];
    const once = settled(after(due(planned({}, { runs })), damagedAt(OTHER)));
    const status = {
      ...once.object.status,
      lastRestored: { name: NAME, time: '2026-03-01T09:05:00Z' },
    } as EtcdSnapshotScheduleStatus;
    const world = due({ ...once, object: aSchedule({ scrub: 'Weekly', suspend: true }, status) });
    expect(taskOf(world)).toMatchObject({
      task: 'scrub',
      prefix: 'backups',
      at: { kind: 's3', bucket: 'b' },
      recorded: [{ name: NAME, sha256: 'a'.repeat(64) }],
      allRecordedFrom: Date.parse('2026-03-01T05:00:00Z'),
      damaged: [{ name: OTHER, uid: 'u' }],
      newest: { name: NAME, uid: 'run-05:00:00', key: `backups/${NAME}.db` },
      verified: [
        { name: OTHER, uid: 'u', time: Date.parse(status.lastScrub?.time ?? '') },
        { name: NAME, time: Date.parse('2026-03-01T09:05:00Z') },
      ],
    });
  });
});

test('the newest snapshot is not looked for where it was not stored: the destination was changed since', () => {
  const destination = { pvc: { claimName: 'new' } };
  expect(taskOf(due(planned({ destination }))).newest).toBeUndefined();
  expect(taskOf(due(planned({ layout: 'ByCluster' }))).newest).toBeUndefined();
});

describe('the result of a scrub', () => {
  const world = due(planned());

  test('an intact snapshot: recorded, reported, and the next scrub is a week later', () => {
    const plan = decide(after(world, INTACT));
    expect(plan.rule).toBe('record');
    expect(plan.latch).toMatchObject({
      lastScrub: { name: OTHER, time: ENDED(world), succeeded: true, sizeBytes: 9 },
      scrubbed: [{ name: OTHER, uid: 'u', time: ENDED(world) }],
    });
    expect(Date.parse(plan.latch?.nextScrubTime ?? '') - Date.parse(ENDED(world))).toBe(7 * DAY + 1_000);
    expect(condition(plan, 'SnapshotsIntact')).toBe(
      `True/Intact: ${OTHER} was read, and is as it was when it was stored`,
    );
    expect(events(plan)).toEqual([`Normal ScrubSucceeded: ${OTHER} was read, and is as it was when it was stored`]);
    expect(doing(decide(settled(after(world, INTACT))))).toEqual(['waitForNext']);
  });

  test('a damaged snapshot: a condition, an Event, and no copy for retention', () => {
    const plan = decide(after(world, damagedAt(OTHER)));
    expect(condition(plan, 'SnapshotsIntact')).toContain(
      `False/SnapshotDamaged: ${OTHER} cannot be restored any more: a byte differs`,
    );
    expect(events(plan)).toEqual([
      `Warning StoredSnapshotDamaged: ${OTHER} cannot be restored any more: a byte differs`,
    ]);
    const pruning = settled(after(world, damagedAt(OTHER)));
    const object = aSchedule({ ...pruning.object.spec, retention: { keepLast: 1 } }, pruning.object.status);
    const [step] = decide({ ...pruning, object, jobs: [] }).steps;
    expect(step?.do === 'create' && pruneTaskOf(step.object as Job).damaged).toEqual([{ name: OTHER, uid: 'u' }]);
  });

  test('a damaged one is reported until it is stored no longer, or is read again without damage', () => {
    const once = settled(after(world, damagedAt(OTHER)));
    const next = due(once);
    const again = settled(after(next, { ...INTACT, snapshot: { name: NAME } }));
    expect(condition(decide(again), 'SnapshotsIntact')).toContain(`False/SnapshotDamaged: ${OTHER}`);
    const deleted = settled(after(next, { ...INTACT, snapshot: { name: NAME }, absent: [OTHER] }));
    expect(condition(decide(deleted), 'SnapshotsIntact')).toContain(`True/Intact: ${NAME}`);
    expect(condition(decide(settled(after(next, INTACT))), 'SnapshotsIntact')).toContain(`True/Intact: ${OTHER}`);
  });

  test('after a damaged one, the next is read a day later: it may not be the only one', () => {
    const wait = (o: Observed, result: Parameters<typeof after>[1]): number =>
      Date.parse(decide(after(o, result)).latch?.nextScrubTime ?? '') - Date.parse(ENDED(o));
    expect(wait(world, damagedAt(OTHER))).toBe(DAY + 1_000);
    const known = due(settled(after(world, damagedAt(OTHER))));
    expect(wait(known, damagedAt(OTHER))).toBe(7 * DAY + 1_000);
    expect(wait(due(planned({ scrub: 'Daily' })), damagedAt(OTHER))).toBe(DAY + 1_000);
  });

  test('one that could not be finished says nothing about a snapshot, and is retried a day later', () => {
    const away = { ok: false, reason: 'StoreUnreachable', message: 'no connection' };
    const plan = decide(after(world, away));
    expect(condition(plan, 'SnapshotsIntact')).toBe(
      'Unknown/StoreUnreachable: the last scrub could not be finished: no connection',
    );
    expect(events(plan)).toEqual(['Warning ScrubFailed: the scrub could not be finished: no connection']);
    expect(Date.parse(plan.latch?.nextScrubTime ?? '') - Date.parse(ENDED(world))).toBe(DAY + 1_000);
    expect(plan.latch?.scrubbed).toBeUndefined();
  });

  test('a name that is none of this schedule stays out of the status', () => {
    const plan = decide(after(world, { ...INTACT, snapshot: { name: 'another-202603010500' } }));
    expect(plan.latch?.lastScrub).toEqual({ time: ENDED(world), succeeded: true });
    expect(condition(plan, 'SnapshotsIntact')).toContain('Unknown/Waiting: the last scrub found no snapshot');
  });

  test('at most 64 results are kept, and a damaged one is never dropped for intact ones', () => {
    const old = (minute: number) => `hourly-2026010101${String(minute).padStart(2, '0')}`;
    const time = '2026-01-01T00:00:00Z';
    const scrubbed = Array.from({ length: 60 }, (_, i) => ({ name: old(i), time })).concat(
      Array.from({ length: 4 }, (_, i) => ({ name: `hourly-20260101020${i}`, time })),
    );
    const [first, ...rest] = scrubbed;
    const before = [{ ...(first as { name: string; time: string }), reason: 'WrongKey' }, ...rest];
    const object = aSchedule(world.object.spec, { ...world.object.status, scrubbed: before });
    const kept = decide(after({ ...world, object }, INTACT)).latch?.scrubbed ?? [];
    expect(kept).toHaveLength(64);
    expect([kept[0]?.name, kept[1]?.name, kept.at(-1)?.name]).toEqual([old(0), old(2), OTHER]);
  });

  test('without scrubs there is neither a condition nor a next time', () => {
    const done = settled(after(world, INTACT));
    const off = decide({ ...done, jobs: [], object: aSchedule({ suspend: true }, done.object.status) });
    expect(condition(off, 'SnapshotsIntact')).toContain('undefined');
    expect(off.status.nextScrubTime).toBeUndefined();
    expect(off.requeueAfterMs).toBe(HOUR);
  });
});

test('retention waits for a scrub: what is removed while it is read would look damaged', () => {
  const world = planned({ retention: { keepLast: 1 } });
  const { prune } = jobNames(world.object, NAME);
  expect(doing(decide(world))).toEqual(['prune', `+${prune}`]);
  expect(doing(decide({ ...world, jobs: [aWork('hourly-scrub-x')] }))).toEqual(['waitForNext']);
});

describe('the newest snapshot when a scrub has found it damaged', () => {
  const { object } = settled(after(due(planned()), damagedAt(NAME)));
  const proven = { name: OTHER, time: '2026-03-01T04:30:00Z', takenAt: '2026-03-01T04:00:01Z' };
  const withProven = { ...object, status: { ...object.status, lastRestored: proven } };

  test('is no backup any more: the last one that a drill restored is', () => {
    expect(uselessBackup(object)).toEqual({ name: NAME, reason: 'SnapshotDamaged' });
    expect(backedUpAt(object)).toBeUndefined();
    expect(backedUpAt(withProven)).toBe(Date.parse(proven.takenAt));
    const scrubbed = [...(object.status?.scrubbed ?? []), { name: OTHER, time: proven.time, reason: 'WrongKey' }];
    expect(backedUpAt({ ...withProven, status: { ...withProven.status, scrubbed } })).toBeUndefined();
  });

  const restored = (schedule: typeof object, runs: readonly EtcdSnapshot[]) =>
    resolveSource(
      { latest: { scheduleRef: { name: 'hourly' } } },
      {
        schedule: () => schedule,
        snapshot: (name) => [aRun('04:00:00', STORED), ...runs].find((each) => each.metadata.name === name),
        snapshotsOf: () => runs,
      },
    );
  const [early, middle, newest] = ['02:00:00', '04:30:00', '05:00:00'].map((time) => aRun(time, STORED)) as [
    EtcdSnapshot,
    EtcdSnapshot,
    EtcdSnapshot,
  ];

  test('is not what latest.scheduleRef restores: the one before it is, or the last one that a drill restored', () => {
    expect(restored(withProven, [early, middle, newest])).toMatchObject({
      chosen: { snapshot: 'hourly-202603010430' },
    });
    const both = [...(object.status?.scrubbed ?? []), { name: 'hourly-202603010430', time: proven.time, reason: 'x' }];
    const twice = { ...withProven, status: { ...withProven.status, scrubbed: both } };
    expect(restored(twice, [early, middle, newest])).toMatchObject({ chosen: { snapshot: 'hourly-202603010200' } });
    expect(restored(withProven, [newest])).toMatchObject({ chosen: { snapshot: OTHER } });
    expect(restored(object, [newest])).toMatchObject({ blocked: { reason: 'SnapshotNotReady' } });
  });

  test('is restored from its copy, unless a drill could not restore it either', () => {
    const copyTo = { destination: { pvc: { claimName: 'second' } } };
    const artifact = { uri: 's3://b/x', checksum: `sha256:${'a'.repeat(64)}` };
    const status = { ...STORED, artifact, copy: { uri: 'file:///copy/data/x' } };
    const copied = { ...newest, spec: { ...newest.spec, copyTo }, status };
    expect(restored(withProven, [middle, copied])).toMatchObject({
      chosen: { snapshot: NAME, source: { copy: { pvc: { claimName: 'second' } } } },
    });
    const lastDrill = { name: NAME, time: proven.time, succeeded: false, reason: 'DrillFailed' };
    const unrestorable = { ...withProven, status: { ...withProven.status, lastDrill } };
    expect(restored(unrestorable, [middle, copied])).toMatchObject({ chosen: { snapshot: OTHER } });
  });
});
