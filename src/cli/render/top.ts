/** The table of `kubectl etcd top`. */
import type { TopRow } from '../assess/top.ts';
import type { Columns } from './table.ts';
import { bytes } from './units.ts';

const figure = (amount: number | undefined): string =>
  amount === undefined ? '' : amount >= 100 || Number.isInteger(amount) ? amount.toFixed(0) : amount.toFixed(1);
const size = (amount: number | undefined): string => (amount === undefined ? '' : bytes(amount));
const ms = (seconds: number | undefined): string =>
  seconds === undefined ? '' : Number.isFinite(seconds) ? `${Number((1_000 * seconds).toPrecision(2))} ms` : '> 8 s';

/** etcd's own guidance. */
const SLOW_FSYNC = 0.01;
const SLOW_COMMIT = 0.025;

const latency = (seconds: number | undefined, limit: number) => ({
  text: ms(seconds),
  tone: (seconds ?? 0) > limit ? ('warn' as const) : undefined,
});

export const topColumns = (wide: boolean): Columns<TopRow> => [
  { head: 'MEMBER', cell: ({ name }) => name },
  { head: 'ROLE', cell: ({ leader }) => (leader === undefined ? '' : leader ? 'leader' : 'follower') },
  { head: 'PUT/S', cell: ({ puts }) => figure(puts), right: true },
  { head: 'RANGE/S', cell: ({ ranges }) => figure(ranges), right: true },
  wide && { head: 'TXN/S', cell: ({ txns }) => figure(txns), right: true },
  wide && { head: 'IN/S', cell: ({ receivedBytes }) => size(receivedBytes), right: true },
  wide && { head: 'OUT/S', cell: ({ sentBytes }) => size(sentBytes), right: true },
  { head: 'WATCH', cell: ({ watchers }) => figure(watchers), right: true },
  { head: 'FSYNC P99', cell: ({ fsyncP99 }) => latency(fsyncP99, SLOW_FSYNC), right: true },
  { head: 'COMMIT P99', cell: ({ commitP99 }) => latency(commitP99, SLOW_COMMIT), right: true },
  wide && { head: 'PEER P99', cell: ({ peerP99 }) => ms(peerP99), right: true },
  wide && { head: 'PENDING', cell: ({ pendingProposals }) => figure(pendingProposals), right: true },
  { head: 'DB', cell: ({ databaseBytes }) => size(databaseBytes), right: true },
  { head: 'MEMORY', cell: ({ memoryBytes }) => size(memoryBytes), right: true },
  { head: 'CPU', cell: ({ cpu }) => (cpu === undefined ? '' : `${(100 * cpu).toFixed(0)} %`), right: true },
];
