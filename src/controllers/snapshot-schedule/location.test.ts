/** LocationUsable: when a destination is tried, and what is reported. */
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
import type { EtcdSnapshotScheduleSpec } from '../../api/etcd-snapshot-schedule.ts';
import type { Job } from '../../gen/kube.ts';
import { probeJob, probeName } from './build-probe.ts';
import { decide } from './decide.ts';
import { locationHash } from './location.ts';
import type { Observed } from './observed.ts';

const SPEC = { suspend: true };
const hashOf = (spec: Partial<EtcdSnapshotScheduleSpec>, ...versions: string[]) =>
  locationHash(aSchedule(spec), versions);
const FIRST = hashOf(SPEC, 'uid/1');
const created = (spec: Partial<EtcdSnapshotScheduleSpec> = {}, more: Partial<Observed> = {}): Observed =>
  at('00:00:10', { ...SPEC, ...spec }, undefined, { location: FIRST, ...more });
const NAME = probeName(aSchedule(), FIRST);
function after(o: Observed, result: { readonly ok: boolean } & Record<string, unknown>): Observed {
  const type = result.ok ? 'Complete' : 'Failed';
  return { ...o, jobs: [aWork(NAME, { type, at: '2026-03-01T00:00:05Z' }, result, FIRST)] };
}
const FINE = { ok: true, task: 'probe' };
const DENIED = {
  ok: false,
  reason: 'AccessDenied',
  message: 'the bucket "b": access is denied (403): check the credentials',
};
const usable = (plan: ReturnType<typeof decide>) => condition(plan, 'LocationUsable');

describe('a destination is tried', () => {
  test('when the schedule is created, also while it is suspended, and once', () => {
    expect(doing(decide(created()))).toEqual(['probe', `+${NAME}`]);
    expect(usable(decide(created()))).toBe('Unknown/Checking: the destination was not tried yet');
    const running = { ...created(), jobs: [aWork(NAME)] };
    expect(doing(decide(running))).toEqual(['waitForNext']);
    expect(usable(decide(running))).toContain(`Unknown/Checking: Job ${NAME} runs`);
    const done = settled(after(created(), FINE));
    expect(doing(decide(done))).toEqual(['waitForNext']);
    expect(doing(decide({ ...done, jobs: [] }))).toEqual(['waitForNext']);
  });

  test('after an edit of the destination, of its Secret, of the layout or of the encryption', () => {
    const done = { ...settled(after(created(), FINE)), jobs: [] };
    const other = [
      hashOf(SPEC, 'uid/2'),
      hashOf({ ...SPEC, layout: 'ByCluster' }, 'uid/1'),
      hashOf({ ...SPEC, encryption: { keySecretRef: { name: 'key' } } }, 'uid/1'),
      hashOf({ ...SPEC, destination: { pvc: { claimName: 'x' } } }, 'uid/1'),
    ];
    expect(new Set([FIRST, ...other]).size).toBe(5);
    for (const location of other) {
      const edited = { ...done, location };
      expect(doing(decide(edited))[0]).toBe('probe');
      expect(usable(decide(edited))).toContain('Unknown/Checking');
    }
    expect(hashOf({ ...SPEC, schedule: '5 * * * *', retention: { keepLast: 1 } }, 'uid/1')).toBe(FIRST);
  });

  test('before the first scheduled time, and without holding up a snapshot that is due', () => {
    const due = at('01:00:05', {}, { nextScheduleTime: '2026-03-01T01:00:00Z' }, { location: FIRST });
    expect(doing(decide(due))[0]).toBe('startSnapshot');
    expect(Date.parse(decide(created({ suspend: false })).status.nextScheduleTime ?? '')).toBeGreaterThan(
      created().now,
    );
    expect(doing(decide(created({ suspend: false })))[0]).toBe('probe');
  });

  test.each<[string, Observed]>([
    ['without a cluster', { ...created(), cluster: undefined }],
    ['without the image of the operator', { ...created(), operatorImage: '' }],
    ['S2: where the administrator does not permit it', { ...created(), notPermitted: 'the store is not in the list' }],
    ['where its Secrets cannot be read', at('00:00:10', SPEC)],
  ])('not %s', (_name, world) => {
    expect(doing(decide(world))).toEqual(['waitForNext']);
  });

  test('not by a new operator, where a snapshot is stored already', () => {
    const runs = [aRun('00:00:00', STORED)];
    const { object } = settled(at('00:00:05', SPEC, undefined, { runs }));
    const upgraded = { ...created(), object, runs };
    expect(decide(upgraded).latch?.location).toEqual({ checked: FIRST, time: STORED.completionTime });
    expect(doing(decide(settled(upgraded)))).toEqual(['waitForNext']);
    expect(doing(decide({ ...settled(upgraded), location: hashOf(SPEC, 'uid/2') }))[0]).toBe('probe');
  });
});

