/** The status, conditions and Events of a member. */

import { type EtcdMemberStatus, PVC_TERMINATING } from '../../api/etcd-member.ts';
import { memberSelector } from '../../api/names.ts';
import { etcdImageOf, forbiddenImage } from '../../api/security.ts';
import {
  type ConditionUpdate,
  changedConditions,
  findCondition,
  messagesOnly,
  OPERATOR_IMAGE_NOT_CONFIGURED,
  updateConditions,
} from '../../domain/conditions.ts';
import { podBlockedBy } from '../../domain/member-pod.ts';
import { controllerOf, identity } from '../../domain/ownership.ts';
import { isPodReady, troubleOf } from '../../domain/pod.ts';
import type { Pod } from '../../gen/kube.ts';
import { iso } from '../../lib/time.ts';
import { type EventRecord, failureMessage } from '../../runtime/plan.ts';
import { dataTrouble, outOfMemory, provenLoss, terminatingMessage } from './evidence.ts';
import {
  cannotRestore,
  conflicts,
  inMemory,
  isClusterBeingDeleted,
  isDeleting,
  isDormant,
  isPvcTerminating,
  type Observed,
} from './observed.ts';
import { failedStartsOf } from './terminations.ts';

export function statusOf(o: Observed, message: string): EtcdMemberStatus {
  if (!isDeleting(o) && isOrphaned(o)) return withoutCluster(o);
  if (isDeleting(o) || isClusterBeingDeleted(o)) return o.member.status ?? {};
  const { failedStarts: _exits, ...before } = o.member.status ?? {};
  const { podName: _name, podUID: _uid, ...resumed } = before;
  const failedStarts = failedStartsOf(o);
  const facts: EtcdMemberStatus = {
    ...(isPaused(o) ? resumed : before),
    ...podFacts(o),
    ...etcdFacts(o),
    ...(failedStarts && { failedStarts }),
  };
  const updates = [ready(o, facts, message), ...drift(o, facts)];
  const at = { generation: o.member.metadata.generation, now: iso(o.now) };
  return {
    ...facts,
    selector: memberSelector(o.member.spec.clusterName, identity(o.member).name),
    conditions: [...updateConditions(before.conditions, updates, at)],
  };
}

/** Its cluster was deleted with --cascade=orphan: the garbage collector removed the owner reference, and leaves the member. */
const isOrphaned = (o: Observed): boolean => o.cluster === undefined && controllerOf(o.member) === undefined;

function withoutCluster({ member, now }: Observed): EtcdMemberStatus {
  const message = `EtcdCluster ${member.spec.clusterName} was deleted without its members, or is another one of the same name: the operator neither observes nor repairs this member. Delete it when its data is not needed any more`;
  const update: ConditionUpdate = { type: 'Ready', status: 'Unknown', reason: 'ClusterNotFound', message };
  const at = { generation: member.metadata.generation, now: iso(now) };
  return { ...member.status, conditions: [...updateConditions(member.status?.conditions, [update], at)] };
}

/** A paused member has no Pod; without the recorded Pod, resuming does not take the missing one for lost data. */
const isPaused = (o: Observed): boolean => isDormant(o) && o.pod.is === 'absent';

/** Kept from the previous Pod while there is none: with in-memory data, its uid proves the loss. */
const podFacts = (o: Observed): EtcdMemberStatus => ({
  ...(o.pod.is === 'ours' &&
    provenLoss(o) === undefined && {
      podName: o.pod.object.metadata.name ?? '',
      podUID: o.pod.object.metadata.uid ?? '',
      replicas: 1,
    }),
  ...(o.volume.is === 'ours' && { pvcName: o.volume.object.metadata.name ?? '' }),
});

/** Only a response with this cluster's id counts: a Pod IP may be reused. The member id is recorded once. */
const etcdFacts = (o: Observed): EtcdMemberStatus => {
  if (o.etcd.is !== 'answers' || o.etcd.clusterID !== o.cluster?.status?.clusterID) return {};
  return { memberID: o.member.status?.memberID ?? o.etcd.memberID, version: o.etcd.version, ...joinedImage(o) };
};

/**
 * Recorded while it is allowed, or while the Pod runs it: an image that a user has written into the EtcdMember since then is not.
 * Images of the default repository are always allowed.
 */
function joinedImage({ member, images, pod }: Observed): Pick<EtcdMemberStatus, 'image'> {
  const { repository } = member.spec.image ?? {};
  if (repository === undefined || pod.is !== 'ours') return {};
  const image = etcdImageOf(member.spec, images.repository);
  const runs = pod.object.spec?.containers.some((each) => each.name === 'etcd' && each.image === image) === true;
  return runs || forbiddenImage(images, repository) === undefined ? { image } : {};
}

