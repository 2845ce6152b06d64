/** Drills and retention: when no snapshot is removed, and which one never is. */
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
  INCONCLUSIVE,
  pruneTaskOf,
  RESTORED,
  STORED,
  settled,
} from '../../../test/support/builders/schedules.ts';
import { FAILURES, type FailureReason } from '../../domain/agent-result.ts';
import type { PruneTask } from '../../domain/agent-task.ts';
import type { Job } from '../../gen/kube.ts';
import { jobNames } from './build.ts';
import { decide } from './decide.ts';
import type { Observed, OwnedJob } from './observed.ts';

describe('retention and a drill', () => {
  const spec = { retention: { keepLast: 1 }, drill: {} };
  const runs = [aRun('05:00:00', STORED)];
  const stored = settled(at('05:30:00', spec, undefined, { runs }));
  const { drill, prune } = jobNames(stored.object, 'hourly-202603010500');
  const after = (...work: Parameters<typeof aWork> extends [string, ...infer Rest] ? Rest : never): Observed =>
    settled({ ...stored, jobs: [aWork(drill, ...work)] });
  const failed = (reason: FailureReason) => after({ type: 'Failed' }, { ok: false, reason, message: '' });
  const passed = after({ type: 'Complete' }, RESTORED);

  test('a stored snapshot gets its drill before an older one is removed', () => {
    expect(doing(decide(stored))).toEqual(['drill', `+${drill}`]);
    expect(doing(decide({ ...stored, jobs: [aWork(drill)] }))).toEqual(['waitForNext']);
    const atSix = { ...stored, now: Date.parse('2026-03-01T06:00:00Z') };
    expect(doing(decide(atSix)), 'a snapshot that is due does not wait for a drill').toEqual([
      'startSnapshot',
      '+hourly-202603010600',
    ]);
    expect(doing(decide(passed))).toEqual(['prune', `+${prune}`]);
  });

  test('S2: neither prunes nor drills where the administrator does not permit the destination any more', () => {
    expect(doing(decide({ ...passed, notPermitted: 'the store is not in the list' }))).toEqual(['waitForNext']);
    expect(doing(decide({ ...stored, notPermitted: 'the store is not in the list' }))).toEqual(['waitForNext']);
  });

  test('nothing is removed after a failed drill, until a drill succeeds', () => {
    const useless = failed('SnapshotDamaged');
    expect(doing(decide(useless))).toEqual(['waitForNext']);
    expect(condition(decide(useless), 'RetentionApplied')).toBe(
      'False/DrillFailed: no snapshot is removed until a restore drill succeeds again: the drill of hourly-202603010500 failed (SnapshotDamaged)',
    );
    const { status } = passed.object;
    expect(doing(decide({ ...useless, object: aSchedule(spec, status), jobs: passed.jobs }))).toEqual([
      'prune',
      `+${prune}`,
    ]);
  });

  test.each([...FAILURES, 'JobFailed', 'ResultMissing'].filter((reason) => !INCONCLUSIVE.includes(reason)))(
    'is blocked by a drill that failed with %s: the snapshot may be the reason',
    (reason) => {
      const { object, ...world } = stored;
      const lastDrill = { name: 'hourly-202603010500', time: '2026-03-01T09:05:00Z', succeeded: false, reason };
      const held = { ...world, object: aSchedule(spec, { ...object.status, lastDrill }) };
      expect(doing(decide(held))).toEqual(['waitForNext']);
      expect(condition(decide(held), 'RetentionApplied')).toBe(
        `False/DrillFailed: no snapshot is removed until a restore drill succeeds again: the drill of hourly-202603010500 failed (${reason})`,
      );
    },
  );

  test('stays blocked when the next drill does not reach the store, until one restores a snapshot', () => {
    const later = (jobs: readonly OwnedJob[]): Observed => {
      const next = { runs: [...runs, aRun('06:00:00', STORED)], now: Date.parse('2026-03-01T06:30:00Z') };
      return settled(settled({ ...failed('DrillFailed'), ...next, jobs }));
    };
    const ofNext = jobNames(stored.object, 'hourly-202603010600');
    const drilled = (end: 'Complete' | 'Failed', result: unknown) =>
      later([aWork(ofNext.drill, { type: end }, result, 'hourly-202603010600')]);
    const away = drilled('Failed', { ok: false, reason: 'StoreUnreachable', message: '' });
    expect(away.object.status?.lastDrill).toMatchObject({
      reason: 'StoreUnreachable',
      earlierFailure: { name: 'hourly-202603010500', reason: 'DrillFailed' },
    });
    expect(doing(decide(away))).toEqual(['waitForNext']);
    expect(condition(decide(away), 'RetentionApplied')).toContain(
      'the drill of hourly-202603010500 failed (DrillFailed)',
    );
    expect(doing(decide(drilled('Complete', RESTORED)))).toEqual(['prune', `+${ofNext.prune}`]);
  });

  describe('the newest snapshot that a drill restored', () => {
    const proven = { name: 'hourly-202603010500', uid: 'run-05:00:00' };
    /** The snapshot that the prune Job must keep. */
    const handedOver = (o: Observed): PruneTask['restored'] => {
      const [step] = decide(o).steps;
      return step?.do === 'create' ? pruneTaskOf(step.object as Job).restored : undefined;
    };

    test('is recorded with the drill, and passed to the prune Job', () => {
      const { latch } = decide({ ...stored, jobs: passed.jobs });
      expect(latch?.lastRestored).toEqual({ ...proven, time: '2026-03-01T09:05:00Z', uri: ARTIFACT.uri });
      expect(handedOver(passed)).toEqual(proven);
    });

    test('is still passed when later drills failed, and when drills are disabled', () => {
      const next = settled({
        ...passed,
        runs: [...runs, aRun('06:00:00', STORED)],
        now: Date.parse('2026-03-01T06:30:00Z'),
      });
      const { drill: job } = jobNames(next.object, 'hourly-202603010600');
      const result = { ok: false, reason: 'NoSpace', message: '' };
      const after = settled({ ...next, jobs: [aWork(job, { type: 'Failed' }, result, 'hourly-202603010600')] });
      expect(after.object.status?.lastDrill).toMatchObject({ name: 'hourly-202603010600', succeeded: false });
      expect(handedOver(after)).toEqual(proven);
      const off = aSchedule({ retention: { keepLast: 1 } }, after.object.status);
      expect(handedOver({ ...after, object: off })).toEqual(proven);
    });

    test('is the next one as soon as its drill has succeeded', () => {
      const next = { runs: [...runs, aRun('06:00:00', STORED)], now: Date.parse('2026-03-01T06:30:00Z') };
      const { drill: job } = jobNames(stored.object, 'hourly-202603010600');
      const jobs = [aWork(job, { type: 'Complete' }, RESTORED, 'hourly-202603010600')];
      const after = settled(settled({ ...passed, ...next, jobs }));
      expect(handedOver(after)).toEqual({ name: 'hourly-202603010600', uid: 'run-06:00:00' });
    });

    test('is known by its name alone when its EtcdSnapshot was deleted and an earlier operator recorded the drill', () => {
      const { lastDrill, ...status } = settled({ ...passed, runs: [] }).object.status ?? {};
      const { lastRestored: _none, ...before } = status;
      const upgraded = { ...passed, object: aSchedule(spec, { ...before, ...(lastDrill && { lastDrill }) }), runs: [] };
      expect(decide(upgraded).latch).toEqual({
        lastRestored: { name: 'hourly-202603010500', time: '2026-03-01T09:05:00Z' },
      });
      expect(handedOver(settled(upgraded))).toEqual({ name: 'hourly-202603010500' });
      const stale = { name: 'hourly-202603010400', uid: 'run-04:00:00', time: '2026-03-01T08:05:00Z' };
      const downgraded = { ...upgraded.object.status, lastRestored: stale };
      expect(decide({ ...upgraded, object: aSchedule(spec, downgraded) }).latch).toMatchObject({
        lastRestored: { name: 'hourly-202603010500' },
      });
    });
  });

  test.each<[string, Observed]>([
    ['a drill did not reach the store', failed('StoreUnreachable')],
    ['a drill was denied access', failed('AccessDenied')],
    ['a drill had no space', failed('NoSpace')],
    [
      'drills are disabled',
      {
        ...failed('DrillFailed'),
        object: aSchedule({ retention: { keepLast: 1 } }, failed('DrillFailed').object.status),
      },
    ],
    ['a drill cannot be created at all', { ...stored, cluster: aCluster({ spec: { image: { repository: 'evil' } } }) }],
  ])('it is not blocked when %s', (_name, world) => {
    expect(doing(decide(world))[0]).toBe('prune');
  });
});
