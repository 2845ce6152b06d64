/** Rules for a member that has, or needs, a PVC and a Pod. */
import { type EtcdMemberStatus, EVIDENCE } from '../../../api/etcd-member.ts';
import {
  drainingSince,
  INITIAL_CHECK_ANNOTATION,
  INITIAL_CLUSTER_ANNOTATION,
  MEMBER_FINALIZER,
  memberLabels,
  QUARANTINE_LABEL,
  QUARANTINE_REASON_ANNOTATION,
  QUARANTINED_AT_ANNOTATION,
  ROLE_LABEL,
  ROLE_VOTER,
  volumeClaimName,
} from '../../../api/names.ts';
import { podBlockedBy } from '../../../domain/member-pod.ts';
import { identity, isBeingDeleted } from '../../../domain/ownership.ts';
import { isPodOver, isPodReady } from '../../../domain/pod.ts';
import { FOREIGN_RECHECK_MS, MEMBER_PROBE, REPLACED_WITHIN_MS, RESYNC_MS } from '../../../domain/timing.ts';
import { probeMs } from '../../../lib/backoff.ts';
import { type Decision, refTo, type Step } from '../../../runtime/plan.ts';
import { initialStateOf, volumeAnnotations, volumeClaim } from '../build.ts';
import { dataTrouble, evidenceOf, outOfMemory, provenLoss, terminatingMessage } from '../evidence.ts';
import {
  type Contributed,
  cannotRestore,
  conflicts,
  type Decided,
  hasJoined,
  inMemory,
  isDeleting,
  isDormant,
  isPvcTerminating,
  isQuarantined,
  type Observed,
} from '../observed.ts';
import { votes, wantedPod } from '../wanted-pod.ts';

/** A foreign object of the same name is never used: it may hold another cluster's data. */
export const nameTaken = (o: Observed): Decided =>
  conflicts(o).length === 0
    ? undefined
    : { message: `${conflicts(o).join('; ')}: delete it if it is not needed`, requeueAfterMs: FOREIGN_RECHECK_MS };

/** No Pod is created without what the spec asks for, or with an image that is forbidden and was when it joined. A running Pod is left alone. */
export const cannotRun = (o: Observed): Decided => {
  if (o.pod.is === 'ours' && !isPodOver(o.pod.object)) return undefined;
  const message = podBlockedBy(o.member, o.images, o.cluster)?.message ?? cannotRestore(o);
  return message === undefined ? undefined : { message };
};

/**
 * No Pod for a joined member without its data: etcd would start with an empty data directory and vote again. And a terminated Pod
 * is not deleted while it may keep the PVC from being deleted.
 */
export const stopOnDataLoss = (o: Observed): Decided => {
  const loss = provenLoss(o);
  if (loss?.reason === EVIDENCE.pvcTerminating) return { message: loss.message };
  if (isDormant(o) && o.pod.is === 'ours') return undefined; // a terminated Pod is deleted when its cluster is paused
  return loss?.reason === EVIDENCE.dataLost ? { message: loss.message } : undefined;
};

/** An earlier operator creates the EtcdMember first, and sets spec.initialCluster later. */
export const waitForJoinList = (o: Observed): Decided =>
  o.member.spec.initialCluster === '' ? { message: 'waiting to be added to etcd' } : undefined;

/** Paused (replicas 0): the Pod is deleted; the PVC, the member id and the name are kept. */
export const pause = (o: Observed): Decided => {
  if (!isDormant(o)) return undefined;
  if (o.pod.is !== 'ours') return { message: 'paused: the PVC and the member ID are kept' };
  if (isBeingDeleted(o.pod.object))
    return { message: `pausing: waiting until Pod ${identity(o.member).name} is deleted` };
  if (isPvcTerminating(o) && hasJoined(o))
    return { message: `${terminatingMessage(o)}: the Pod is kept, and the data with it` };
  const message = 'pausing: deleting the Pod, keeping the PVC';
  return { message, steps: [{ do: 'delete', what: refTo('Pod', o.pod.object) }] };
};

export const addFinalizer = (o: Observed): Contributed => {
  if (hasFinalizer(o)) return undefined;
  const present = o.member.metadata.finalizers ?? [];
  const fields = { metadata: { finalizers: [...present, MEMBER_FINALIZER] } };
  return {
    message: 'adding the finalizer: the member must be removed from etcd before it is deleted',
    sequences: [[{ do: 'patch', to: refTo('EtcdMember', o.member, { resourceVersion: true }), fields }]],
  };
};

const hasFinalizer = ({ member }: Observed): boolean => member.metadata.finalizers?.includes(MEMBER_FINALIZER) === true;

