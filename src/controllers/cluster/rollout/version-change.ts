/**
 * Changes of the etcd version: why no member may get the target version now, and what etcd has to do first. The rollout asks
 * before it patches the version of a member.
 */
import type { Target } from '../../../api/etcd-cluster-status.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { VERSION_PROBE_MS } from '../../../domain/timing.ts';
import { clusterVersionOf, minorName, minorOf, pathRefused } from '../../../domain/version-path.ts';
import { versionNumber } from '../../../lib/version.ts';
import { etcdStep } from '../etcd-calls.ts';
import {
  type ClusterDecision,
  type ClusterFacts,
  hasJoined,
  isFormed,
  type MemberView,
  nameOf,
  type Observed,
  wanted,
} from '../observed.ts';
import { preflight } from './preflight.ts';
import { templateOfNew } from './state.ts';
import {
  downgradeTo,
  hasStarted,
  isMinorChangeAhead,
  newerMembers,
  reportedVersions,
  runsTarget,
  stillUpgrading,
  targetMinor,
  unreadableByTarget,
} from './version-facts.ts';
import { takeVersionSnapshot } from './version-snapshot.ts';

const waitFor = (members: readonly MemberView[], what: string): ClusterDecision => ({
  message: `waiting until ${members.map(nameOf).join(', ')} ${what}`,
  requeueAfterMs: VERSION_PROBE_MS,
});

/** Why no member may get the target version now. */
export function versionChangeBlockedBy(o: Observed): Blocked | undefined {
  return versionChecks(o)[0];
}

/** All of them. What was checked before the first member is not checked again: the disruption check guards each further one. */
export function versionChecks(o: ClusterFacts): readonly Blocked[] {
  if (!isFormed(o)) return [];
  const path = pathRefused(reportedVersions(o), wanted(o).version);
  if (path) return [path];
  return isMinorChangeAhead(o) ? preflight(o) : [];
}

/** A snapshot to go back to, where a schedule has a destination. */
export const snapshotFirst = (o: Observed): ClusterDecision | undefined => takeVersionSnapshot(o, versionChecks(o));

/** A downgrade that the user has taken back, or one to another minor than the target, keeps etcd from raising its cluster version. */
export function cancelDowngrade(o: Observed): ClusterDecision | undefined {
  const to = downgradeTo(o);
  if (to === undefined || to === targetMinor(o)) return undefined;
  const message = `version is ${wanted(o).version}: cancelling the downgrade of etcd to ${minorName(to)}`;
  return {
    message,
    steps: [etcdStep(o, { name: 'cancelDowngrade' }, clusterVersionOf(to))],
    event: { type: 'Normal', reason: 'DowngradeCancelled', note: message },
  };
}

/**
 * What must be done before a member gets the target version: etcd does not start on the data of a later minor, unless a downgrade
 * was enabled and the data was rewritten. While a member still runs the target minor, an upgrade is taken back without it.
 */
export function beforeVersionChange(o: Observed): ClusterDecision | undefined {
  const cancel = cancelDowngrade(o);
  if (cancel) return cancel;
  if (newerMembers(o).length === 0) return undefined;
  const to = targetMinor(o);
  if (downgradeTo(o) === undefined && !runsTarget(o)) {
    const upgrading = stillUpgrading(o);
    if (upgrading.length > 0) return waitFor(upgrading, 'has finished its upgrade: then etcd can be downgraded');
    const message = `enabling the downgrade of etcd to ${minorName(to)}`;
    return {
      message,
      steps: [etcdStep(o, { name: 'enableDowngrade', version: clusterVersionOf(to) }, clusterVersionOf(to))],
      event: { type: 'Normal', reason: 'DowngradeEnabled', note: message },
    };
  }
  const waiting = unreadableByTarget(o);
  return waiting.length === 0 ? undefined : waitFor(waiting, `has rewritten its data for etcd ${minorName(to)}`);
}

/** Data in memory is lost with its Pod, so such members are replaced: their upgrade begins with a member that joins. */
const startsWithJoin = (o: ClusterFacts): boolean =>
  wanted(o).storage.medium === 'Memory' && o.cluster.status?.rollout?.since !== undefined;

/** Whether etcd starts with the target version, as a new member of this cluster. On volumes, an upgrade begins with a running member. */
function isTargetStartable(o: ClusterFacts): boolean {
  const [to, versions] = [targetMinor(o), reportedVersions(o)];
  if (versions.length === 0) return true;
  if (pathRefused(versions, wanted(o).version) || !(hasStarted(o) || startsWithJoin(o))) return false;
  return versions.some((version) => minorOf(version) <= to) || unreadableByTarget(o).length === 0;
}

/** The target of a member that joins: until the version of running members is changed, it gets that of the others. */
export function joinTarget(o: ClusterFacts): Target {
  const target = templateOfNew(o);
  const others = o.members.filter(hasJoined).map(({ object }) => object.spec.version);
  const [newest] = others.toSorted((a, b) => versionNumber(b) - versionNumber(a));
  return newest === undefined || isTargetStartable(o) ? target : { ...target, version: newest };
}
