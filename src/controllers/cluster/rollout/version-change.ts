/**
 * Changes of the etcd version: why no member may get the target version now, and what etcd has to do first. The rollout asks
 * before it patches the version of a member.
 */
import type { EtcdClusterStatus, Target } from '../../../api/etcd-cluster-status.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { VERSION_PROBE_MS } from '../../../domain/timing.ts';
import { clusterVersionOf, minorName, minorOf, pathRefused } from '../../../domain/version-path.ts';
import { present } from '../../../lib/present.ts';
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
import { leaderOf } from '../quorum.ts';
import { failedRollout } from './failed.ts';
import { preflight } from './preflight.ts';
import { changesVersion, templateOfNew } from './state.ts';
import {
  downgradeTo,
  hasStarted,
  isMinorChangeAhead,
  newerMembers,
  reported,
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
export const versionChangeBlockedBy = (o: ClusterFacts): Blocked | undefined => versionChecks(o)[0];

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
export function cancelDowngrade(o: ClusterFacts): ClusterDecision | undefined {
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
export function beforeVersionChange(o: ClusterFacts): ClusterDecision | undefined {
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

/** Its data may be of a later minor than any that runs, and it does not report whether it was rewritten. */
const mayBeUnreadable = (o: ClusterFacts, m: MemberView): boolean =>
  m.self === undefined && minorOf(reported(m) ?? wanted(o).version) > targetMinor(o) && !runsTarget(o);

/**
 * Why the next Pod of this member is built from what it has now, whatever it is restarted for: a CA rotation does not wait for the
 * checks before a change of the version, and must not go around them. Going back after a rollout that failed needs no check.
 */
export function versionHeldBy(o: ClusterFacts, m: MemberView): Blocked | undefined {
  if (!changesVersion(o, m) || failedRollout(o)) return undefined;
  const blocked = versionChangeBlockedBy(o);
  if (blocked) return blocked;
  // Without a leader etcd cancels no downgrade, and the member may be what the quorum lacks: etcd reads the data of an earlier minor.
  const before = leaderOf(o) === undefined && cancelDowngrade(o) ? undefined : beforeVersionChange(o);
  const message = mayBeUnreadable(o, m)
    ? `${nameOf(m)} must respond first: its data may be unreadable for etcd ${minorName(targetMinor(o))}`
    : before?.message;
  return message === undefined ? undefined : { reason: 'VersionNotReady', message };
}

/**
 * Data in memory is lost with its Pod, so such members are replaced: their upgrade begins with a member that joins. By then a member
 * is missing, so it is recorded before that the checks have passed.
 */
export const recordedChecks = (o: ClusterFacts, m: MemberView): Pick<EtcdClusterStatus, 'rollout'> =>
  changesVersion(o, m) && isMinorChangeAhead(o) && versionHeldBy(o, m) === undefined
    ? { rollout: { ...o.cluster.status?.rollout, checked: minorName(targetMinor(o)) } }
    : {};

const startsWithJoin = (o: ClusterFacts): boolean =>
  wanted(o).storage.medium === 'Memory' && o.cluster.status?.rollout?.checked === minorName(targetMinor(o));

/** Whether etcd starts with the target version, as a new member of this cluster. On volumes, an upgrade begins with a running member. */
function isTargetStartable(o: ClusterFacts): boolean {
  const [to, versions] = [targetMinor(o), reportedVersions(o)];
  if (versions.length === 0) return true;
  if (pathRefused(versions, wanted(o).version) || !(hasStarted(o) || startsWithJoin(o))) return false;
  return versions.some((version) => minorOf(version) <= to) || unreadableByTarget(o).length === 0;
}

/** The target of a member that joins: until the version of running members is changed, it gets that of the others, and what is written for it. */
export function joinTarget(o: ClusterFacts): Target {
  const { version, image, extraArgs, ...target } = templateOfNew(o);
  const others = o.members.filter(hasJoined).map(({ object }) => object.spec);
  const [newest] = others.toSorted((a, b) => versionNumber(b.version) - versionNumber(a.version));
  const from = newest === undefined || isTargetStartable(o) ? { version, image, extraArgs } : newest;
  return { ...target, version: from.version, ...present({ image: from.image, extraArgs: from.extraArgs }) };
}
