/** Latencies from the metrics that a member serves, in the text format of Prometheus. */

export interface Latency {
  /** How many operations were measured since its etcd started. */
  readonly count: number;
  /** In seconds: 99 % of them took at most this. Infinity: more than the highest bucket. */
  readonly p99: number;
}

export interface MemberMetrics {
  /** Writes to the write-ahead log. etcd's guide: below 10 ms. */
  readonly walFsync?: Latency;
  /** Commits of the database. etcd's guide: below 25 ms. */
  readonly backendCommit?: Latency;
  /** Elections that it has seen since it started. */
  readonly leaderChanges?: number;
}

/** More is not a response of etcd. */
const MAX_LENGTH = 8 * 1024 * 1024;

export function parseMetrics(text: string): MemberMetrics {
  const lines = text.slice(0, MAX_LENGTH).split('\n');
  const walFsync = latencyIn(lines, 'etcd_disk_wal_fsync_duration_seconds');
  const backendCommit = latencyIn(lines, 'etcd_disk_backend_commit_duration_seconds');
  const changes = lines.find((line) => line.startsWith('etcd_server_leader_changes_seen_total '));
  return {
    ...(walFsync && { walFsync }),
    ...(backendCommit && { backendCommit }),
    ...(changes !== undefined && { leaderChanges: Number(changes.split(' ')[1]) }),
  };
}

/** By the upper bound of the bucket that has the 99th percentile. */
function latencyIn(lines: readonly string[], name: string): Latency | undefined {
  const buckets = lines
    .flatMap((line) => {
      const found = line.startsWith(`${name}_bucket{`) ? /le="([^"]+)"\} ([\d.e+]+)$/.exec(line) : null;
      return found
        ? [{ bound: found[1] === '+Inf' ? Number.POSITIVE_INFINITY : Number(found[1]), count: Number(found[2]) }]
        : [];
    })
    .toSorted((a, b) => a.bound - b.bound);
  const count = buckets.at(-1)?.count ?? 0;
  if (count === 0) return undefined;
  const p99 = buckets.find((bucket) => bucket.count >= 0.99 * count)?.bound ?? Number.POSITIVE_INFINITY;
  return { count, p99 };
}
