/** A database that has reached its quota: the facts about it, and what is recorded and reported of its remedy. */
import { quotaOf } from '../../api/defaults.ts';
import { DEFAULT_KEPT_REVISIONS, type RemedyStatus } from '../../api/maintenance.ts';
import { DEFAULT_SIZE } from '../../api/storage.ts';
import { hasRoom, mebibytes } from '../../domain/defragmentation.ts';
import { identity } from '../../domain/ownership.ts';
import { enableRemedy, growthRemedy, kubectlEtcd, remedyCommands } from '../../domain/space.ts';
import { NEARLY_FULL_RECHECK_MS } from '../../domain/timing.ts';
import { quantityBytes } from '../../lib/quantity.ts';
import { type ClusterFacts, isVoter, type MemberView, nameOf, type SelfReport } from './observed.ts';

export const wantsRemedy = ({ cluster }: Pick<ClusterFacts, 'cluster'>): boolean =>
  cluster.spec.maintenance?.autoRemedy?.enabled === true;
export const keptRevisions = ({ cluster }: ClusterFacts): number =>
  cluster.spec.maintenance?.autoRemedy?.keepRevisions ?? DEFAULT_KEPT_REVISIONS;

export const remedyOf = ({ cluster }: Pick<ClusterFacts, 'cluster'>): RemedyStatus | undefined =>
  cluster.status?.remedy;
export const isUnderRemedy = (o: Pick<ClusterFacts, 'cluster'>): boolean =>
  remedyOf(o)?.startedAt !== undefined && remedyOf(o)?.finishedAt === undefined;

/** The ids of the members that have raised NOSPACE; `undefined` when etcd does not respond. */
export const fullMembers = ({ etcd }: ClusterFacts): readonly string[] | undefined =>
  etcd.is === 'answers' ? etcd.alarms.flatMap(({ id, alarm }) => (alarm === 'NOSPACE' ? [id] : [])) : undefined;

/** Its file is smaller than its quota, with some room left. */
export const fits = ({ self, object }: MemberView): boolean =>
  self !== undefined && hasRoom({ bytes: self.databaseBytes, quotaBytes: quotaOf(object) });

type Reporting = MemberView & { readonly self: SelfReport };

/** All voters, if each of them responds: the one that does not may be the one that is full. */
export function reportingVoters({ members }: ClusterFacts): readonly Reporting[] | undefined {
  const voters = members.filter(isVoter);
  const reporting = voters.filter((m): m is Reporting => m.self !== undefined);
  return reporting.length > 0 && reporting.length === voters.length ? reporting : undefined;
}

/** What keys and history take in the largest database. */
export const largestInUse = (voters: readonly Reporting[]): number =>
  Math.max(...voters.map(({ self }) => self.databaseBytesInUse));

/** No client can write from the alarm on until it is noticed. */
export const spaceRecheckMs = (o: ClusterFacts): number | undefined =>
  o.members.some((m) => m.self !== undefined && !fits(m)) ? NEARLY_FULL_RECHECK_MS : undefined;

/** Exact after a defragmentation. After a compaction alone, etcd reports the pages as used until its next write. */
export function fullOfKeys(o: ClusterFacts): Reporting | undefined {
  return reportingVoters(o)?.find(
    ({ self, object }) => !hasRoom({ bytes: self.databaseBytesInUse, quotaBytes: quotaOf(object) }),
  );
}

export function noRoomMessage(o: ClusterFacts, m: Reporting): string {
  const { databaseBytesInUse: inUse } = m.self;
  const quota = quotaOf(m.object);
  const volume = quantityBytes(o.cluster.spec.storage?.size ?? DEFAULT_SIZE);
  return `keys and history take ${mebibytes(inUse)} of the quota of ${mebibytes(quota)} in ${nameOf(m)}, also after it was compacted and defragmented: ${growthRemedy(inUse, quota, volume)}`;
}

/** What is being done about it, or what a user has to do, with the commands. */
function help(o: ClusterFacts): string {
  const cluster = identity(o.cluster);
  const remedy = remedyOf(o);
  if (wantsRemedy(o)) {
    if (isUnderRemedy(o))
      return remedy?.defrag === undefined
        ? 'The operator compacts the history'
        : `The operator defragments the members: EtcdDefrag ${remedy.defrag}`;
    const isSettled = remedy?.result !== undefined && remedy.result !== 'Remedied';
    return isSettled
      ? (remedy.message ?? '')
      : 'The operator compacts, defragments and disarms the alarm (spec.maintenance.autoRemedy)';
  }
  if (o.members.length > 0 && o.members.every(fits))
    return `Every database has room again, only the alarm is left: ${kubectlEtcd('alarm disarm', cluster)}`;
  return `Compact, defragment and disarm the alarm: ${remedyCommands(cluster)} . Or let the operator do it: ${enableRemedy(cluster)}`;
}

/** A NOSPACE alarm of one member makes all members reject writes, even after it was removed. Reads, deletions and compaction still work. */
export function noSpaceMessage(o: ClusterFacts): string | undefined {
  const ids = fullMembers(o) ?? [];
  if (ids.length === 0) return undefined;
  const names = ids.map((id) => o.members.find(({ self }) => self?.id === id)?.object.metadata.name ?? id).sort();
  return `etcd rejects writes: database space exceeded on ${names.join(', ')} (NOSPACE). ${help(o)}`;
}
