/** What the operator says about a member. */

import {
  type ConditionUpdate,
  changedConditions,
  findCondition,
  messagesOnly,
  OPERATOR_IMAGE_NOT_CONFIGURED,
  updateConditions,
} from '../../api/conditions.ts';
import type { EtcdMemberStatus } from '../../api/etcd-member.ts';
import { memberSelector } from '../../api/names.ts';
import { forbiddenImage } from '../../api/security.ts';
import { NOT_YET_SUPPORTED, notYetConditions } from '../../domain/not-yet-supported.ts';
import { identity } from '../../domain/ownership.ts';
import { isPodReady, troubleOf } from '../../domain/pod.ts';
import type { Pod } from '../../gen/kube.ts';
import { iso } from '../../lib/time.ts';
import type { EventRecord } from '../../runtime/plan.ts';
import { dataTrouble, goesOn, provenLoss } from './evidence.ts';
import {
  cannotRestore,
  conflicts,
  inMemory,
  isClusterBeingDeleted,
  isDeleting,
  isDormant,
  notYet,
  type Observed,
} from './observed.ts';
import { etcdContainer, failedStartsOf, lastTermination } from './terminations.ts';

export function statusOf(o: Observed, why: string): EtcdMemberStatus {
  if (isDeleting(o) || isClusterBeingDeleted(o)) return o.member.status ?? {};
  const { failedStarts: _ends, ...before } = o.member.status ?? {};
  const { podName: _name, podUID: _uid, ...unparked } = before;
  const failedStarts = failedStartsOf(o);
  const facts: EtcdMemberStatus = {
    ...(isPaused(o) ? unparked : before),
    ...podFacts(o),
    ...etcdFacts(o),
    ...(failedStarts && { failedStarts }),
  };
  const unsupported = notYetConditions(notYet(o));
  const verdicts = [ready(o, facts, why), ...drift(o, facts), ...unsupported];
  const dropped = unsupported.length === 0 ? [NOT_YET_SUPPORTED] : [];
  const at = { generation: o.member.metadata.generation, now: iso(o.now) };
  return {
    ...facts,
    selector: memberSelector(o.member.spec.clusterName, identity(o.member).name),
    conditions: [...updateConditions(before.conditions, verdicts, at, dropped)],
  };
}

/** A parked member has no Pod, and on waking none that it could miss. */
const isPaused = (o: Observed): boolean => isDormant(o) && o.pod.is === 'absent';

/** Kept from the last Pod while there is none: for data in memory, the uid is the record of what was lost. */
const podFacts = (o: Observed): EtcdMemberStatus => ({
  ...(o.pod.is === 'ours' &&
    provenLoss(o) === undefined && {
      podName: o.pod.object.metadata.name ?? '',
      podUID: o.pod.object.metadata.uid ?? '',
      replicas: 1,
    }),
  ...(o.volume.is === 'ours' && { pvcName: o.volume.object.metadata.name ?? '' }),
});

/** Believed only when it speaks for our cluster; the member id is recorded once. */
const etcdFacts = (o: Observed): EtcdMemberStatus => {
  if (o.etcd.is !== 'answers' || o.etcd.clusterID !== o.cluster?.status?.clusterID) return {};
  return { memberID: o.member.status?.memberID ?? o.etcd.memberID, version: o.etcd.version };
};

