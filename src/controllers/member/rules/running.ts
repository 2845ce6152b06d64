/** Rules for a member that has, or is to have, a volume and a Pod. */
import { type EtcdMemberStatus, EVIDENCE } from '../../../api/etcd-member.ts';
import {
  drainingSince,
  INITIAL_CHECK_ANNOTATION,
  INITIAL_CLUSTER_ANNOTATION,
  MEMBER_FINALIZER,
  MEMBER_UID_ANNOTATION,
  ROLE_LABEL,
  ROLE_VOTER,
  volumeClaimName,
} from '../../../api/names.ts';
import { forbiddenImage } from '../../../api/security.ts';
import { wantsAuth } from '../../../api/tls.ts';
import { controllerOf, identity } from '../../../domain/ownership.ts';
import { isPodOver, isPodReady } from '../../../domain/pod.ts';
import { probeMs } from '../../../lib/backoff.ts';
import { type Decision, refTo, type Step } from '../../../runtime/plan.ts';
import { type InitialState, initialStateOf, memberPod, volumeClaim, volumeOwnership } from '../build.ts';
import { dataTrouble, evidenceOf, provenLoss } from '../evidence.ts';
import {
  cannotRestore,
  conflicts,
  type Decided,
  hasJoined,
  inMemory,
  isClusterFormed,
  isDormant,
  notYet,
  type Observed,
  retains,
} from '../observed.ts';

const RECHECK_MS = 10_000;
const ASK_AGAIN_MS = 5 * 60_000;
const PROBE = { firstMs: 200, maxMs: 10_000 };

/** Another object of our name is never used: it may be another cluster's data. */
export const nameTaken = (o: Observed): Decided =>
  conflicts(o).length === 0
    ? undefined
    : { message: `${conflicts(o).join('; ')}: delete it if it is not needed`, requeueAfterMs: RECHECK_MS };

/** A Pod that lacks what was asked for, or runs what was forbidden, is never made. One that runs is left running. */
export const cannotRun = (o: Observed): Decided => {
  if (o.pod.is === 'ours' && !isPodOver(o.pod.object)) return undefined;
  const why = notYet(o)[0]?.message ?? forbiddenImage(o.images, o.member.spec.image?.repository) ?? cannotRestore(o);
  return why === undefined ? undefined : { message: why };
};

/** An empty data directory must never come back under the name of a member that had joined: no Pod is made. */
export const stopOnDataLoss = (o: Observed): Decided => {
  if (isDormant(o) && o.pod.is === 'ours') return undefined; // an ended Pod goes when its cluster is parked
  const loss = provenLoss(o);
  return loss?.reason === EVIDENCE.dataLost ? { message: loss.message } : undefined;
};

/** An earlier operator makes the object first, and says later which members it is to join. */
export const waitForJoinList = (o: Observed): Decided =>
  o.member.spec.initialCluster === '' ? { message: 'waiting to be added to etcd' } : undefined;

/** Parked: the Pod goes, and the volume, the id and the name stay. */
export const pause = (o: Observed): Decided => {
  if (!isDormant(o)) return undefined;
  if (o.pod.is !== 'ours') return { message: 'parked: it keeps its volume and its id' };
  return o.pod.object.metadata.deletionTimestamp === undefined
    ? {
        message: 'parking: the Pod goes, the volume stays',
        steps: [{ do: 'delete', what: refTo('Pod', o.pod.object) }],
      }
    : { message: `parking: waiting for Pod ${identity(o.member).name} to be gone` };
};

export const addFinalizer = (o: Observed): Decided => {
  const present = o.member.metadata.finalizers ?? [];
  if (present.includes(MEMBER_FINALIZER)) return undefined;
  const fields = { metadata: { finalizers: [...present, MEMBER_FINALIZER] } };
  return {
    message: 'the member must be removed from etcd before it may go',
    steps: [{ do: 'patch', to: refTo('EtcdMember', o.member, { resourceVersion: true }), fields }],
  };
};

/** A volume follows the policy while its member is there: once somebody deletes the cluster, it may be too late. */
export const ownVolume = (o: Observed): Decided => {
  if (o.volume.is !== 'ours' || o.volume.object.metadata.deletionTimestamp !== undefined) return undefined;
  const owned = controllerOf(o.volume.object) !== undefined;
  if (owned !== retains(o)) return undefined;
  const tie = volumeOwnership(o.member);
  const metadata = {
    ownerReferences: tie.ownerReferences ?? null,
    annotations: { [MEMBER_UID_ANNOTATION]: tie.annotations?.[MEMBER_UID_ANNOTATION] ?? null },
  };
  return {
    message: retains(o) ? 'the volume is to outlive its member' : 'the volume is to go with its member',
    steps: [
      {
        do: 'patch',
        to: refTo('PersistentVolumeClaim', o.volume.object, { resourceVersion: true }),
        fields: { metadata },
      },
    ],
  };
};

/** An evicted or ended Pod keeps its name for ever, and no kubelet starts it again. */
export const removeEndedPod = (o: Observed): Decided => {
  if (o.pod.is !== 'ours' || !isPodOver(o.pod.object)) return undefined;
  const { metadata, status } = o.pod.object;
  if (metadata.deletionTimestamp !== undefined)
    return { message: `waiting for the ended Pod ${metadata.name} to be gone` };
  return {
    message: `Pod ${metadata.name} has ended (${status?.reason ?? status?.phase}): making it again`,
    steps: [{ do: 'delete', what: refTo('Pod', o.pod.object) }],
  };
};

