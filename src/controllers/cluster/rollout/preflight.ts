/** What must hold before the minor of the first member is changed. Each check says what is wrong, and what to do. */
import { quotaOf } from '../../../api/defaults.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { unknownFlags } from '../../../domain/etcd-flags.ts';
import { type ClusterFacts, entriesOf, type MemberView, memberOf, nameOf, wanted } from '../observed.ts';
import { isHealthy } from '../quorum.ts';
import { versionStartBlockedBy } from './state.ts';
import { isMinorChangeAhead } from './version-facts.ts';
import { snapshotBlockedBy } from './version-snapshot.ts';

type Check = (o: ClusterFacts) => Blocked | undefined;

const MIB = 1024 ** 2;
/** etcd stops applying writes while it hashes its data: in a database of this size for about a tenth of a second. */
export const MAX_HASHED_BYTES = 64 * MIB;
/** Above this share of the quota, the writes of a rollout could raise the alarm that stops all writes. */
const MAX_QUOTA_USED = 0.95;

const names = (members: readonly MemberView[]): string => members.map(nameOf).join(', ');

const allHealthy: Check = (o) => {
  const unhealthy = o.members.filter((m) => !isHealthy(o, m));
  const listed = entriesOf(o);
  if (!listed) return { reason: 'MembersUnhealthy', message: 'etcd does not respond with its member list' };
  return unhealthy.length === 0
    ? undefined
    : { reason: 'MembersUnhealthy', message: `${names(unhealthy)} must be healthy first` };
};

/** A learner, or a member that the operator does not manage, runs a version that the operator cannot change. */
const onlyOwnVoters: Check = (o) => {
  const entries = entriesOf(o) ?? [];
  const learner = entries.find(({ isLearner }) => isLearner);
  if (learner) {
    const message = `${learner.name || learner.peerURLs.join()} is a learner: it must be promoted or removed first`;
    return { reason: 'LearnerPresent', message };
  }
  const foreign = entries.find((entry) => !memberOf(o, entry));
  return (
    foreign && {
      reason: 'ForeignMembers',
      message: `the operator does not manage the etcd member ${foreign.name || foreign.id}, and cannot change its version: remove it first`,
    }
  );
};

const noAlarm: Check = (o) => {
  const [first] = o.etcd.is === 'answers' ? o.etcd.alarms : [];
  return (
    first && {
      reason: 'AlarmRaised',
      message: `etcd has the alarm ${first.alarm}: remove its cause, and disarm it with etcdctl alarm disarm`,
    }
  );
};

const belowQuota: Check = (o) => {
  const full = o.members.filter((m) => (m.self?.databaseBytes ?? 0) > MAX_QUOTA_USED * quotaOf(m.object));
  return full.length === 0
    ? undefined
    : {
        reason: 'QuotaNearlyUsed',
        message: `the database of ${names(full)} has more than 95% of its quota: compact and defragment it, or raise options.quotaBackendBytes`,
      };
};

const flagsKnown: Check = (o) => {
  const { version, extraArgs } = wanted(o);
  const unknown = unknownFlags(version, extraArgs ?? []);
  return unknown.length === 0
    ? undefined
    : {
        reason: 'UnknownFlags',
        message: `etcd ${version} does not start with ${unknown.join(', ')}: remove it from extraArgs, together with the change of version`,
      };
};

const BEFORE_HASHES: readonly Check[] = [allHealthy, onlyOwnVoters, noAlarm, belowQuota, flagsKnown];

const isSmall = (o: ClusterFacts): boolean =>
  o.members.every(({ self }) => (self?.databaseBytes ?? 0) <= MAX_HASHED_BYTES);

/** Whether members are to be asked for hashes of their data: only when nothing else is wrong or waited for, because it stops writes. */
export const wantsHashes = (o: ClusterFacts): boolean =>
  isMinorChangeAhead(o) &&
  o.members.length > 1 &&
  isSmall(o) &&
  [...BEFORE_HASHES, versionStartBlockedBy].every((check) => !check(o));

/** Data that differs already would be copied by the upgraded member, or found only when it is too late to go back. */
const sameData: Check = (o) => {
  if (!wantsHashes(o)) return undefined;
  const hashes = new Set(o.hashes?.map(({ hash }) => hash));
  if (hashes.size === 1 && !hashes.has(undefined)) return undefined;
  const known = (o.hashes ?? []).filter(({ hash }) => hash !== undefined);
  const [first] = known;
  if (!first || known.length < o.members.length || known.some(({ at }) => at !== first.at))
    return {
      reason: 'ComparingData',
      message: 'waiting until all members have hashed their data at the same revision',
    };
  const message = `the members have different data at revision ${first.at}: ${known.map(({ member, hash }) => `${member} ${hash}`).join(', ')}. Find out which one is wrong, and delete its EtcdMember`;
  return { reason: 'DataDiffers', message };
};

/** In the order in which they are reported. Data is compared, and then a snapshot taken, only when nothing else is wrong or waited for. */
export function preflight(o: ClusterFacts): readonly Blocked[] {
  const found = [...BEFORE_HASHES, versionStartBlockedBy].flatMap((check) => check(o) ?? []);
  if (found.length > 0) return found;
  const blocked = sameData(o) ?? snapshotBlockedBy(o);
  return blocked ? [blocked] : [];
}
