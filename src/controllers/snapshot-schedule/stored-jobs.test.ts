/** Prune and drill Jobs. */
import { describe, expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import {
  ARTIFACT,
  aRun,
  aSchedule,
  at,
  aWork,
  condition,
  doing,
  events,
  FAILED,
  RESTORED,
  STORED,
  settled,
} from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshotScheduleSpec } from '../../api/etcd-snapshot-schedule.ts';
import { jobNames, policyOf } from './build.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

describe('retention', () => {
  const spec = { retention: { keepLast: 2 } };
  const runs = [aRun('05:00:00', STORED)];
  const stored = settled(at('05:30:00', spec, undefined, { runs }));
  const { prune } = jobNames(stored.object, 'hourly-202603010500');
  const withJob = (...work: Parameters<typeof aWork> extends [string, ...infer Rest] ? Rest : never): Observed => ({
    ...stored,
    jobs: [aWork(prune, ...work)],
  });
  const done = withJob({ type: 'Complete' }, { ok: true, task: 'prune', kept: 2, removed: 5 });

  test('is applied after each stored snapshot', () => {
    const plan = decide(stored);
    expect(doing(plan)).toEqual(['prune', `+${prune}`]);
    expect(condition(plan, 'RetentionApplied')).toBe('Unknown/Applying: after hourly-202603010500');
  });

  test.each<[string, Observed]>([
    ['without a retention', settled(at('05:30:00', {}, undefined, { runs }))],
    ['before anything is stored', settled(at('05:30:00', spec, undefined, { runs: [aRun('05:00:00', FAILED)] }))],
    ['while its Job runs', withJob()],
    ['without a cluster', { ...stored, cluster: undefined }],
    ['without the image of the operator', { ...stored, operatorImage: '' }],
    ['while another prune Job runs', { ...stored, jobs: [aWork('hourly-prune-other')] }],
    ['when it is done and recorded', settled(done)],
  ])('not %s', (_name, world) => {
    expect(doing(decide(world))).toEqual(['waitForNext']);
  });

  test.each<[string, () => Observed, string]>([
    [
      'nothing is stored yet',
      () => settled(at('05:30:00', spec, undefined, { runs: [aRun('05:00:00', FAILED)] })),
      'Unknown/Waiting: no snapshot is stored yet',
    ],
    [
      'the operator has no image',
      () => at('05:30:00', spec, undefined, { runs, operatorImage: '' }),
      'Unknown/Waiting: the operator image is not configured',
    ],
    ['its Job runs', () => withJob(), 'Unknown/Applying: after hourly-202603010500'],
    [
      'its Job is deleted before its result is known',
      () => ({ ...settled(withJob()), jobs: [] }),
      'Unknown/Applying: after hourly-202603010500',
    ],
    [
      'it was applied after an earlier snapshot, and its Job for the next one runs',
      () => {
        const next = { runs: [...runs, aRun('06:00:00', STORED)], now: Date.parse('2026-03-01T06:30:00Z') };
        return settled({ ...settled(done), ...next, jobs: [] });
      },
      'True/Applied: 2 snapshots are kept and 5 were removed after hourly-202603010500',
    ],
  ])('its condition when %s', (_what, observed, expected) => {
    expect(condition(decide(observed()), 'RetentionApplied')).toBe(expected);
  });

  test('its result is recorded, also when the Job is deleted', () => {
    expect(decide(done).latch).toEqual({
      stored: {
        kept: 2,
        removed: 5,
        time: '2026-03-01T09:05:00Z',
        for: 'hourly-202603010500',
        policy: policyOf(done.object),
      },
    });
    expect(condition(decide(done), 'RetentionApplied')).toBe(
      'True/Applied: 2 snapshots are kept and 5 were removed after hourly-202603010500',
    );
    const deleted = { ...settled(done), jobs: [] };
    expect(doing(decide(deleted))).toEqual(['waitForNext']);
    expect(condition(decide(deleted), 'RetentionApplied')).toContain('True/Applied');
  });

  test('its condition names what the store still keeps: locked snapshots, and older versions of removed ones', () => {
    const result = { ok: true, task: 'prune', kept: 4, removed: 5, locked: 2, hidden: 3 };
    const held = withJob({ type: 'Complete' }, result);
    expect(decide(held).latch).toMatchObject({ stored: { kept: 4, removed: 5, locked: 2, hidden: 3 } });
    const message = condition(decide(settled(held)), 'RetentionApplied');
    expect(message).toContain('True/Applied: 4 snapshots are kept');
    expect(message).toContain('2 of those kept are locked by the store');
    expect(message).toContain('3 of those removed are still stored');
  });

  test('another retention or destination is applied at once', () => {
    const world = settled(done);
    const edited = {
      ...world,
      object: aSchedule({ retention: { keepLast: 9 } }, world.object.status),
      jobs: world.jobs,
    };
    expect(doing(decide(edited))[0]).toBe('prune');
    expect(doing(decide(edited))[1]).not.toBe(`+${prune}`);
  });

  test('a failure is reported with its reason, and retried when the Job is deleted', () => {
    const failed = withJob(
      { type: 'Failed', reason: 'BackoffLimitExceeded' },
      { ok: false, reason: 'AccessDenied', message: 'may not delete' },
    );
    const plan = decide(failed);
    expect(doing(plan)).toEqual(['waitForNext']);
    expect(condition(plan, 'RetentionApplied')).toBe('False/AccessDenied: retention failed: may not delete');
    expect(events(plan)).toEqual(['Warning RetentionFailed: retention failed: may not delete']);
    const deleted = { ...settled(failed), jobs: [] };
    expect(doing(decide(deleted))).toEqual(['prune', `+${prune}`]);
    expect(condition(decide(deleted), 'RetentionApplied')).toContain('False/AccessDenied');
  });

  test('is reported, and applied again, when another snapshot was stored before it was done', () => {
    const late = { runs: [...runs, aRun('06:00:00', STORED)], now: Date.parse('2026-03-01T06:30:00Z') };
    const since = settled({ ...withJob(), ...late });
    const failed = { type: 'Failed', reason: 'DeadlineExceeded' } as const;
    expect(condition(decide({ ...since, jobs: [aWork(prune, failed)] }), 'RetentionApplied')).toContain(
      'False/TimedOut',
    );
    const plan = decide({ ...since, jobs: done.jobs });
    expect(plan.latch?.stored?.for).toBe('hourly-202603010500');
    expect(condition(plan, 'RetentionApplied')).toContain(
      'True/Applied: 2 snapshots are kept and 5 were removed after hourly-2',
    );
    const next = settled({ ...since, jobs: done.jobs });
    expect(doing(decide(next))).toEqual(['prune', `+${jobNames(next.object, 'hourly-202603010600').prune}`]);
  });

  test('a removed retention has no condition any more', () => {
    const world = settled(done);
    expect(condition(decide({ ...world, object: aSchedule({}, world.object.status) }), 'RetentionApplied')).toContain(
      'undefined',
    );
  });
});