/** Who has not joined yet must start with the list that etcd has now: with any other it is turned away, again and again. */
export const remakeJoiningPod = (o: Observed): Decided => {
  if (o.pod.is !== 'ours' || hasJoined(o) || o.member.spec.bootstrap === true) return undefined;
  const told = o.pod.object.metadata.annotations?.[INITIAL_CLUSTER_ANNOTATION];
  const flags = o.pod.object.spec?.containers.find((c) => c.name === 'etcd')?.command ?? [];
  const list = o.member.spec.initialCluster;
  if (told === list || flags.includes(`--initial-cluster=${list}`)) return undefined; // flags: a Pod of the earlier operator
  if (o.pod.object.metadata.deletionTimestamp !== undefined)
    return { message: `waiting for Pod ${identity(o.member).name} with an outdated list of members to be gone` };
  return {
    message: 'the members have changed since the Pod was made, and it has not joined yet: making it again',
    steps: [{ do: 'delete', what: refTo('Pod', o.pod.object) }],
  };
};

/** A new cluster is begun only by the seed, and only as long as nothing is known to exist; and nobody joins twice. */
const wantedInitialState = (o: Observed): InitialState => {
  if (hasJoined(o)) return 'nothing';
  return o.member.spec.bootstrap === true ? 'cluster' : 'member';
};

const votes = (o: Observed): boolean => isClusterFormed(o) && o.member.status?.isVoter === true;

export const makeVolumeAndPod = (o: Observed): Decided => {
  const needsVolume = !inMemory(o) && o.volume.is === 'absent';
  if (!needsVolume && o.pod.is !== 'absent') return undefined;
  if (o.volume.is === 'ours' && o.volume.object.metadata.deletionTimestamp !== undefined)
    return {
      message: `PersistentVolumeClaim ${volumeClaimName(identity(o.member).name)} is being deleted: no Pod can use it`,
    };
  const { hasCompany, images } = o;
  const pod = memberPod(o.member, {
    imageRepository: images.repository,
    beginning: wantedInitialState(o),
    votes: votes(o),
    hasCompany,
    ...(images.operator !== undefined && {
      restore: { operatorImage: images.operator, auth: o.cluster !== undefined && wantsAuth(o.cluster.spec) },
    }),
    ...(o.cluster?.status?.trust && { trust: o.cluster.status.trust }),
  });
  const steps: readonly Step[] = [
    ...(needsVolume ? [{ do: 'create', object: volumeClaim(o.member) } as const] : []),
    ...(o.pod.is === 'absent' ? [{ do: 'create', object: pod } as const] : []),
  ];
  return { message: needsVolume ? 'making the volume and the Pod' : 'the Pod is missing', steps };
};

/** The client Service follows the role label, and etcd's next start the annotations. */
export const markPod = (o: Observed): Decided => {
  if (o.pod.is !== 'ours') return undefined;
  const { labels = {}, annotations = {} } = o.pod.object.metadata;
  const voter = votes(o);
  const begins = initialStateOf(o.member, o.member.spec.bootstrap === true ? 'cluster' : 'member');
  const told = annotations[begins.annotation];
  const mayBegin = voter && told !== undefined && told !== begins.after; // a seed votes as soon as there is a cluster
  const mayCompare = voter && o.etcd.is === 'answers' && annotations[INITIAL_CHECK_ANNOTATION] === 'false';
  const serves = voter && drainingSince(annotations) === undefined;
  const relabel = (labels[ROLE_LABEL] === ROLE_VOTER) !== serves;
  if (!relabel && !mayBegin && !mayCompare) return undefined;
  const annotate = {
    ...(mayBegin && { [begins.annotation]: begins.after }),
    ...(mayCompare && { [INITIAL_CHECK_ANNOTATION]: 'true' }),
  };
  const metadata = {
    ...(relabel && { labels: { [ROLE_LABEL]: serves ? ROLE_VOTER : null } }),
    ...(Object.keys(annotate).length > 0 && { annotations: annotate }),
  };
  const away = voter ? 'the member is about to be started again' : 'the member does not vote';
  const reach = serves ? 'the member votes: clients may reach it' : `${away}: clients may not reach it`;
  return {
    message: relabel || mayBegin ? reach : 'the member serves: it compares its data when it starts again',
    steps: [{ do: 'patch', to: refTo('Pod', o.pod.object), fields: { metadata } }],
  };
};

/** Without its id, a member is asked until it tells it; a Pod that becomes ready or not sends an event. */
export const steady = (o: Observed): Decision<EtcdMemberStatus> => {
  const evidence = evidenceOf(o);
  if (evidence) {
    const next = evidence.leftMs > 0 ? evidence.leftMs : (evidence.standsForMs ?? ASK_AGAIN_MS);
    return { message: evidence.message, requeueAfterMs: Math.min(next, ASK_AGAIN_MS) };
  }
  const trouble = dataTrouble(o);
  if (trouble)
    return { message: trouble.message, requeueAfterMs: Math.min(trouble.standsForMs ?? ASK_AGAIN_MS, ASK_AGAIN_MS) };
  if (o.etcd.is !== 'silent') return { message: 'volume and Pod are as they should be', requeueAfterMs: ASK_AGAIN_MS };
  const pod = o.pod.is === 'ours' ? o.pod.object : undefined;
  const elapsed = pod?.status?.startTime === undefined ? 0 : o.now - Date.parse(pod.status.startTime);
  const ready = pod && isPodReady(pod);
  return {
    message: `${ready ? 'the Pod is ready, but etcd' : 'etcd'} does not answer the operator: ${o.etcd.why}`,
    requeueAfterMs: ready || !hasJoined(o) ? probeMs(elapsed, PROBE) : ASK_AGAIN_MS,
  };
};
