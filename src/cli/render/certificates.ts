/** The screen of `kubectl etcd certs`. */
import type { CertificateRow } from '../assess/report.ts';
import type { TrustRow } from '../assess/trust.ts';
import { certificateTable } from './cluster-parts.ts';
import type { Paper } from './style.ts';
import { type Columns, table } from './table.ts';

const TRUST: Columns<TrustRow> = [
  { head: 'PORT', cell: ({ port }) => port },
  { head: 'CA BUNDLE', cell: ({ bundle }) => bundle },
  { head: 'STATE', cell: ({ state }) => ({ text: state, tone: state === 'settled' ? undefined : 'warn' }) },
];

export function certificatesText(
  paper: Paper,
  rows: readonly CertificateRow[],
  trust: readonly TrustRow[],
  now: number,
): string {
  const lines = table(paper, TRUST, trust);
  return [...certificateTable(paper, rows, now), ...(lines.length === 0 ? [] : ['', ...lines])].join('\n');
}