describe('its result', () => {
  test('usable', () => {
    const plan = decide(after(created(), FINE));
    expect(plan.latch?.location).toEqual({ checked: FIRST, time: '2026-03-01T00:00:05Z' });
    expect(usable(plan)).toBe('True/LocationUsable: snapshots can be stored, as was found at 2026-03-01T00:00:05Z');
  });

  test('not usable: the reason and the message of the agent, an Event, and another attempt when its Job is deleted', () => {
    const failed = after(created(), DENIED);
    expect(usable(decide(failed))).toBe(
      `False/AccessDenied: no snapshot can be stored: ${DENIED.message}. It is tried again when the destination or its Secret changes, and every hour`,
    );
    expect(events(decide(failed)).join()).toContain('Warning LocationNotUsable: no snapshot can be stored: the bucket');
    expect(doing(decide(settled(failed)))).toEqual(['waitForNext']);
    expect(decide(settled(failed)).requeueAfterMs).toBe(60_000);
    const deleted = { ...settled(failed), jobs: [] };
    expect(doing(decide(deleted))).toEqual(['probe', `+${NAME}`]);
    expect(usable(decide(deleted)), 'until the next result').toContain('False/AccessDenied');
  });

  test.each<[string, Partial<EtcdSnapshotScheduleSpec>, object, string]>([
    [
      'neither list nor delete, and nothing asks for it',
      {},
      { cannotList: 'x', cannotDelete: 'y' },
      'True/LocationUsable',
    ],
    [
      'not delete, with retention',
      { retention: { keepLast: 1 } },
      { cannotDelete: 'the role lacks it' },
      'False/AccessDenied: snapshots can be stored, and retention cannot delete any: the role lacks it',
    ],
    ['not delete, with scrubs', { scrub: 'Weekly' }, { cannotDelete: 'x' }, 'True/LocationUsable'],
    [
      'not list, with scrubs',
      { scrub: 'Weekly' },
      { cannotList: 'the role lacks it' },
      'False/AccessDenied: snapshots can be stored, and retention and scrubs cannot list them: the role lacks it',
    ],
  ])('the credentials may %s', (_name, spec, lacks, expected) => {
    expect(usable(decide(after(created(spec), { ...FINE, ...lacks })))).toContain(expected);
  });

  test('a permission that is missing is looked for again: it is corrected in the store, and nothing here changes', () => {
    const lacking = settled(after(created({ retention: { keepLast: 1 } }), { ...FINE, cannotDelete: 'x' }));
    expect(decide(lacking).requeueAfterMs).toBe(60_000);
    expect(doing(decide({ ...lacking, jobs: [] }))).toEqual(['probe', `+${NAME}`]);
  });

  test('what the administrator does not permit is reported in its place', () => {
    const plan = decide({ ...created(), notPermitted: 'the store is not in the list' });
    expect(usable(plan)).toBe('False/ReferenceNotPermitted: the store is not in the list');
  });
});

test('the Job writes below the prefix of the schedule, with the Secrets of a snapshot', () => {
  const { object: schedule, cluster, operatorImage } = created();
  if (!cluster) throw new Error('there is no cluster');
  const encryption = { keySecretRef: { name: 'key' } };
  const encrypted = { ...schedule, spec: { ...schedule.spec, encryption, layout: 'ByCluster' as const } };
  const job: Job = probeJob({ schedule: encrypted, cluster, operatorImage, location: FIRST });
  expect(pruneTaskOf(job)).toMatchObject({
    task: 'probe',
    prefix: 'backups/ns/db',
    encrypted: true,
    at: { kind: 's3' },
  });
  expect(job.spec?.template.spec?.volumes?.map(({ name }) => name)).toEqual(['store', 'encryption']);
});
