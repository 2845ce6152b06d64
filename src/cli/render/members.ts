/** The members on the screen of a cluster: who they are, what their databases look like, and what is wrong with them. */
import type { MemberRow } from '../assess/members.ts';
import type { ClusterReport } from '../assess/report.ts';
import { noted, type Paper } from './style.ts';
import { type Columns, table } from './table.ts';
import { bytes, duration, percent } from './units.ts';

interface Options {
  readonly wide: boolean;
  readonly now: number;
}

const NEAR = 0.8;
export const isNearQuota = ({ databaseBytes = 0, quotaBytes = 0 }: MemberRow): boolean =>
  quotaBytes > 0 && databaseBytes / quotaBytes >= NEAR;

const optional = (amount: number | undefined, text: (amount: number) => string): string =>
  amount === undefined ? '' : text(amount);

const identityColumns = ({ wide, now }: Options): Columns<MemberRow> => [
  { head: 'MEMBER', cell: ({ name }) => name },
  {
    head: 'ROLE',
    cell: ({ role, healthy }) => ({ text: role, tone: healthy ? (role === 'leader' ? 'bold' : undefined) : 'warn' }),
  },
  { head: 'ID', cell: ({ id }) => id ?? '' },
  { head: 'VERSION', cell: ({ version }) => version ?? '' },
  { head: 'READY', cell: ({ ready }) => ({ text: ready ? 'yes' : 'no', tone: ready ? undefined : 'bad' }) },
  { head: 'NODE', cell: ({ node }) => node ?? '' },
  { head: 'ZONE', cell: ({ zone }) => zone ?? '' },
  wide && { head: 'POD IP', cell: ({ podIP }) => podIP ?? '' },
  wide && { head: 'RESTARTS', cell: ({ restarts }) => String(restarts ?? ''), right: true },
  { head: 'UP', cell: ({ runningSince }) => optional(runningSince, (at) => duration(now - at)) },
];

const dataColumns = ({ wide }: Options): Columns<MemberRow> => [
  { head: 'MEMBER', cell: ({ name }) => name },
  { head: 'DB SIZE', cell: ({ databaseBytes }) => optional(databaseBytes, bytes), right: true },
  { head: 'IN USE', cell: ({ inUseBytes }) => optional(inUseBytes, bytes), right: true },
  {
    head: '%',
    cell: ({ inUseBytes, databaseBytes = 0 }) => optional(inUseBytes, (used) => percent(used, databaseBytes)),
    right: true,
  },
  { head: 'QUOTA', cell: ({ quotaBytes }) => optional(quotaBytes, bytes), right: true },
  {
    head: '%',
    cell: (row) => ({
      text: optional(row.databaseBytes, (size) => percent(size, row.quotaBytes ?? 0)),
      tone: isNearQuota(row) ? 'warn' : undefined,
    }),
    right: true,
  },
  { head: 'RAFT INDEX', cell: ({ raftIndex }) => optional(raftIndex, String), right: true },
  wide && { head: 'APPLIED', cell: ({ raftAppliedIndex }) => optional(raftAppliedIndex, String), right: true },
  wide && { head: 'TERM', cell: ({ term }) => optional(term, String), right: true },
  wide && { head: 'REVISION', cell: ({ revision }) => optional(revision, String), right: true },
  { head: 'LAG', cell: ({ lag }) => optional(lag, String), right: true },
  { head: 'ALARMS', cell: ({ alarms }) => ({ text: alarms.join(', '), tone: 'bad' }) },
];

export function memberLines(paper: Paper, { members }: ClusterReport, options: Options): readonly string[] {
  const responded = members.filter(({ databaseBytes }) => databaseBytes !== undefined);
  const problems = members.flatMap(({ name, problem }) =>
    problem === undefined ? [] : noted(paper, 'warn', `! ${name}: ${problem}`),
  );
  return [
    ...table(paper, identityColumns(options), members),
    ...(responded.length === 0 ? [] : ['', ...table(paper, dataColumns(options), responded)]),
    ...(problems.length === 0 ? [] : ['', ...problems]),
  ];
}