type Entries = Readonly<Record<string, string>>;
const lacked = (actual: Entries, wanted: Entries) =>
  Object.entries(wanted).filter(([key, value]) => actual[key] !== value);

/**
 * The PVC has no owner reference: an earlier operator's has one. Without its labels it is not in the cache, and the cluster
 * controller would not see that a user deletes it.
 */
export const correctVolume = (o: Observed): Contributed => {
  if (o.volume.is !== 'ours' || inMemory(o)) return undefined;
  const { labels = {}, annotations = {}, ownerReferences = [] } = o.volume.object.metadata;
  const { name, uid } = identity(o.member);
  const lackedLabels = lacked(labels, memberLabels(o.member.spec.clusterName, name));
  const lackedAnnotations = lacked(annotations, volumeAnnotations(o.member));
  const others = ownerReferences.filter((owner) => owner.uid !== uid);
  const isOwned = others.length < ownerReferences.length;
  if (!isOwned && lackedLabels.length === 0 && lackedAnnotations.length === 0) return undefined;
  const metadata = {
    ...(isOwned && { ownerReferences: others.length > 0 ? others : null }),
    ...(lackedLabels.length > 0 && { labels: Object.fromEntries(lackedLabels) }),
    ...(lackedAnnotations.length > 0 && { annotations: Object.fromEntries(lackedAnnotations) }),
  };
  const to = refTo('PersistentVolumeClaim', o.volume.object, { resourceVersion: true });
  const message = isOwned ? 'removing the owner reference of the PVC' : 'restoring the labels of the PVC';
  return { message, sequences: [[{ do: 'patch', to, fields: { metadata } }]] };
};

/**
 * A member that recovered before it was deleted keeps its PVC. One that is being deleted can lose its Pod, and with it its
 * failure evidence, before etcd has removed it: without the label, its PVC would be deleted at once.
 */
export const endQuarantine = (o: Observed): Contributed => {
  if (isDeleting(o) || o.volume.is !== 'ours' || !isQuarantined(o) || provenLoss(o) !== undefined) return undefined;
  const at = Date.parse(o.volume.object.metadata.annotations?.[QUARANTINED_AT_ANNOTATION] ?? '') || 0;
  if (o.now - at < REPLACED_WITHIN_MS) return undefined; // its EtcdMember is about to be deleted
  const annotations = { [QUARANTINED_AT_ANNOTATION]: null, [QUARANTINE_REASON_ANNOTATION]: null };
  const metadata = { labels: { [QUARANTINE_LABEL]: null }, annotations };
  const to = refTo('PersistentVolumeClaim', o.volume.object, { resourceVersion: true });
  return {
    message: 'the member has recovered: ending the quarantine of the PVC',
    sequences: [[{ do: 'patch', to, fields: { metadata } }]],
  };
};

/** An evicted or terminated Pod occupies its name until it is deleted, and the kubelet never starts it again. */
export const removeEndedPod = (o: Observed): Decided => {
  if (o.pod.is !== 'ours' || !isPodOver(o.pod.object)) return undefined;
  const { metadata, status } = o.pod.object;
  if (metadata.deletionTimestamp !== undefined)
    return { message: `waiting until the terminated Pod ${metadata.name} is deleted` };
  return {
    message: `Pod ${metadata.name} has terminated (${status?.reason ?? status?.phase}): recreating it`,
    steps: [{ do: 'delete', what: refTo('Pod', o.pod.object) }],
  };
};

/** A member that has not joined must start with etcd's current member list: with an outdated --initial-cluster, etcd exits at every start. */
export const remakeJoiningPod = (o: Observed): Decided => {
  if (o.pod.is !== 'ours' || hasJoined(o) || o.member.spec.bootstrap === true) return undefined;
  // It has joined with the earlier list, which is not recorded yet: its memory may hold the data of a voter.
  if (o.etcd.is === 'answers' && o.etcd.clusterID === o.cluster?.status?.clusterID) return undefined;
  const annotated = o.pod.object.metadata.annotations?.[INITIAL_CLUSTER_ANNOTATION];
  const flags = o.pod.object.spec?.containers.find((c) => c.name === 'etcd')?.command ?? [];
  const list = o.member.spec.initialCluster;
  if (annotated === list || flags.includes(`--initial-cluster=${list}`)) return undefined; // flags: a Pod of the earlier operator
  if (o.pod.object.metadata.deletionTimestamp !== undefined)
    return { message: `waiting until Pod ${identity(o.member).name} with an outdated --initial-cluster is deleted` };
  return {
    message: 'the members have changed since the Pod was created, and it has not joined yet: recreating it',
    steps: [{ do: 'delete', what: refTo('Pod', o.pod.object) }],
  };
};

