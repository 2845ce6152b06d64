/** Checks of the members and their databases. */
import { mebibytes } from '../../domain/defragmentation.ts';
import { issuesMessage } from '../../domain/known-issues.ts';

import { type Check, found, ok } from './finding.ts';
import { growthPerDay } from './growth.ts';
import type { Latency } from './metrics.ts';

const MI = 1024 ** 2;

export const checkRestarts: Check = ({ rows }) => {
  const restarted = rows.filter(({ restarts = 0 }) => restarts >= 3);
  return restarted.length === 0
    ? ok('restarts', 'no member restarts again and again')
    : found(
        'restarts',
        'advice',
        restarted.map(({ name, restarts }) => `${name} has restarted ${restarts} times`).join('; '),
        'read the log of the previous container: kubectl logs POD --previous',
      );
};

/** Time enough to raise the quota and the volume. */
const SOON_DAYS = 14;

export const checkQuota: Check = ({ rows, facts }) => {
  const asked = rows.filter(({ databaseBytes }) => databaseBytes !== undefined);
  if (asked.length === 0) return found('quota', 'unknown', 'no member responded with the size of its database');
  const share = Math.max(...asked.map(({ databaseBytes = 0, quotaBytes = 1 }) => databaseBytes / quotaBytes));
  const growth = growthPerDay(facts);
  const largest = asked.toSorted((a, b) => (b.databaseBytes ?? 0) - (a.databaseBytes ?? 0))[0];
  const left = (largest?.quotaBytes ?? 0) - (largest?.databaseBytes ?? 0);
  const days = growth !== undefined && growth > 0 ? left / growth : undefined;
  const trend =
    growth === undefined
      ? ''
      : days === undefined
        ? ', and does not grow'
        : `, and grows by ${mebibytes(growth)} a day: it is full in ${days >= 1_000 ? 'years' : `${Math.floor(days)} days`}`;
  const text = `the largest database has ${Math.round(100 * share)} % of its quota${trend}`;
  if (share < 0.6 && (days ?? SOON_DAYS) >= SOON_DAYS) return ok('quota', text);
  return found(
    'quota',
    share >= 0.9 ? 'problem' : 'advice',
    `${text}; at 100 %, etcd rejects all writes`,
    'delete keys, compact and defragment; or raise spec.options.quotaBackendBytes and the volume',
  );
};

/** Small databases are not worth the interruption. */
const WORTH_BYTES = 100 * MI;

export const checkFragmentation: Check = ({ rows }) => {
  const loose = rows.filter(
    ({ databaseBytes = 0, inUseBytes = 0 }) => databaseBytes > WORTH_BYTES && inUseBytes < databaseBytes / 2,
  );
  return loose.length === 0
    ? ok('fragmentation', 'no database has much unused space')
    : found(
        'fragmentation',
        'advice',
        `more than half of the database of ${loose.map(({ name }) => name).join(', ')} is unused`,
        'run: kubectl etcd defrag',
      );
};

/** etcd's own guidance for the 99th percentile. */
const FSYNC_SECONDS = 0.01;
const COMMIT_SECONDS = 0.025;
/** Fewer say nothing about the 99th percentile. */
const ENOUGH = 100;

export const checkDisk: Check = ({ rows, metrics }) => {
  if (metrics.size === 0) return found('disk', 'unknown', 'no metrics of a member could be read');
  const slow = (latency: Latency | undefined, limit: number): boolean =>
    latency !== undefined && latency.count >= ENOUGH && latency.p99 > limit;
  const text = (latency: Latency): string =>
    Number.isFinite(latency.p99) ? `${(1_000 * latency.p99).toFixed(0)} ms` : 'more than 8 s';
  const problems = rows.flatMap(({ name }) => {
    const { walFsync, backendCommit } = metrics.get(name) ?? {};
    return [
      ...(walFsync && slow(walFsync, FSYNC_SECONDS) ? [`fsync of ${name}: up to ${text(walFsync)}`] : []),
      ...(backendCommit && slow(backendCommit, COMMIT_SECONDS)
        ? [`commit of ${name}: up to ${text(backendCommit)}`]
        : []),
    ];
  });
  return problems.length === 0
    ? ok('disk', '99 % of fsyncs take at most 10 ms, and of commits 25 ms')
    : found(
        'disk',
        'advice',
        `the disks are slow, by their 99th percentiles since etcd started: ${problems.join('; ')}`,
        'use a faster StorageClass, and no disk that other writers share: slow fsyncs cause elections',
      );
};

export const checkVersions: Check = ({ facts, rows }) => {
  const versions = [...new Set(rows.flatMap(({ version }) => version ?? []))];
  const issues = versions.flatMap((version) => issuesMessage(version) ?? []);
  if (issues.length > 0)
    return found('version', 'advice', issues.join('; '), 'set spec.version to a patch release with the fixes');
  if (versions.length > 1)
    return found(
      'version',
      'advice',
      `members run ${versions.join(' and ')}`,
      'wait for the rollout, or see what holds it',
    );
  return ok('version', `etcd ${versions[0] ?? facts.cluster.spec.version} has no known issue`);
};

/** etcd warns from one second on: lease times and certificates depend on the clocks of the nodes. */
const CLOCK_MS = 1_000;

/** A response has whole seconds: only what is certain counts. */
export const checkClocks: Check = ({ metrics }) => {
  const clocks = [...metrics].flatMap(([name, { clock }]) => (clock ? [{ name, ...clock }] : []));
  if (clocks.length < 2) return ok('clocks', 'there are no two members to compare');
  const ahead = clocks.toSorted((a, b) => b.least - a.least)[0];
  const behind = clocks.toSorted((a, b) => a.most - b.most)[0];
  const apart = (ahead?.least ?? 0) - (behind?.most ?? 0);
  return apart <= CLOCK_MS
    ? ok('clocks', 'the clocks of the members are less than two seconds apart')
    : found(
        'clocks',
        'problem',
        `the clock of ${ahead?.name} is at least ${(apart / 1_000).toFixed(0)} s ahead of that of ${behind?.name}`,
        'check time synchronization (chrony, systemd-timesyncd) on their nodes',
      );
};
