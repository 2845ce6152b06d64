import { expect, test } from 'vitest';
import { aSchedule } from '../../test/support/builders/schedules.ts';
import { backedUpAt, type EtcdSnapshotSchedule } from './etcd-snapshot-schedule.ts';

type Stored = NonNullable<NonNullable<EtcdSnapshotSchedule['status']>['lastSuccessful']>;
const STORED = '2026-03-01T05:01:00Z';

test.each<[string, object | undefined, string | undefined]>([
  ['nothing is stored', undefined, undefined],
  ['it was read before it was stored', { takenAt: '2026-03-01T05:00:00Z' }, '2026-03-01T05:00:00Z'],
  ['the clock of the node is years ahead', { takenAt: '2031-01-01T00:00:00Z' }, STORED],
  ['takenAt is missing', {}, STORED],
])('how old the newest backup is: %s', (_name, artifact, expected) => {
  const lastSuccessful = { name: 'hourly', time: STORED, artifact } as Stored;
  const at = backedUpAt(aSchedule({}, artifact ? { lastSuccessful } : {}));
  expect(at).toBe(expected === undefined ? undefined : Date.parse(expected));
});

test.each<[string, Partial<NonNullable<NonNullable<EtcdSnapshotSchedule['status']>['lastDrill']>>, string | undefined]>(
  [
    ['its drill found it damaged', { reason: 'SnapshotDamaged' }, '2026-03-01T03:00:00Z'],
    ['its drill found other data', { reason: 'DrillFailed' }, '2026-03-01T03:00:00Z'],
    ['its drill could not reach the store', { reason: 'StoreUnreachable' }, STORED],
    ['its drill was killed', { reason: 'OutOfMemory' }, STORED],
    ['its drill succeeded', { succeeded: true }, STORED],
    ['the drill of an earlier one found that damaged', { name: 'earlier', reason: 'SnapshotDamaged' }, STORED],
  ],
)('a snapshot that cannot be restored is no backup: %s', (_name, drill, expected) => {
  const lastSuccessful = { name: 'hourly', time: STORED, artifact: { uri: 'u' } } as Stored;
  const lastDrill = { name: 'hourly', time: STORED, succeeded: false, ...drill };
  const lastRestored = { name: 'before', time: STORED, takenAt: '2026-03-01T03:00:00Z' };
  expect(backedUpAt(aSchedule({}, { lastSuccessful, lastDrill, lastRestored }))).toBe(Date.parse(expected ?? ''));
  const never = aSchedule({}, { lastSuccessful, lastDrill });
  expect(backedUpAt(never)).toBe(expected === STORED ? Date.parse(STORED) : undefined);
});
