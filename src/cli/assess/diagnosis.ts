/** What `kubectl etcd doctor` checks. Each check is a row: what it found, and what to do about it. */
import { checkBackups, checkCertificates, checkOperator, checkPdb, checkPermissions } from './diagnosis-around.ts';
import {
  checkClocks,
  checkDisk,
  checkFragmentation,
  checkQuota,
  checkRestarts,
  checkVersions,
} from './diagnosis-members.ts';
import type { ClusterFacts } from './facts.ts';
import { type Check, type Finding, found, type Level, ok } from './finding.ts';
import { isGood, judge } from './health.ts';
import { memberRows } from './members.ts';
import type { MemberMetrics } from './metrics.ts';

const checkHealth: Check = ({ facts }) => {
  const { health, summary } = judge(facts);
  if (isGood(health)) return ok('health', summary);
  const level = health === 'unknown' ? 'unknown' : health === 'paused' ? 'advice' : 'problem';
  return found('health', level, summary, 'see the conditions in: kubectl etcd status, and docs/operations.md');
};

const checkSize: Check = ({ facts: { cluster } }) => {
  const { replicas = 3, storage } = cluster.spec;
  if (storage?.medium === 'Memory')
    return found('members', 'advice', 'the data is in memory only, and lost when a quorum of Pods is', 'use volumes');
  if (replicas === 1)
    return found('members', 'advice', 'any failure of the only member is an outage', 'set replicas to 3');
  if (replicas > 0 && replicas % 2 === 0)
    return found(
      'members',
      'advice',
      `${replicas} members tolerate no more failures than ${replicas - 1}`,
      `set replicas to ${replicas + 1}`,
    );
  return ok('members', `${replicas} members`);
};

/** Two members on one node fail together, and so do all members of one zone. */
const checkSpread: Check = ({ rows }) => {
  const placed = rows.filter(({ node }) => node !== undefined);
  const shared = [...new Set(placed.map(({ node }) => node ?? ''))].filter(
    (node) => placed.filter((row) => row.node === node).length > 1,
  );
  if (shared.length > 0)
    return found(
      'spread',
      'advice',
      `several members run on ${shared.join(', ')} and fail together`,
      'add nodes, or set spec.topologySpreadConstraints with whenUnsatisfiable: DoNotSchedule',
    );
  const zones = new Set(placed.flatMap(({ zone }) => zone ?? []));
  if (placed.length > 1 && zones.size === 1)
    return found(
      'spread',
      'advice',
      `all members are in zone ${[...zones][0]}`,
      'spread them over zones, if there are more',
    );
  return ok('spread', `${placed.length} members on as many nodes${zones.size > 1 ? `, in ${zones.size} zones` : ''}`);
};

const CHECKS: readonly Check[] = [
  checkHealth,
  checkSize,
  checkSpread,
  checkRestarts,
  checkQuota,
  checkFragmentation,
  checkDisk,
  checkClocks,
  checkVersions,
  checkCertificates,
  checkBackups,
  checkPdb,
  checkOperator,
  checkPermissions,
];

const ORDER: readonly Level[] = ['problem', 'advice', 'unknown', 'ok'];

/** The worst first; within a level in the order of the checks. */
export function diagnose(facts: ClusterFacts, metrics: ReadonlyMap<string, MemberMetrics>): readonly Finding[] {
  const examined = { facts, rows: memberRows(facts), metrics };
  return CHECKS.map((check) => check(examined)).toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
}
