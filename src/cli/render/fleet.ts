/** The table of clusters. */
import type { FleetRow } from '../assess/fleet.ts';
import type { Health } from '../assess/health.ts';
import { cut, type Paper, paint, type Tone } from './style.ts';
import { type Column, type Columns, table } from './table.ts';
import { duration, plural } from './units.ts';

export const TONES: Readonly<Record<Health, Tone>> = {
  healthy: 'good',
  progressing: 'warn',
  paused: 'dim',
  unknown: 'warn',
  degraded: 'warn',
  unavailable: 'bad',
};

export interface FleetOptions {
  readonly allNamespaces: boolean;
  readonly wide: boolean;
  readonly now: number;
}

export function fleetTable(paper: Paper, rows: readonly FleetRow[], options: FleetOptions): string {
  const { allNamespaces, wide, now } = options;
  const shown: Columns<FleetRow> = [
    allNamespaces && { head: 'NAMESPACE', cell: ({ namespace }) => namespace },
    { head: 'CLUSTER', cell: ({ name }) => name },
    { head: 'HEALTH', cell: ({ health }) => ({ text: health, tone: TONES[health] }) },
    { head: 'READY', cell: ({ ready, replicas }) => `${ready}/${replicas}` },
    { head: 'MAY FAIL', cell: ({ margin }) => (margin === undefined ? '' : String(Math.max(0, margin))), right: true },
    { head: 'QUOTA', cell: ({ quotaUsedPercent: used }) => quotaCell(used), right: true },
    { head: 'VERSION', cell: ({ version }) => version },
    wide && { head: 'LEADER', cell: ({ leader }) => leader ?? '' },
    { head: 'AGE', cell: ({ createdAt }) => (createdAt === undefined ? '' : duration(now - createdAt)) },
  ];
  const bare = table({ ...paper, colour: false }, shown, rows);
  const room = paper.width - Math.max(0, ...bare.map((line) => line.length)) - 2;
  const attention: Column<FleetRow> = {
    head: 'ATTENTION',
    cell: (row) => {
      const text = attentionText(row);
      return { text: wide || room < 20 ? text : cut(text, room), tone: undefined };
    },
  };
  // Without room for a readable sentence, the table stays aligned and `-o wide` shows it.
  const lines = table(paper, room < 20 && !wide ? shown : [...shown, attention], rows);
  return [...lines, '', paint(paper, 'dim', totals(rows))].join('\n');
}

const quotaCell = (used: number | undefined) =>
  used === undefined ? '' : { text: `${used} %`, tone: used >= 80 ? ('warn' as const) : undefined };

const attentionText = ({ health, summary, attention }: FleetRow): string =>
  [...(health === 'healthy' ? [] : [summary]), ...attention].join('; ');

function totals(rows: readonly FleetRow[]): string {
  const counts = new Map<Health, number>();
  for (const { health } of rows) counts.set(health, (counts.get(health) ?? 0) + 1);
  return `${plural(rows.length, 'cluster')}: ${[...counts].map(([health, count]) => `${count} ${health}`).join(', ')}`;
}
