/** Tables of schedules and snapshots: on the screen of a cluster, and in lists. */
import type { ScheduleRow, SnapshotRow } from '../assess/backups.ts';
import type { Columns } from './table.ts';
import { ago, bytes, duration, when } from './units.ts';

interface Options {
  /** Several clusters in one list. */
  readonly clusters?: boolean;
  readonly wide?: boolean;
}

export const scheduleColumns = (now: number, { clusters = false }: Options = {}): Columns<ScheduleRow> => [
  { head: 'SCHEDULE', cell: ({ name }) => name },
  clusters && { head: 'CLUSTER', cell: ({ cluster }) => cluster },
  { head: 'CRON', cell: ({ schedule }) => schedule },
  { head: 'LAST STORED', cell: ({ lastSuccess }) => (lastSuccess === undefined ? 'never' : ago(lastSuccess, now)) },
  {
    head: 'NEXT',
    cell: ({ next, suspended }) => (suspended ? 'suspended' : next === undefined ? '' : when(next, now)),
  },
  {
    head: 'LAST FAILURE',
    cell: ({ lastFailure: f }) => (f ? { text: `${f.reason}, ${ago(f.at, now)}`, tone: 'warn' } : ''),
  },
  { head: 'RESTORE DRILL', cell: ({ drill }) => drillCell(drill, now) },
];

export const snapshotColumns = (
  now: number,
  { clusters = false, wide = false }: Options = {},
): Columns<SnapshotRow> => [
  { head: 'SNAPSHOT', cell: ({ name }) => name },
  clusters && { head: 'CLUSTER', cell: ({ cluster }) => cluster },
  {
    head: 'PHASE',
    cell: ({ phase }) => ({
      text: phase,
      tone: phase === 'Failed' ? 'bad' : phase === 'Complete' ? undefined : 'warn',
    }),
  },
  { head: 'REASON', cell: ({ reason }) => reason ?? '' },
  { head: 'AGE', cell: ({ at }) => (at === undefined ? '' : duration(now - at)) },
  { head: 'SIZE', cell: ({ bytes: size }) => (size === undefined ? '' : bytes(size)), right: true },
  { head: 'REVISION', cell: ({ revision }) => (revision === undefined ? '' : String(revision)), right: true },
  wide && { head: 'STORED AT', cell: ({ uri }) => uri ?? '' },
];

const drillCell = (drill: ScheduleRow['drill'], now: number) =>
  drill === undefined
    ? ''
    : {
        text: drill.succeeded
          ? `restored, ${ago(drill.at, now)}`
          : `${drill.reason ?? 'failed'}, ${ago(drill.at, now)}`,
        tone: drill.succeeded ? undefined : ('bad' as const),
      };