export const makeVolumeAndPod = (o: Observed): Decided => {
  const needsVolume = !inMemory(o) && o.volume.is === 'absent';
  if (!needsVolume && o.pod.is !== 'absent') return undefined;
  // Without it, a member that a user deletes would be gone before etcd has removed it.
  if (!hasFinalizer(o)) return { message: 'waiting for the finalizer before the Pod is created' };
  if (o.volume.is === 'ours' && o.volume.object.metadata.deletionTimestamp !== undefined)
    return {
      message: `PersistentVolumeClaim ${volumeClaimName(identity(o.member).name)} is being deleted: no Pod can mount it`,
    };
  const steps: readonly Step[] = [
    ...(needsVolume ? [{ do: 'create', object: volumeClaim(o.member) } as const] : []),
    ...(o.pod.is === 'absent' ? [{ do: 'create', object: wantedPod(o) } as const] : []),
  ];
  return { message: needsVolume ? 'creating the PVC and the Pod' : 'creating the missing Pod', steps };
};

/**
 * The client Service selects by the role label; etcd reads the annotations at its next start. A Pod without the labels of its
 * member is in no Service and not in the cache, and the cluster controller would take the member for one without a Pod.
 */
export const markPod = (o: Observed): Contributed => {
  if (o.pod.is !== 'ours' || isPodOver(o.pod.object) || isDormant(o)) return undefined;
  const { labels = {}, annotations = {} } = o.pod.object.metadata;
  const voter = votes(o);
  const begins = initialStateOf(o.member, o.member.spec.bootstrap === true ? 'cluster' : 'member');
  const annotated = annotations[begins.annotation];
  const hasStarted = voter && annotated !== undefined && annotated !== begins.after; // a seed votes as soon as the cluster has formed
  const hasServed = o.etcd.is === 'answers' || isPodReady(o.pod.object);
  const enableCheck = voter && hasServed && annotations[INITIAL_CHECK_ANNOTATION] === 'false';
  const serves = voter && drainingSince(annotations) === undefined;
  const relabel = (labels[ROLE_LABEL] === ROLE_VOTER) !== serves;
  const stripped = lacked(labels, memberLabels(o.member.spec.clusterName, identity(o.member).name));
  if (!relabel && !hasStarted && !enableCheck && stripped.length === 0) return undefined;
  const annotate = {
    ...(hasStarted && { [begins.annotation]: begins.after }),
    ...(enableCheck && { [INITIAL_CHECK_ANNOTATION]: 'true' }),
  };
  const metadata = {
    ...((relabel || stripped.length > 0) && {
      labels: { ...Object.fromEntries(stripped), ...(relabel && { [ROLE_LABEL]: serves ? ROLE_VOTER : null }) },
    }),
    ...(Object.keys(annotate).length > 0 && { annotations: annotate }),
  };
  const away = voter ? 'the member is about to be restarted' : 'the member is not a voter';
  const reach = serves
    ? 'the member is a voter: adding it to the client Service'
    : `${away}: taking it out of the client Service`;
  const other = enableCheck
    ? 'the member serves: enabling the initial corruption check for its next start'
    : 'restoring the labels of the Pod';
  return {
    message: relabel || hasStarted ? reach : other,
    sequences: [[{ do: 'patch', to: refTo('Pod', o.pod.object), fields: { metadata } }]],
  };
};

/** A member without a recorded id is requeued until etcd reports it; readiness changes of the Pod arrive as watch events. */
export const steady = (o: Observed): Decision<EtcdMemberStatus> => {
  const evidence = evidenceOf(o);
  if (evidence) {
    const next = evidence.leftMs > 0 ? evidence.leftMs : (evidence.standsForMs ?? RESYNC_MS);
    return { message: evidence.message, requeueAfterMs: Math.min(next, RESYNC_MS) };
  }
  const trouble = dataTrouble(o);
  if (trouble)
    return { message: trouble.message, requeueAfterMs: Math.min(trouble.standsForMs ?? RESYNC_MS, RESYNC_MS) };
  const resyncMs = outOfMemory(o)?.standsForMs ?? RESYNC_MS; // without it, the advice to raise the limit stays for minutes
  if (o.etcd.is !== 'unreachable') return { message: 'the PVC and the Pod match the spec', requeueAfterMs: resyncMs };
  const pod = o.pod.is === 'ours' ? o.pod.object : undefined;
  const elapsed = pod?.status?.startTime === undefined ? 0 : o.now - Date.parse(pod.status.startTime);
  const ready = pod && isPodReady(pod);
  return {
    message: `${ready ? 'the Pod is ready, but etcd' : 'etcd'} does not respond to the operator: ${o.etcd.message}`,
    requeueAfterMs: ready || !hasJoined(o) ? probeMs(elapsed, MEMBER_PROBE) : resyncMs,
  };
};
