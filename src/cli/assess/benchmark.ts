/** What a short load on a cluster showed. */
import type { Finding } from './finding.ts';

export interface Load {
  readonly what: 'one after the other' | 'parallel' | 'linearizable reads';
  readonly clients: number;
  /** Of each successful call, in milliseconds. */
  readonly latencies: readonly number[];
  readonly failed: number;
  readonly elapsedMs: number;
}

export interface LoadRow {
  readonly what: string;
  readonly clients: number;
  readonly calls: number;
  readonly failed: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;

export function loadRow({ what, clients, latencies, failed, elapsedMs }: Load): LoadRow {
  const sorted = latencies.toSorted((a, b) => a - b);
  return {
    what,
    clients,
    calls: sorted.length,
    failed,
    perSecond: elapsedMs > 0 ? (1_000 * sorted.length) / elapsedMs : 0,
    p50: at(sorted, 0.5),
    p99: at(sorted, 0.99),
    max: sorted.at(-1) ?? 0,
  };
}

/** In seconds; etcd's own guidance for the 99th percentile. */
const FSYNC = 0.01;
/** A write of one client: a fsync on two members, and a round trip between them. */
const WRITE_P99_MS = 50;

export function adviceOf(rows: readonly LoadRow[], slowestFsync: number | undefined): readonly Finding[] {
  const failed = rows.reduce((sum, row) => sum + row.failed, 0);
  const alone = rows.find(({ what }) => what === 'one after the other');
  return [
    ...(failed > 0
      ? [{ subject: 'errors', level: 'problem' as const, message: `${failed} calls failed: see kubectl etcd status` }]
      : []),
    ...(slowestFsync !== undefined && slowestFsync > FSYNC
      ? [
          {
            subject: 'disk',
            level: 'advice' as const,
            message: `99 % of fsyncs took up to ${Math.round(1_000 * slowestFsync)} ms; etcd wants 10 ms`,
            advice: 'use a faster StorageClass, and no disk that other writers share',
          },
        ]
      : []),
    ...(alone && alone.p99 > WRITE_P99_MS && (slowestFsync ?? 0) <= FSYNC
      ? [
          {
            subject: 'latency',
            level: 'advice' as const,
            message: `a write of one client took up to ${alone.p99.toFixed(0)} ms, and the disks are not the reason`,
            advice: 'measure the network between the members; this command itself goes through the API server',
          },
        ]
      : []),
  ];
}
