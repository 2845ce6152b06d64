import { expect, test } from 'vitest';
import { up, world } from '../../../test/support/builders/members.ts';
import { ARTIFACT, aSchedule } from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

/** A schedule created on 1 March 2026 at midnight, whose last snapshot was taken and stored at these times. */
function schedule(
  name: string,
  recoveryPoint: string | undefined,
  stored?: { readonly takenAt?: string; readonly time: string; readonly clusterID?: string },
): EtcdSnapshotSchedule {
  const made = aSchedule({ ...(recoveryPoint !== undefined && { recoveryPoint }) });
  const { time = '', ...artifact } = stored ?? {};
  return {
    ...made,
    metadata: { ...made.metadata, name },
    ...(stored && {
      status: {
        lastSuccessful: { name: 'x', time, artifact: { ...ARTIFACT, ...artifact } },
      },
    }),
  };
}

const at = (time: string, ...schedules: readonly EtcdSnapshotSchedule[]): Gathered => ({
  ...world([up, up, up]),
  now: Date.parse(`2026-03-01T${time}Z`),
  schedules,
});
/** The cluster was created at this time. */
const made = (time: string, o: Gathered): Gathered => ({
  ...o,
  cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, creationTimestamp: `2026-03-01T${time}Z` } },
});
const conditionOf = (o: Gathered): string => {
  const { status, reason, message } = findCondition(decide(o).status.conditions, 'BackupFresh') ?? {};
  return status === undefined ? 'nothing' : `${status}/${reason}: ${message}`;
};
const createdAt = (time: string, made: EtcdSnapshotSchedule): EtcdSnapshotSchedule => ({
  ...made,
  metadata: { ...made.metadata, creationTimestamp: `2026-03-01T${time}Z` },
});
const eight = { time: '2026-03-01T08:00:00Z' };
const POINT = 'the recovery point of 2h in EtcdSnapshotSchedule a';

test.each<[string, Gathered, string]>([
  ['no condition without a schedule', at('09:00:00'), 'nothing'],
  ['no condition without a recovery point', at('09:00:00', schedule('a', undefined, eight)), 'nothing'],
  [
    'NoBackupYet after the creation',
    at('01:59:59', schedule('a', '2h')),
    `Unknown/NoBackupYet: there is no backup yet, and ${POINT} has not passed since the schedule or the cluster was created`,
  ],
  [
    'too old without a first backup',
    at('02:00:00', schedule('a', '2h')),
    `False/BackupTooOld: there is no backup, which exceeds ${POINT}: see its status for why no backup was stored since`,
  ],
  [
    'too old, named after the older of two schedules with the same recovery point',
    at('10:00:00', createdAt('00:30:00', schedule('b', '2h', eight)), schedule('a', '2h', eight)),
    `False/BackupTooOld: the newest backup is from 2026-03-01T08:00:00Z, which exceeds ${POINT}: see its status for why no backup was stored since`,
  ],
  ['no condition for a recovery point that cannot be parsed', at('09:00:00', schedule('a', 'soon', eight)), 'nothing'],
  ['fresh', at('09:59:59', schedule('a', '2h', eight)), `True/Fresh: the newest backup is within ${POINT}`],
  [
    'too old',
    at('10:00:00', schedule('a', '2h', eight)),
    `False/BackupTooOld: the newest backup is from 2026-03-01T08:00:00Z, which exceeds ${POINT}: see its status for why no backup was stored since`,
  ],
  [
    'too old although the clock of a node was years ahead',
    at('10:00:00', schedule('a', '2h', { ...eight, takenAt: '2031-01-01T00:00:00Z' })),
    `False/BackupTooOld: the newest backup is from 2026-03-01T08:00:00Z, which exceeds ${POINT}: see its status for why no backup was stored since`,
  ],
  [
    'a backup of a previous cluster of the same name does not count',
    made('09:00:00', at('10:59:59', schedule('a', '2h', { time: '2026-03-01T10:30:00Z', clusterID: 'another' }))),
    `Unknown/NoBackupYet: there is no backup yet, and ${POINT} has not passed since the schedule or the cluster was created`,
  ],
  [
    'too old when a recreated cluster has no backup in time',
    made('09:00:00', at('11:00:00', schedule('a', '2h', { time: '2026-03-01T10:30:00Z', clusterID: 'another' }))),
    `False/BackupTooOld: there is no backup, which exceeds ${POINT}: see its status for why no backup was stored since`,
  ],
  [
    'the age counts from the time at which the data was read',
    at('09:30:00', schedule('a', '2h', { ...eight, takenAt: '2026-03-01T07:00:00Z' })),
    `False/BackupTooOld: the newest backup is from 2026-03-01T07:00:00Z, which exceeds ${POINT}: see its status for why no backup was stored since`,
  ],
  [
    'the strictest recovery point counts',
    at('09:30:00', schedule('b', '9h', eight), schedule('a', '2h', { time: '2026-03-01T05:00:00Z' })),
    `True/Fresh: the newest backup is within ${POINT}`,
  ],
  [
    'a backup of any schedule counts',
    at('09:30:00', schedule('b', undefined, eight), schedule('a', '2h')),
    `True/Fresh: the newest backup is within ${POINT}`,
  ],
])('%s', (_name, o, expected) => {
  expect(conditionOf(o)).toBe(expected);
});

