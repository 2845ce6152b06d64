/** The parts of the screen about certificates, backups and Events. */
import type { CertificateRow, ClusterReport, EventRow } from '../assess/report.ts';
import { scheduleColumns, snapshotColumns } from './backups.ts';
import { cut, noted, type Paper, paint } from './style.ts';
import { type Columns, table } from './table.ts';
import { ago, plural, when } from './units.ts';

interface Options {
  readonly now: number;
}

const INDENT = '  ';
const DAY_MS = 86_400_000;
/** A certificate that expires this soon was not renewed in time. */
const SOON_MS = 7 * DAY_MS;

const day = (at: number): string => new Date(at).toISOString().slice(0, 10);

export const certificateLines = (paper: Paper, { certificates }: ClusterReport, { now }: Options): readonly string[] =>
  certificateTable(paper, certificates, now);

export function certificateTable(
  paper: Paper,
  certificates: readonly CertificateRow[],
  now: number,
): readonly string[] {
  if (certificates.length === 0) return [];
  const columns: Columns<CertificateRow> = [
    { head: 'CERTIFICATE', cell: ({ role }) => role },
    { head: 'SECRET', cell: ({ secret }) => secret },
    {
      head: 'EXPIRES',
      cell: ({ notAfter }) =>
        notAfter === undefined
          ? ''
          : {
              text: `${when(notAfter, now)} (${day(notAfter)})`,
              tone: notAfter - now < 0 ? 'bad' : notAfter - now < SOON_MS ? 'warn' : undefined,
            },
    },
    { head: 'RENEWED', cell: ({ renewAt }) => (renewAt === undefined ? '' : when(renewAt, now)) },
  ];
  const problems = [...new Set(certificates.flatMap((row) => row.problems))];
  return [...table(paper, columns, certificates), ...problems.flatMap((text) => noted(paper, 'warn', `! ${text}`))];
}

/** Of what could not be read: with one of them missing, the recovery point is not known. */
const BACKUPS = ['schedules', 'snapshots'];

export function backupLines(paper: Paper, report: ClusterReport, { now }: Options): readonly string[] {
  const { recoveryPoint, schedules, snapshots } = report;
  const unknown = report.unread.some(({ what }) => BACKUPS.includes(what));
  const point = unknown
    ? 'unknown, see below'
    : recoveryPoint === undefined
      ? paint(paper, 'warn', 'no snapshot of this cluster is complete: all data is lost if the volumes are')
      : `recovery point ${ago(recoveryPoint, now)}: later writes are in no snapshot`;
  return [
    `${paint(paper, 'bold', 'Backups')}: ${point}`,
    ...table(paper, scheduleColumns(now), schedules, INDENT),
    ...table(paper, snapshotColumns(now), snapshots, INDENT),
  ];
}

export function eventLines(paper: Paper, { events }: ClusterReport, { now }: Options): readonly string[] {
  if (events.length === 0) return [];
  return [
    paint(paper, 'bold', 'Recent Events'),
    ...events.map((event) => {
      const line = cut(eventText(event, now), paper.width - INDENT.length);
      return `${INDENT}${paint(paper, event.type === 'Normal' ? undefined : 'warn', line)}`;
    }),
  ];
}

const eventText = ({ at, reason, about, note, count }: EventRow, now: number): string =>
  `${ago(at, now)}  ${reason}  ${about}${count > 1 ? ` (${plural(count, 'time')})` : ''}: ${note}`;
