/** How busy the members are: rates between two samples of their metrics. */
import { present } from '../../lib/present.ts';
import { commitIn, fsyncIn, latencyIn, type Sample } from './metrics.ts';

export interface TopRow {
  readonly name: string;
  readonly leader?: boolean;
  /** Per second. */
  readonly puts?: number;
  readonly ranges?: number;
  readonly txns?: number;
  readonly sentBytes?: number;
  readonly receivedBytes?: number;
  readonly watchers?: number;
  /** In seconds, between the samples. */
  readonly fsyncP99?: number;
  readonly commitP99?: number;
  readonly peerP99?: number;
  readonly pendingProposals?: number;
  readonly databaseBytes?: number;
  readonly memoryBytes?: number;
  /** Of one CPU. */
  readonly cpu?: number;
}

export function topRow(name: string, before: Sample | undefined, after: Sample | undefined): TopRow {
  if (!after) return { name };
  const gauge = (metric: string): number | undefined => after.totals.get(metric);
  const rate = (metric: string): number | undefined => {
    const [from, to] = [before?.totals.get(metric), after.totals.get(metric)];
    if (before === undefined || from === undefined || to === undefined || after.at <= before.at) return undefined;
    // A smaller total: its etcd has restarted in between.
    return to < from ? undefined : (1_000 * (to - from)) / (after.at - before.at);
  };
  const leads = gauge('etcd_server_is_leader');
  return {
    name,
    ...present({
      leader: leads === undefined ? undefined : leads === 1,
      puts: rate('etcd_mvcc_put_total'),
      ranges: rate('etcd_mvcc_range_total'),
      txns: rate('etcd_mvcc_txn_total'),
      sentBytes: rate('etcd_network_client_grpc_sent_bytes_total'),
      receivedBytes: rate('etcd_network_client_grpc_received_bytes_total'),
      watchers: gauge('etcd_debugging_mvcc_watcher_total'),
      fsyncP99: fsyncIn(after, before)?.p99,
      commitP99: commitIn(after, before)?.p99,
      peerP99: latencyIn(after, 'etcd_network_peer_round_trip_time_seconds', before)?.p99,
      pendingProposals: gauge('etcd_server_proposals_pending'),
      databaseBytes: gauge('etcd_mvcc_db_total_size_in_bytes'),
      memoryBytes: gauge('process_resident_memory_bytes'),
      cpu: rate('process_cpu_seconds_total'),
    }),
  };
}