function ready(o: Observed, facts: EtcdMemberStatus, conflict: string): ConditionUpdate {
  const no = (reason: string, message: string): ConditionUpdate => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
  });
  const lost = provenLoss(o);
  if (conflicts(o).length > 0) return no('NameConflict', conflict);
  if (lost) return no(lost.reason, lost.message);
  if (isDormant(o)) return no('Paused', 'the cluster is paused: the PVC and the member ID are kept');
  const blocked = podBlockedBy(o.member, o.images, o.cluster);
  if (o.pod.is !== 'ours' && blocked) return no(blocked.reason, blocked.message);
  const unrestorable = cannotRestore(o);
  if (o.pod.is !== 'ours' && unrestorable !== undefined) return no(OPERATOR_IMAGE_NOT_CONFIGURED, unrestorable);
  if (o.pod.is !== 'ours') return no('PodNotReady', `Pod ${identity(o.member).name} does not exist yet${refused(o)}`);
  const trouble = dataTrouble(o);
  if (trouble) return no(trouble.reason, trouble.message);
  const clusterID = o.cluster?.status?.clusterID;
  // Before the readiness of its Pod: without a quorum of the other cluster, it is never ready.
  if (o.etcd.is === 'answers' && clusterID !== undefined && clusterID !== o.etcd.clusterID)
    return no(
      'ClusterIDMismatch',
      `etcd in its Pod belongs to another cluster: it reports cluster ID ${o.etcd.clusterID}, and this cluster has ${clusterID}. Nothing is changed; its volume may hold the data of the other cluster`,
    );
  if (!isPodReady(o.pod.object)) return no('PodNotReady', restoreTrouble(o.pod.object) ?? podTrouble(o, o.pod.object));
  if (o.etcd.is === 'answers' && facts.memberID !== undefined && facts.memberID !== o.etcd.memberID)
    return no('MemberIDMismatch', `etcd reports member ID ${o.etcd.memberID}, but this member has ${facts.memberID}`);
  if (facts.memberID === undefined)
    return no('DiscoveringMemberID', 'the Pod is ready; waiting for etcd to report its member ID');
  if (isPvcTerminating(o)) return { type: 'Ready', status: 'True', reason: PVC_TERMINATING, message: keepPod(o) };
  return {
    type: 'Ready',
    status: 'True',
    reason: 'PodReady',
    message: 'the Pod is ready and etcd reports its member ID',
  };
}

const keepPod = (o: Observed): string =>
  `${terminatingMessage(o)}. The data exists as long as Pod ${identity(o.member).name}: do not delete it until the operator has replaced this member`;

/** The init container that etcd still waits for. */
function restoreTrouble({ status, metadata }: Pod): string | undefined {
  const first = status?.initContainerStatuses?.find((c) => c.state?.terminated?.exitCode !== 0);
  if (!first || metadata.deletionTimestamp !== undefined) return undefined;
  const { running, waiting } = first.state ?? {};
  const how = running ? 'is running' : `is waiting: ${waiting?.reason ?? 'for its turn'}`;
  return `pod phase: ${status?.phase ?? 'Pending'}; init container ${first.name} ${how}`;
}

const refused = ({ memory }: Observed): string => {
  const message = failureMessage(memory.failures);
  return message === undefined ? '' : `; ${message}`;
};

const podTrouble = (o: Observed, pod: Pod): string =>
  [`pod phase: ${pod.status?.phase ?? 'Pending'}`, troubleOf(pod, 'etcd'), lacksMemory(o, pod)]
    .filter(Boolean)
    .join('; ');

/** Kubernetes reports neither the limit nor the remedy. */
function lacksMemory(o: Observed, pod: Pod): string | undefined {
  if (!outOfMemory(o)) return undefined;
  const limit = pod.spec?.containers.find(({ name }) => name === 'etcd')?.resources?.limits?.['memory'];
  return `etcd was OOM-killed${limit === undefined ? '' : ` at its memory limit of ${limit}`}: its data is kept; raise spec.resources.limits.memory`;
}

function drift(o: Observed, facts: EtcdMemberStatus): readonly ConditionUpdate[] {
  if (facts.version === undefined) return [];
  const wanted = o.member.spec.version;
  const type = 'VersionDrifted';
  return facts.version === wanted
    ? [{ type, status: 'False', reason: 'VersionMatched', message: `etcd runs ${wanted}` }]
    : [
        {
          type,
          status: 'True',
          reason: 'VersionMismatch',
          message: `etcd runs ${facts.version}, the spec requires ${wanted}`,
        },
      ];
}

const EXPECTED = ['PodReady', 'PodNotReady', 'DiscoveringMemberID', 'VersionMatched', 'Paused'];

/** No Event while a new member is not ready yet: every member starts so. */
const STARTING = ['PodNotReady', 'DiscoveringMemberID'];
const isStarting = (status: EtcdMemberStatus | undefined): boolean =>
  findCondition(status?.conditions, 'Ready') === undefined;

export function eventsFor(o: Observed, after: EtcdMemberStatus): readonly EventRecord[] {
  const changed = changedConditions(o.member.status?.conditions, after.conditions);
  return changed
    .filter((c) => c.reason !== 'VersionMatched' && !(STARTING.includes(c.reason) && isStarting(o.member.status)))
    .map((c) => ({ type: EXPECTED.includes(c.reason) ? 'Normal' : 'Warning', reason: c.reason, note: c.message }));
}

/** Of a new member, these status writes are coalesced until its Pod is ready: no controller waits for them. */
const LATE_IN_NEW: readonly (keyof EtcdMemberStatus)[] = [
  'conditions',
  'podName',
  'podUID',
  'pvcName',
  'replicas',
  'selector',
];
/** The volume of a member keeps its data when its Pod is deleted; without one, only the recorded id proves that there was data. */
const LATE_WITH_VOLUME: readonly (keyof EtcdMemberStatus)[] = [...LATE_IN_NEW, 'memberID', 'version', 'image'];

export const isMinor = (before: EtcdMemberStatus, after: EtcdMemberStatus): boolean => {
  const isNew = isStarting(before) && STARTING.includes(findCondition(after.conditions, 'Ready')?.reason ?? '');
  return messagesOnly(before, after, isNew ? (after.pvcName === undefined ? LATE_IN_NEW : LATE_WITH_VOLUME) : []);
};

/** A stale `podUID` of an in-memory member would count as evidence that its data is lost. */
export const needsVersion = (o: Observed, { podUID }: Partial<EtcdMemberStatus>): boolean =>
  inMemory(o) && podUID !== undefined;
