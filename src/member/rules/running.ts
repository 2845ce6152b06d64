/** Rules for a member that has, or is to have, a volume and a Pod. */
import type { EtcdMemberStatus } from '../../api/etcd-member.ts';
import { MEMBER_FINALIZER, ROLE_LABEL, ROLE_VOTER, volumeClaimName } from '../../api/names.ts';
import { isPodOver } from '../../api/pod.ts';
import { probeMs } from '../../lib/backoff.ts';
import { type Answer, type Step, seen } from '../../runtime/plan.ts';
import { type ClusterState, memberPod, volumeClaim } from '../build.ts';
import {
  conflicts,
  dataLost,
  forbiddenImage,
  inMemory,
  isClusterFormed,
  names,
  notYet,
  type Observed,
} from '../observed.ts';

type Answered = Answer<EtcdMemberStatus> | undefined;

const RECHECK_MS = 10_000;
const ASK_AGAIN_MS = 5 * 60_000;
const PROBE = { firstMs: 200, maxMs: 10_000 };

/** Another object of our name is never used: it may be another cluster's data. */
export const nameTaken = (o: Observed): Answered =>
  conflicts(o).length === 0
    ? undefined
    : { why: `${conflicts(o).join('; ')}: delete it if it is not needed`, wakeAfter: RECHECK_MS };

/** A Pod that lacks what was asked for, or runs what was forbidden, is never made. One that runs is left running. */
export const cannotRun = (o: Observed): Answered => {
  if (o.pod.is === 'ours' && !isPodOver(o.pod.object)) return undefined;
  const why = notYet(o)[0]?.message ?? forbiddenImage(o);
  return why === undefined ? undefined : { why };
};

/** An empty data directory must never come back under the name of a member that had joined. */
export const stopOnDataLoss = (o: Observed): Answered => {
  const why = dataLost(o);
  return why === undefined ? undefined : { why };
};

export const addFinalizer = (o: Observed): Answered => {
  const present = o.member.metadata.finalizers ?? [];
  if (present.includes(MEMBER_FINALIZER)) return undefined;
  const fields = { metadata: { finalizers: [...present, MEMBER_FINALIZER] } };
  return {
    why: 'the member must be removed from etcd before it may go',
    steps: [{ do: 'patch', to: seen('EtcdMember', o.member, 'this version'), fields }],
  };
};

/** An evicted or ended Pod keeps its name for ever, and no kubelet starts it again. */
export const removeEndedPod = (o: Observed): Answered => {
  if (o.pod.is !== 'ours' || !isPodOver(o.pod.object)) return undefined;
  const { metadata, status } = o.pod.object;
  if (metadata.deletionTimestamp !== undefined) return { why: `waiting for the ended Pod ${metadata.name} to be gone` };
  return {
    why: `Pod ${metadata.name} has ended (${status?.reason ?? status?.phase}): making it again`,
    steps: [{ do: 'delete', what: seen('Pod', o.pod.object) }],
  };
};

/** A new cluster is begun only by the seed, and only as long as nothing is known to exist. */
const clusterState = (o: Observed): ClusterState =>
  o.member.spec.bootstrap === true && o.member.status?.memberID === undefined && !isClusterFormed(o)
    ? 'new'
    : 'existing';

const votes = (o: Observed): boolean => isClusterFormed(o) && o.member.status?.isVoter === true;

export const makeVolumeAndPod = (o: Observed): Answered => {
  const needsVolume = !inMemory(o) && o.volume.is === 'absent';
  if (!needsVolume && o.pod.is !== 'absent') return undefined;
  if (o.volume.is === 'ours' && o.volume.object.metadata.deletionTimestamp !== undefined)
    return { why: `PersistentVolumeClaim ${volumeClaimName(names(o).name)} is being deleted: no Pod can use it` };
  const pod = memberPod(o.member, { imageRepository: o.images.repository, state: clusterState(o), votes: votes(o) });
  const steps: readonly Step[] = [
    ...(needsVolume ? [{ do: 'create', object: volumeClaim(o.member) } as const] : []),
    ...(o.pod.is === 'absent' ? [{ do: 'create', object: pod } as const] : []),
  ];
  return { why: needsVolume ? 'making the volume and the Pod' : 'the Pod is missing', steps };
};

/** The client Service follows the role label. */
export const labelRole = (o: Observed): Answered => {
  if (o.pod.is !== 'ours') return undefined;
  const labelled = o.pod.object.metadata.labels?.[ROLE_LABEL] === ROLE_VOTER;
  if (labelled === votes(o)) return undefined;
  const fields = { metadata: { labels: { [ROLE_LABEL]: votes(o) ? ROLE_VOTER : null } } };
  return {
    why: votes(o) ? 'the member votes: clients may reach it' : 'the member does not vote: clients may not reach it',
    steps: [{ do: 'patch', to: seen('Pod', o.pod.object), fields }],
  };
};

export const steady = (o: Observed): Answer<EtcdMemberStatus> => {
  if (o.etcd.is !== 'silent') return { why: 'volume and Pod are as they should be', wakeAfter: ASK_AGAIN_MS };
  const started = o.pod.is === 'ours' ? o.pod.object.status?.startTime : undefined;
  const elapsed = started === undefined ? 0 : o.now - Date.parse(started);
  return {
    why: `the Pod is ready, but etcd does not answer the operator: ${o.etcd.why}`,
    wakeAfter: probeMs(elapsed, PROBE),
  };
};
