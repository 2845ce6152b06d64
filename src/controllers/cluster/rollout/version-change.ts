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
import { templateOfNew } from './state.ts';

const targetMinor = (o: ClusterFacts): number => minorOf(wanted(o).version);

/** The version that its etcd reports; of one that does not respond, the last one that it reported. */
const reported = ({ self, object }: MemberView): string | undefined => self?.version ?? object.status?.version;
const reportedVersions = (o: ClusterFacts): readonly string[] => o.members.flatMap((m) => reported(m) ?? []);

/** The minor that a downgrade has been enabled to. */
const downgradeTo = (o: ClusterFacts): number | undefined => {
  const found = o.members.find(({ self }) => self?.downgradeTo !== undefined)?.self?.downgradeTo;
  return found === undefined ? undefined : minorOf(found);
};

/** Members that run a later minor than the target. */
const newerMembers = (o: ClusterFacts): readonly MemberView[] =>
  o.members.filter(({ self }) => self !== undefined && minorOf(self.version) > targetMinor(o));

/** While a member runs a minor, the cluster version is not above it: every other member can be started with that minor, too. */
const runsTarget = (o: ClusterFacts): boolean =>
  o.members.some(({ self }) => self !== undefined && minorOf(self.version) <= targetMinor(o));

/** etcd before 3.6 writes no storage version. */
const storageMinor = ({ self }: MemberView): number => minorOf(self?.storageVersion ?? '3.5.0');

/** Members whose data an etcd of the target minor could not read yet. */
const unreadableByTarget = (o: ClusterFacts): readonly MemberView[] =>
  newerMembers(o).filter((m) => storageMinor(m) > targetMinor(o));

/**
 * Members whose last upgrade has not ended. A downgrade is not enabled before: the data would look as if it had been rewritten
 * already, and etcd would refuse to start because the cluster version is still the later one.
 */
const stillUpgrading = (o: ClusterFacts): readonly MemberView[] =>
  newerMembers(o).filter((m) => storageMinor(m) < minorOf(m.self?.version ?? ''));

const waitFor = (members: readonly MemberView[], what: string): ClusterDecision => ({
  message: `waiting until ${members.map(nameOf).join(', ')} ${what}`,
  requeueAfterMs: VERSION_PROBE_MS,
});

/** Why no member may get the target version now. */
export function versionChangeBlockedBy(o: Observed): Blocked | undefined {
  return isFormed(o) ? pathRefused(reportedVersions(o), wanted(o).version) : undefined;
}

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

/** Whether etcd starts with the target version: on the data of the other members, and as a new member of their cluster. */
function isTargetStartable(o: ClusterFacts): boolean {
  const [to, versions] = [targetMinor(o), reportedVersions(o)];
  if (versions.length === 0) return true;
  if (pathRefused(versions, wanted(o).version)) return false;
  if (versions.every((version) => minorOf(version) > to))
    return downgradeTo(o) === to && unreadableByTarget(o).length === 0;
  // An upgrade begins with one member, and not with one that joins.
  return (
    versions.some((version) => minorOf(version) >= to) ||
    o.members.some((m) => hasJoined(m) && minorOf(m.object.spec.version) === to)
  );
}

/** The target of a member that joins: until the version of running members is changed, it gets that of the others. */
export function joinTarget(o: ClusterFacts): Target {
  const target = templateOfNew(o);
  const others = o.members.filter(hasJoined).map(({ object }) => object.spec.version);
  const [newest] = others.toSorted((a, b) => versionNumber(b) - versionNumber(a));
  return newest === undefined || isTargetStartable(o) ? target : { ...target, version: newest };
}