function ready(o: Observed, facts: EtcdMemberStatus, why: string): ConditionUpdate {
  const no = (reason: string, message: string): ConditionUpdate => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
  });
  const lost = provenLoss(o);
  if (conflicts(o).length > 0) return no('NameConflict', why);
  if (lost) return no(lost.reason, lost.message);
  if (isDormant(o)) return no('Paused', 'the cluster is parked: the volume and the id are kept');
  const [unsupported] = notYet(o);
  const forbidden = forbiddenImage(o.images, o.member.spec.image?.repository);
  if (o.pod.is !== 'ours' && unsupported) return no(NOT_YET_SUPPORTED, unsupported.message);
  if (o.pod.is !== 'ours' && forbidden !== undefined) return no('ImageNotAllowed', forbidden);
  const unrestorable = cannotRestore(o);
  if (o.pod.is !== 'ours' && unrestorable !== undefined) return no(OPERATOR_IMAGE_NOT_CONFIGURED, unrestorable);
  if (o.pod.is !== 'ours') return no('PodNotReady', `Pod ${identity(o.member).name} is not there yet${refused(o)}`);
  const trouble = dataTrouble(o);
  if (trouble) return no(trouble.reason, trouble.message);
  if (!isPodReady(o.pod.object)) return no('PodNotReady', restoreTrouble(o.pod.object) ?? podTrouble(o, o.pod.object));
  if (o.etcd.is === 'answers' && facts.memberID !== undefined && facts.memberID !== o.etcd.memberID)
    return no('MemberIDMismatch', `etcd calls itself ${o.etcd.memberID}, but this member is ${facts.memberID}`);
  if (facts.memberID === undefined)
    return no('DiscoveringMemberID', 'the Pod is ready; waiting for etcd to tell its id');
  return { type: 'Ready', status: 'True', reason: 'PodReady', message: 'the Pod is ready and etcd has its id' };
}

/** What has to be done before etcd may start. */
function restoreTrouble({ status, metadata }: Pod): string | undefined {
  const first = status?.initContainerStatuses?.find((c) => c.state?.terminated?.exitCode !== 0);
  if (!first || metadata.deletionTimestamp !== undefined) return undefined;
  const { running, waiting } = first.state ?? {};
  const how = running ? 'is running' : `is waiting: ${waiting?.reason ?? 'for its turn'}`;
  return `pod phase: ${status?.phase ?? 'Pending'}; ${first.name}, which comes before etcd, ${how}`;
}

const refused = (o: Observed): string => (o.refusal === undefined ? '' : `; ${o.refusal}`);

const podTrouble = (o: Observed, pod: Pod): string =>
  [`pod phase: ${pod.status?.phase ?? 'Pending'}`, troubleOf(pod, 'etcd'), lacksMemory(o, pod)]
    .filter(Boolean)
    .join('; ');

/** Kubernetes itself names neither the limit nor the way out. */
function lacksMemory(o: Observed, pod: Pod): string | undefined {
  const container = etcdContainer(o);
  if (!container || lastTermination(container)?.reason !== 'OOMKilled' || goesOn(o, container)) return undefined;
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
          message: `etcd runs ${facts.version}, the spec says ${wanted}`,
        },
      ];
}

const EXPECTED = ['PodReady', 'PodNotReady', 'DiscoveringMemberID', 'VersionMatched', 'Paused'];

/** That a new member is not ready yet is no news. */
const STARTING = ['PodNotReady', 'DiscoveringMemberID'];
const isStarting = (status: EtcdMemberStatus | undefined): boolean =>
  findCondition(status?.conditions, 'Ready') === undefined;

export function eventsFor(o: Observed, after: EtcdMemberStatus): readonly EventRecord[] {
  const changed = changedConditions(o.member.status?.conditions, after.conditions);
  return changed
    .filter((c) => c.reason !== 'VersionMatched' && !(STARTING.includes(c.reason) && isStarting(o.member.status)))
    .map((c) => ({ type: EXPECTED.includes(c.reason) ? 'Normal' : 'Warning', reason: c.reason, note: c.message }));
}

/** A new member is not ready, and its first Pod is not named, until the id is known: nothing waits for that. */
const LATE_IN_NEW: readonly (keyof EtcdMemberStatus)[] = [
  'conditions',
  'podName',
  'podUID',
  'pvcName',
  'replicas',
  'selector',
];

export const isMinor = (before: EtcdMemberStatus, after: EtcdMemberStatus): boolean => {
  const isNew = isStarting(before) && STARTING.includes(findCondition(after.conditions, 'Ready')?.reason ?? '');
  return messagesOnly(before, after, isNew ? LATE_IN_NEW : []);
};

/** Of a joined member in memory, another uid than that of its Pod is the evidence that its data is lost. */
export const needsVersion = (o: Observed, { podUID }: Partial<EtcdMemberStatus>): boolean =>
  inMemory(o) && podUID !== undefined;
