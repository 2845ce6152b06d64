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