describe('a drill', () => {
  const spec = { drill: {} };
  const runs = [aRun('05:00:00', STORED)];
  const stored = settled(at('05:30:00', spec, undefined, { runs }));
  const { drill } = jobNames(stored.object, 'hourly-202603010500');
  const passed = {
    ...stored,
    jobs: [aWork(drill, { type: 'Complete' }, RESTORED)],
  };
  const failed = {
    ...stored,
    jobs: [aWork(drill, { type: 'Failed' }, { ok: false, reason: 'SnapshotDamaged', message: 'a byte differs' })],
  };
  const next = (world: Observed, spec2: Partial<EtcdSnapshotScheduleSpec> = spec): Observed =>
    settled({
      ...world,
      object: aSchedule(spec2, world.object.status),
      now: Date.parse('2026-03-01T06:30:00Z'),
      runs: [...runs, aRun('06:00:00', STORED)],
    });

  test('is created for the first stored snapshot', () => {
    expect(doing(decide(stored))).toEqual(['drill', `+${drill}`]);
    expect(condition(decide(stored), 'DrillSucceeded')).toBe(
      'Unknown/Waiting: the restore drill of the last snapshot is running',
    );
  });

  test.each<[string, Observed]>([
    ['when nothing is stored', settled(at('05:30:00', spec, undefined, { runs: [aRun('05:00:00', FAILED)] }))],
    ['while it runs', { ...stored, jobs: [aWork(drill)] }],
    ['while another one runs', { ...stored, jobs: [aWork('hourly-drill-other')] }],
    [
      'while a prune Job runs: it protects the snapshot of the previous drill',
      { ...stored, jobs: [aWork('hourly-prune-other')] },
    ],
    ['twice for one snapshot', settled(passed)],
    ['twice for one snapshot, when its Job is deleted', { ...settled(passed), jobs: [] }],
    ['twice for one snapshot, although it failed', { ...settled(failed), jobs: [] }],
    [
      'with an image that is not allowed',
      { ...stored, cluster: aCluster({ spec: { image: { repository: 'evil' } } }) },
    ],
    ['when its EtcdSnapshot is deleted', { ...stored, runs: [] }],
    ['for every snapshot, when only every third is wanted', next(settled(passed), { drill: { every: 3 } })],
  ])('is not created %s', (_name, world) => {
    expect(doing(decide(world))).toEqual(['waitForNext']);
  });

  test.each<[string, Observed, string]>([
    [
      'its image is not allowed',
      { ...stored, cluster: aCluster({ spec: { image: { repository: 'evil' } } }) },
      "image.repository evil of its EtcdCluster is not on the administrator's list of etcd images",
    ],
    [
      'its EtcdSnapshot is deleted',
      { ...stored, runs: [] },
      'the EtcdSnapshot was deleted; the next one gets a restore drill',
    ],
    ['the operator image is unknown', { ...stored, operatorImage: '' }, 'the operator image is not configured'],
    ['there is no cluster', { ...stored, cluster: undefined }, 'its EtcdCluster does not exist'],
  ])('is not reported as running when %s', (_name, world, reason) => {
    const message = `hourly-202603010500 gets no restore drill: ${reason}`;
    expect(condition(decide(world), 'DrillSucceeded')).toBe(`Unknown/Waiting: ${message}`);
  });

  test('that runs is reported, whatever was deleted since it was created', () => {
    const world = { ...stored, runs: [], jobs: [aWork(drill)] };
    expect(condition(decide(world), 'DrillSucceeded')).toBe(
      'Unknown/Waiting: the restore drill of the last snapshot is running',
    );
  });

  test('that cannot be created is reported with the last one', () => {
    const held = { ...next(settled(passed)), operatorImage: '' };
    expect(condition(decide(held), 'DrillSucceeded')).toMatch(
      /^True\/Restored: hourly-202603010500 .*; hourly-202603010600 gets no restore drill: the operator image is not configured/,
    );
  });

  test('is created for every Nth snapshot, and for the next one after a failed drill', () => {
    expect(doing(decide(next(settled(passed))))[0]).toBe('drill');
    expect(doing(decide(next(settled(failed), { drill: { every: 3 } })))[0]).toBe('drill');
    const third = next(settled(passed), { drill: { every: 3 } });
    const more = settled({
      ...third,
      now: Date.parse('2026-03-01T08:30:00Z'),
      runs: [...third.runs, aRun('07:00:00', STORED), aRun('08:00:00', STORED)],
    });
    expect(doing(decide(more))[0]).toBe('drill');
  });

  test('that succeeded reports what was compared', () => {
    const plan = decide(passed);
    expect(plan.latch?.lastDrill).toEqual({
      name: 'hourly-202603010500',
      time: '2026-03-01T09:05:00Z',
      after: 1,
      succeeded: true,
      revision: 7,
      totalKeys: 3,
      hashCompared: true,
    });
    expect(condition(plan, 'DrillSucceeded')).toBe(
      'True/Restored: hourly-202603010500 was restored, and revision 7 and 3 keys with their hash compared',
    );
    expect(events(plan)).toEqual([
      'Normal DrillSucceeded: hourly-202603010500 was restored, and revision 7 and 3 keys with their hash compared',
    ]);
  });

  test('that succeeded reports how long a recovery takes', () => {
    const plan = decide({
      ...passed,
      jobs: [aWork(drill, { type: 'Complete' }, { ...RESTORED, recoveryMilliseconds: 40_100 })],
    });
    expect(plan.latch?.lastDrill).toMatchObject({ recoverySeconds: 41 });
    expect(condition(plan, 'DrillSucceeded')).toContain('hourly-202603010500 was restored in 41 s, and');
  });

  test('that succeeded warns when the volumes of the cluster are too small for a restore', () => {
    const artifact = { ...ARTIFACT, databaseBytes: 900 * 2 ** 20 };
    const sized = (size: string): Observed => {
      const { status } = settled(passed).object;
      const lastSuccessful = status?.lastSuccessful && { ...status.lastSuccessful, artifact };
      return {
        ...settled(passed),
        object: aSchedule({ drill: {} }, { ...status, ...(lastSuccessful && { lastSuccessful }) }),
        cluster: aCluster({ spec: { storage: { size, medium: '' } } }),
      };
    };
    expect(condition(decide(sized('1Gi')), 'DrillSucceeded')).toMatch(
      /^False\/VolumeTooSmall: .* its database needs 1044 MiB, and storage\.size is 1Gi\. Set a larger storage\.size$/,
    );
    expect(condition(decide(sized('2Gi')), 'DrillSucceeded')).toMatch(/^True\/Restored/);
  });

  test('that was killed says nothing about the snapshot', () => {
    const killed = { ok: false, reason: 'OutOfMemory', message: 'etcd was killed' };
    const plan = decide({ ...passed, jobs: [aWork(drill, { type: 'Failed' }, killed)] });
    expect(condition(plan, 'DrillSucceeded')).toBe(
      'False/OutOfMemory: the drill of hourly-202603010500 could not be finished: etcd was killed',
    );
  });

  test('that ends after the next snapshot was stored is still reported, and the next one gets a drill', () => {
    const late = settled({
      ...stored,
      now: Date.parse('2026-03-01T06:30:00Z'),
      runs: [...runs, aRun('06:00:00', STORED)],
      jobs: [aWork(drill)],
    });
    expect(doing(decide(late))).toEqual(['waitForNext']);
    const plan = decide({ ...late, jobs: failed.jobs });
    expect(condition(plan, 'DrillSucceeded')).toContain('False/SnapshotDamaged: hourly-202603010500 could not be');
    expect(events(plan)).toContain('Warning DrillFailed: hourly-202603010500 could not be restored: a byte differs');
    const ended = settled({ ...late, jobs: passed.jobs });
    expect(ended.object.status?.lastDrill).toMatchObject({ name: 'hourly-202603010500', after: 1, succeeded: true });
    expect(doing(decide(ended))).toEqual(['drill', `+${jobNames(ended.object, 'hourly-202603010600').drill}`]);
  });

  test('that failed reports its reason each time', () => {
    const plan = decide(failed);
    expect(condition(plan, 'DrillSucceeded')).toBe(
      'False/SnapshotDamaged: hourly-202603010500 could not be restored: a byte differs',
    );
    expect(events(plan)).toEqual(['Warning DrillFailed: hourly-202603010500 could not be restored: a byte differs']);
  });
});

