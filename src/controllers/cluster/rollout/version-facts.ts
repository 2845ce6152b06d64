/** The versions that members run and have written, from the observed state. */
import { minorOf } from '../../../domain/version-path.ts';
import { type ClusterFacts, hasJoined, type MemberView, wanted } from '../observed.ts';

export const targetMinor = (o: ClusterFacts): number => minorOf(wanted(o).version);

/** The version that its etcd reports; of one that does not respond, the last one that it reported. */
export const reported = ({ self, object }: MemberView): string | undefined => self?.version ?? object.status?.version;
export const reportedVersions = (o: ClusterFacts): readonly string[] => o.members.flatMap((m) => reported(m) ?? []);

/** The minor that a downgrade has been enabled to. */
export const downgradeTo = (o: ClusterFacts): number | undefined => {
  const found = o.members.find(({ self }) => self?.downgradeTo !== undefined)?.self?.downgradeTo;
  return found === undefined ? undefined : minorOf(found);
};

/** Members that run a later minor than the target. */
export const newerMembers = (o: ClusterFacts): readonly MemberView[] =>
  o.members.filter(({ self }) => self !== undefined && minorOf(self.version) > targetMinor(o));

/** While a member runs a minor, the cluster version is not above it: every other member can be started with that minor, too. */
export const runsTarget = (o: ClusterFacts): boolean =>
  o.members.some(({ self }) => self !== undefined && minorOf(self.version) <= targetMinor(o));

/** etcd before 3.6 writes no storage version. */
export const storageMinor = ({ self }: MemberView): number => minorOf(self?.storageVersion ?? '3.5.0');

/** Members whose data an etcd of the target minor could not read yet. */
export const unreadableByTarget = (o: ClusterFacts): readonly MemberView[] =>
  newerMembers(o).filter((m) => storageMinor(m) > targetMinor(o));

/**
 * Members whose last upgrade has not ended. A downgrade is not enabled before: the data would look as if it had been rewritten
 * already, and etcd would refuse to start because the cluster version is still the later one.
 */
export const stillUpgrading = (o: ClusterFacts): readonly MemberView[] =>
  newerMembers(o).filter((m) => storageMinor(m) < minorOf(m.self?.version ?? ''));

/** A member has, or had, the target minor, or a downgrade to it is enabled: nothing is checked again before the next member. */
export const hasStarted = (o: ClusterFacts): boolean =>
  downgradeTo(o) === targetMinor(o) ||
  reportedVersions(o).some((version) => minorOf(version) === targetMinor(o)) ||
  o.members.some((m) => hasJoined(m) && minorOf(m.object.spec.version) === targetMinor(o));

/** The minor of members is to be changed, and none has been changed yet. */
export const isMinorChangeAhead = (o: ClusterFacts): boolean => reportedVersions(o).length > 0 && !hasStarted(o);

/**
 * The minor of the cluster version of etcd, as far as its members prove it: it is never above the lowest one that runs, and from
 * 3.6 on each member writes it into its data.
 */
export function clusterMinor(o: ClusterFacts): number | undefined {
  const running = o.members.flatMap(({ self }) => (self ? [minorOf(self.version)] : []));
  if (running.length === 0 || running.length < o.members.length) return undefined;
  const lowest = Math.min(...running);
  const written = o.members.filter(({ self }) => self?.storageVersion !== undefined).map(storageMinor);
  const isAgreed = written.every((minor) => minor === (downgradeTo(o) ?? lowest));
  return isAgreed ? (downgradeTo(o) ?? lowest) : undefined;
}

/** Why the change of the minor has not ended although all members run the target: etcd raises its cluster version by itself. */
export function versionUnsettled(o: ClusterFacts): string | undefined {
  const to = targetMinor(o);
  const runs = o.members.length > 0 && o.members.every(({ self }) => self && minorOf(self.version) === to);
  // A new cluster agrees on its first version within seconds: that is no change.
  const recorded = o.cluster.status?.clusterVersion;
  if (!runs || recorded === undefined || (clusterMinor(o) === to && downgradeTo(o) === undefined)) return undefined;
  if (minorOf(recorded) === to && downgradeTo(o) === undefined) return undefined;
  const behind = o.members.filter((m) => m.self?.storageVersion !== undefined && storageMinor(m) !== to);
  if (behind.length === 0) return `all members run ${wanted(o).version}: waiting until etcd has ended the downgrade`;
  return `all members run ${wanted(o).version}: waiting until etcd has raised its cluster version, and the storage version of ${behind.map(({ object }) => object.metadata.name).join(', ')}`;
}
