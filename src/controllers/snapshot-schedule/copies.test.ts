/** Copies of a schedule: its snapshots have the second location, and the copies a retention of their own. */
import { describe, expect, test } from 'vitest';
import {
  aRun,
  aSchedule,
  at,
  aWork,
  condition,
  doing,
  pruneTaskOf,
  STORED,
  settled,
} from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { scheduledSnapshot } from '../../domain/scheduled-snapshot.ts';
import type { Job } from '../../gen/kube.ts';
import { copyPolicyOf, jobNames } from './build.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const destination = { pvc: { claimName: 'second', subPath: 'copies' } };
const spec = { suspend: true, copyTo: { destination, retention: { keepLast: 2 } } };
const NAME = 'hourly-202603010500';
const withCopy = (time: string, copy?: EtcdSnapshotStatus['copy']) => {
  const run = aRun(time, { ...STORED, ...(copy && { copy }) });
  return { ...run, spec: { ...run.spec, copyTo: { destination } } };
};
const world = (copy?: EtcdSnapshotStatus['copy'], more = {}): Observed =>
  settled(at('05:30:00', { ...spec, ...more }, undefined, { runs: [withCopy('05:00:00', copy)] }));
const COPIED = { uri: 'file:///copy/data/copies/x.db', time: '2026-03-01T05:10:00Z' };

test('each snapshot of the schedule has its second location, without the retention', () => {
  expect(scheduledSnapshot(aSchedule(spec), 0).spec.copyTo).toEqual({ destination });
  expect(scheduledSnapshot(aSchedule(), 0).spec).not.toHaveProperty('copyTo');
});

test.each<[string, EtcdSnapshotStatus['copy'], string]>([
  ['is being made', undefined, `Unknown/Copying: ${NAME} is being copied`],
  ['is there', COPIED, `True/SnapshotCopied: ${NAME} is copied to ${COPIED.uri}`],
  [
    'failed',
    { attempts: 1, reason: 'AccessDenied', message: 'no' },
    `False/AccessDenied: the copy of ${NAME} failed: no`,
  ],
])('the newest copy %s', (_what, copy, expected) => {
  expect(condition(decide(world(copy)), 'CopySucceeded')).toBe(expected);
  expect(condition(decide(world(copy)), 'SnapshotSucceeded')).toContain('True/');
});

describe('the retention of the copies', () => {
  const { copies } = jobNames(world().object, NAME);

  test('is applied at the second location after each copy, and not before there is one', () => {
    expect(doing(decide(world()))).toEqual(['waitForNext']);
    const plan = decide(world(COPIED));
    expect(doing(plan)).toEqual(['pruneCopies', `+${copies}`]);
    const [step] = plan.steps;
    expect(step?.do === 'create' && pruneTaskOf(step.object as Job)).toMatchObject({
      task: 'prune',
      at: { kind: 'pvc' },
      prefix: 'copies',
      retention: { keepLast: 2 },
    });
  });

  test('is not applied where no copy was made yet: copyTo may name the location of the snapshots themselves', () => {
    const other = world(COPIED, { copyTo: { ...spec.copyTo, destination: aSchedule().spec.destination } });
    expect(doing(decide(other))).toEqual(['waitForNext']);
  });

  test('is not applied while a drill may find the newest one useless', () => {
    const drilled = { ...world(COPIED), jobs: [aWork(jobNames(world().object, NAME).drill)] };
    expect(doing(decide(drilled))[0]).not.toBe('pruneCopies');
  });

  test('its result is recorded and reported, and it is applied once', () => {
    const result = { ok: true, task: 'prune', kept: 2, removed: 1 };
    const done = { ...world(COPIED), jobs: [aWork(copies, { type: 'Complete' }, result)] };
    expect(decide(done).latch?.copies).toEqual({
      kept: 2,
      removed: 1,
      time: '2026-03-01T09:05:00Z',
      for: NAME,
      policy: copyPolicyOf(done.object),
    });
    expect(condition(decide(done), 'CopyRetentionApplied')).toBe(
      `True/Applied: 2 copies are kept and 1 were removed after ${NAME}`,
    );
    expect(doing(decide({ ...settled(done), jobs: [] }))).toEqual(['waitForNext']);
    const away = { ok: false, reason: 'AccessDenied', message: 'may not delete' };
    const failed = { ...world(COPIED), jobs: [aWork(copies, { type: 'Failed' }, away)] };
    expect(condition(decide(failed), 'CopyRetentionApplied')).toContain(
      'False/AccessDenied: retention of the copies failed',
    );
  });

  test.each<[string, Partial<Observed>]>([
    ['while another retention Job runs', { jobs: [aWork('hourly-prune-x')] }],
    ['S2: where the administrator does not permit the second location', { copiesNotPermitted: 'not in the list' }],
    ['without the image of the operator', { operatorImage: '' }],
  ])('not %s', (_name, more) => {
    expect(doing(decide({ ...world(COPIED), ...more }))).toEqual(['waitForNext']);
  });

  test('nothing is removed while no drill restores a snapshot', () => {
    const lastDrill = { name: NAME, time: '2026-03-01T05:10:00Z', succeeded: false, reason: 'DrillFailed' };
    const held = world(COPIED, { drill: {} });
    const object = aSchedule({ ...spec, drill: {} }, { ...held.object.status, lastDrill });
    expect(doing(decide({ ...held, object }))).toEqual(['waitForNext']);
  });

  test('a damaged original says nothing about its copy', () => {
    const scrubbed = [{ name: NAME, time: '2026-03-01T05:10:00Z', reason: 'SnapshotDamaged' }];
    const object = aSchedule(spec, { ...world(COPIED).object.status, scrubbed });
    const [step] = decide({ ...world(COPIED), object }).steps;
    expect(step?.do === 'create' && pruneTaskOf(step.object as Job).damaged).toBeUndefined();
  });
});

test('an EtcdSnapshot is not deleted before its copy is made, up to twenty of them', () => {
  const hours = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00:00`);
  const limited = (copy?: EtcdSnapshotStatus['copy']): Observed => {
    const object = aSchedule({ ...spec, copyTo: { destination }, successfulSnapshotsHistoryLimit: 1 });
    const runs = hours.map((time) => withCopy(time, copy));
    return settled({ ...at('05:30:00'), now: Date.parse('2026-03-01T23:30:00Z'), object, runs });
  };
  expect(decide(limited(COPIED)).steps).toHaveLength(23);
  expect(doing(decide(limited()))).toEqual([
    'trimHistory',
    ...hours.slice(0, 4).map((t) => `-hourly-20260301${t.slice(0, 2)}00`),
  ]);
});