describe('the result of a Job', () => {
  const runs = [aRun('05:00:00', STORED)];
  const stored = settled(at('05:30:00', { retention: { keepLast: 2 } }, undefined, { runs }));
  const { prune } = jobNames(stored.object, 'hourly-202603010500');
  const reported = (...work: Parameters<typeof aWork> extends [string, ...infer Rest] ? Rest : never) =>
    condition(
      decide({ ...stored, now: Date.parse('2026-03-01T09:06:00Z'), jobs: [aWork(prune, ...work)] }),
      'RetentionApplied',
    );
  test.each([
    [
      'is rejected when it is about something else',
      reported({ type: 'Complete' }, { ok: true, task: 'restore' }),
      'False/ResultMissing',
    ],
    ['is rejected when it is garbage', reported({ type: 'Complete' }, 'rm -rf'), 'False/ResultMissing'],
    [
      'is rejected when the Job failed',
      reported({ type: 'Failed', reason: 'BackoffLimitExceeded' }, { ok: true, task: 'prune', kept: 0, removed: 9 }),
      'False/JobFailed',
    ],
    ['may be missing', reported({ type: 'Failed', reason: 'BackoffLimitExceeded' }), 'False/JobFailed'],
    ['is missing on a lost node', reported({ type: 'FailureTarget', reason: 'DeadlineExceeded' }), 'False/TimedOut'],
    ['is missing when it took too long', reported({ type: 'Failed', reason: 'DeadlineExceeded' }), 'False/TimedOut'],
  ])('%s', (_name, condition_, expected) => {
    expect(condition_).toContain(expected);
  });

  test('is waited for while its Pod may be terminating', () => {
    const jobs = [aWork(prune, { type: 'FailureTarget', reason: 'DeadlineExceeded' })];
    const world = { ...stored, now: Date.parse('2026-03-01T09:05:10Z'), jobs };
    const object = aSchedule({ ...world.object.spec, suspend: true }, world.object.status);
    expect(condition(decide({ ...world, object }), 'RetentionApplied')).toContain('Unknown/Applying');
    expect(decide({ ...world, object }).requeueAfterMs).toBe(50_000);
  });

  test('is waited for a little: the cache may receive the Pod after its Job', () => {
    const world = { ...stored, now: Date.parse('2026-03-01T09:05:01Z'), jobs: [aWork(prune, { type: 'Complete' })] };
    const object = aSchedule({ ...world.object.spec, suspend: true }, world.object.status);
    expect(decide({ ...world, object }).requeueAfterMs).toBe(14_000);
  });
});
