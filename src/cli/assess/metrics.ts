/** What a member measures itself, in the text format of Prometheus. */

export interface Latency {
  /** How many operations were measured. */
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
  readonly clock?: Clock;
}

/** By how much the clock of a member is ahead of this machine's, in milliseconds: between the two. */
export interface Clock {
  readonly least: number;
  readonly most: number;
}

/** One response of a member. */
export interface Sample {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The sum of all series of a name. */
  readonly totals: ReadonlyMap<string, number>;
  /** Of a histogram: how many took at most this number of seconds. */
  readonly buckets: ReadonlyMap<string, ReadonlyMap<number, number>>;
  readonly clock?: Clock;
}

/** More is not a response of etcd. */
const MAX_LENGTH = 8 * 1024 * 1024;
const LINE = /^([a-zA-Z_:][\w:]*)(\{[^}]*\})? (\S+)$/;
const BOUND = /[{,]le="([^"]+)"/;

export function parseSample(text: string, at: number): Sample {
  const totals = new Map<string, number>();
  const buckets = new Map<string, Map<number, number>>();
  for (const line of text.slice(0, MAX_LENGTH).split('\n')) {
    const [, name = '', labels = '', value = ''] = LINE.exec(line) ?? [];
    const amount = Number(value);
    if (name === '' || Number.isNaN(amount)) continue;
    const bound = name.endsWith('_bucket') ? BOUND.exec(labels)?.[1] : undefined;
    if (bound === undefined) {
      totals.set(name, (totals.get(name) ?? 0) + amount);
      continue;
    }
    const histogram = buckets.get(name.slice(0, -'_bucket'.length)) ?? new Map<number, number>();
    const seconds = bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound);
    histogram.set(seconds, (histogram.get(seconds) ?? 0) + amount);
    buckets.set(name.slice(0, -'_bucket'.length), histogram);
  }
  return { at, totals, buckets };
}

const FSYNC = 'etcd_disk_wal_fsync_duration_seconds';
const COMMIT = 'etcd_disk_backend_commit_duration_seconds';

/** By the upper bound of the bucket that has the 99th percentile. With an earlier sample: of what happened since. */
export function latencyIn(sample: Sample, name: string, earlier?: Sample): Latency | undefined {
  const before = earlier?.buckets.get(name);
  const counts = [...(sample.buckets.get(name) ?? [])]
    .map(([bound, count]) => ({ bound, count: count - (before?.get(bound) ?? 0) }))
    .toSorted((a, b) => a.bound - b.bound);
  const count = counts.at(-1)?.count ?? 0;
  if (count <= 0) return undefined;
  const p99 = counts.find((bucket) => bucket.count >= 0.99 * count)?.bound ?? Number.POSITIVE_INFINITY;
  return { count, p99 };
}

export const fsyncIn = (sample: Sample, earlier?: Sample) => latencyIn(sample, FSYNC, earlier);
export const commitIn = (sample: Sample, earlier?: Sample) => latencyIn(sample, COMMIT, earlier);

export function metricsOf(sample: Sample): MemberMetrics {
  const [walFsync, backendCommit] = [fsyncIn(sample), commitIn(sample)];
  const leaderChanges = sample.totals.get('etcd_server_leader_changes_seen_total');
  return {
    ...(walFsync && { walFsync }),
    ...(backendCommit && { backendCommit }),
    ...(leaderChanges !== undefined && { leaderChanges }),
    ...(sample.clock && { clock: sample.clock }),
  };
}

/** `date`: of the HTTP response, in whole seconds. It was written after the request was sent, and before the response arrived. */
export function clockOf(date: string | undefined, sent: number, arrived: number): Clock | undefined {
  const at = Date.parse(date ?? '');
  return Number.isNaN(at) ? undefined : { least: at - arrived, most: at + 1_000 - sent };
}