test('a backup that a drill found useless does not count, and the message names it', () => {
  const made = schedule('a', '2h', { time: '2026-03-01T09:00:00Z' });
  const lastDrill = { name: 'x', time: '2026-03-01T09:05:00Z', succeeded: false, reason: 'SnapshotDamaged' };
  const lastRestored = { name: 'w', time: '2026-03-01T06:10:00Z', takenAt: '2026-03-01T06:00:00Z' };
  const useless = { ...made, status: { ...made.status, lastDrill, lastRestored } };
  expect(conditionOf(at('09:30:00', useless))).toBe(
    `False/BackupTooOld: the newest backup that a restore drill restored is from 2026-03-01T06:00:00Z, which exceeds ${POINT}: x was stored later, and cannot be restored (SnapshotDamaged): find the cause, and take another snapshot`,
  );
  expect(conditionOf(at('09:30:00', useless, schedule('b', undefined, eight)))).toMatch(/^True\/Fresh/);
});

test('the backup of a paused cluster does not become too old: nothing changes any more', () => {
  const o = at('23:00:00', schedule('a', '2h', eight));
  const paused = { ...o, cluster: { ...o.cluster, spec: { ...o.cluster.spec, replicas: 0 } } };
  expect(conditionOf(paused)).toBe(
    'Unknown/Paused: the cluster is paused, so nothing is backed up: the newest backup is from 2026-03-01T08:00:00Z',
  );
});

test('a schedule that is being deleted does not count', () => {
  const made = schedule('a', '2h');
  const deleted = { ...made, metadata: { ...made.metadata, deletionTimestamp: '2026-03-01T01:00:00Z' } };
  expect(conditionOf(at('09:00:00', deleted))).toBe('nothing');
});

test('the cluster is requeued for the moment at which the backup becomes too old, and not after that', () => {
  const wakes = (time: string): number => decide(at(time, schedule('a', '2h', eight))).requeueAfterMs ?? Infinity;
  expect(wakes('09:59:59')).toBe(1000);
  expect(wakes('10:00:00')).toBeGreaterThan(1000);
});

test('an old backup does not make the cluster Degraded', () => {
  const [fresh, old] = [
    decide(at('09:00:00', schedule('a', '2h', eight))),
    decide(at('12:00:00', schedule('a', '2h', eight))),
  ];
  for (const type of ['Available', 'Degraded', 'Progressing'])
    expect(findCondition(old.status.conditions, type)?.status).toBe(
      findCondition(fresh.status.conditions, type)?.status,
    );
  expect(old.events.map(({ type, reason }) => `${type} ${reason}`)).toContain('Warning BackupTooOld');
});

test('the condition is removed with the last recovery point', () => {
  const o = at('09:00:00', schedule('a', '2h', eight));
  const after = { ...o, cluster: { ...o.cluster, status: decide(o).status }, schedules: [] };
  expect(conditionOf(after)).toBe('nothing');
});
