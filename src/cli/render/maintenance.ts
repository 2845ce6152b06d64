/** What the operator does to running members: a rollout, defragmentations. */
import type { DefragRow } from '../assess/defrags.ts';
import type { ClusterReport } from '../assess/report.ts';
import { noted, type Paper, paint } from './style.ts';
import { type Columns, table } from './table.ts';
import { ago, bytes, duration, plural } from './units.ts';

interface Options {
  readonly now: number;
}

const INDENT = '  ';

/** How many members have the spec, and which fields the others lack. */
export function rolloutLines(paper: Paper, report: ClusterReport, { now }: Options): readonly string[] {
  const { operator, rollout, replicas } = report;
  const { updated } = operator;
  const lines: string[] = [];
  if (updated !== undefined && updated < replicas) {
    const since = rollout?.since === undefined ? '' : `; the rollout started ${ago(rollout.since, now)}`;
    lines.push(`${updated} of ${plural(replicas, 'member')} match the spec${since}`);
  }
  for (const { name, fields } of rollout?.outdated ?? []) lines.push(`${name} does not have yet: ${fields.join(', ')}`);
  const failed = rollout?.failed;
  return [
    ...lines.flatMap((line) => noted(paper, undefined, line, INDENT)),
    ...(failed ? noted(paper, 'bad', `the rollout has failed at ${failed.member}: ${failed.message}`, INDENT) : []),
  ];
}

const TONES = { Running: 'warn', Failed: 'bad' } as const;

export function defragLines(paper: Paper, { defragmentations }: ClusterReport, { now }: Options): readonly string[] {
  if (defragmentations.length === 0) return [];
  const columns: Columns<DefragRow> = [
    { head: 'DEFRAGMENTATION', cell: ({ name }) => name },
    { head: 'PHASE', cell: ({ phase }) => ({ text: phase, tone: TONES[phase as keyof typeof TONES] }) },
    { head: 'DONE', cell: ({ done, members }) => (members === 0 ? '' : `${done}/${members}`), right: true },
    { head: 'FREED', cell: ({ done, freedBytes }) => (done === 0 ? '' : bytes(freedBytes)), right: true },
    { head: 'NOW', cell: ({ now: member }) => member ?? '' },
    { head: 'ENDED', cell: ({ finishedAt }) => (finishedAt === undefined ? '' : `${duration(now - finishedAt)} ago`) },
  ];
  return [
    paint(paper, 'bold', 'Defragmentations'),
    ...table(paper, columns, defragmentations, INDENT),
    ...defragmentations.flatMap(({ name, waitingFor }) =>
      waitingFor === undefined ? [] : noted(paper, undefined, `${name} waits: ${waitingFor}`, INDENT),
    ),
  ];
}
