/** A cluster whose data no member can serve any more: what is lost, what is left, and what a user can do. */
import { EVIDENCE } from '../../api/etcd-member.ts';
import { volumeClaimName } from '../../api/names.ts';
import {
  evidence,
  hasNoData,
  hasNoReadableData,
  isFormed,
  isInMemory,
  type MemberView,
  nameOf,
  type Observed,
} from './observed.ts';

export interface Loss {
  readonly reason: 'AllMembersLost' | 'NoReadableData';
  readonly message: string;
}

const NO_REPLACEMENT = 'The operator never bootstraps an empty replacement.';

const listed = (what: string, names: readonly string[]): readonly string[] =>
  names.length === 0 ? [] : [`${what}: ${names.join(', ')}`];

const isVolumeLost = (m: MemberView): boolean => evidence(m)?.reason === EVIDENCE.volumeLost;
const pvcNames = (members: readonly MemberView[]): readonly string[] => members.map((m) => volumeClaimName(nameOf(m)));

/** Listed by kind, because this message may be the only record of the deleted objects. */
function lostObjects({ members }: Observed): string {
  if (members.length === 0) return 'all EtcdMembers deleted';
  const deleted = members.filter((m) => !isVolumeLost(m));
  return [
    ...listed('PVCs deleted', pvcNames(deleted.filter((m) => !isInMemory(m)))),
    ...listed('Pods deleted', deleted.filter(isInMemory).map(nameOf)),
    ...listed('volumes lost', pvcNames(members.filter(isVolumeLost))),
  ].join('; ');
}

function allLost(o: Observed): Loss {
  const left = o.leftVolumes ?? [];
  const remedy =
    left.length === 0
      ? 'Restore a snapshot into a new cluster, or delete this one.'
      : `Keep the volumes: ${left.join(', ')}. Copy the data directories from them, or restore a snapshot into a new cluster, before you delete this one.`;
  return {
    reason: 'AllMembersLost',
    message: `All members have lost their data (${lostObjects(o)}). ${NO_REPLACEMENT} ${remedy}`,
  };
}

/** A Pod without an EtcdMember is not recreated, and its etcd may have the only copy of the data. */
function onlyPodsLeft(pods: readonly string[]): Loss {
  return {
    reason: 'NoReadableData',
    message: `All EtcdMembers are deleted, and Pods are left: ${pods.join(', ')}. ${NO_REPLACEMENT} If their etcd still runs, save a snapshot with etcdctl before they end, and restore it into a new cluster.`,
  };
}

/** The evidence of each member comes last: a message that is too long is truncated at the end. */
function unreadable({ members }: Observed): Loss {
  const kept = members.filter((m) => !hasNoData(m));
  const places = [
    ...pvcNames(kept.filter((m) => !isInMemory(m))),
    ...kept.filter(isInMemory).map((m) => `Pod ${nameOf(m)}`),
  ];
  const found = members.map((m) => `${nameOf(m)}: ${evidence(m)?.message ?? ''}`);
  return {
    reason: 'NoReadableData',
    message:
      `No member can read its data. ${NO_REPLACEMENT} It deletes nothing; keep ${places.join(', ')}. ` +
      'Repair the data directories, of which you keep copies, or restore a snapshot into a new cluster. ' +
      `What is wrong: ${found.join('; ')}`,
  };
}

/**
 * No member serves, and none will recover by itself. AllMembersLost means that all PVCs are deleted: while one exists, a user may
 * need its data, and the advice to delete the cluster would destroy it; so it would while a Pod without an EtcdMember still runs.
 * If there are no members, the API server was asked.
 */
export function lossOfAll(o: Observed): Loss | undefined {
  if (!isFormed(o) || !o.members.every(hasNoReadableData)) return undefined;
  const { leftPods = [] } = o;
  if (leftPods.length > 0) return onlyPodsLeft(leftPods);
  return o.members.every(hasNoData) ? allLost(o) : unreadable(o);
}
