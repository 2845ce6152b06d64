/** Rules for a cluster that exists. */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { type Answer, type Step, seen } from '../../runtime/plan.ts';
import { desired } from '../asked.ts';
import { isEntryOf, isReadyVoter, type Observed, readyCondition } from '../observed.ts';

type Answered = Answer<EtcdClusterStatus> | undefined;

/** Events tell when a Pod changes; etcd itself sends none. */
const ASK_AGAIN_MS = 5 * 60_000;
const ASK_SOON_MS = 5_000;

/** An address can come to belong to another cluster: nothing that it says is about ours. */
export const anotherCluster = (o: Observed): Answered => {
  const ours = o.cluster.status?.clusterID;
  if (o.etcd.is !== 'answers' || o.etcd.clusterID === ours) return undefined;
  return {
    why: `a member answers for etcd cluster ${o.etcd.clusterID}, but this cluster is ${ours}: nothing is changed`,
    wakeAfter: ASK_SOON_MS,
  };
};

/** Which members vote is etcd's to say; the client Service follows from it. */
export const recordVoters = (o: Observed): Answered => {
  if (o.etcd.is !== 'answers') return undefined;
  const entries = o.etcd.members;
  const steps = o.members.flatMap(({ object }): readonly Step[] => {
    const isVoter = entries.some((e) => !e.isLearner && isEntryOf(e, object));
    if ((object.status?.isVoter ?? false) === isVoter) return [];
    return [{ do: 'patch', to: seen('EtcdMember', object), subresource: 'status', fields: { status: { isVoter } } }];
  });
  return steps.length === 0 ? undefined : { why: 'which members vote has changed', steps };
};

export const waitForMembers = (o: Observed): Answered => {
  const waiting = o.members.filter((m) => !isReadyVoter(m));
  if (o.members.length - waiting.length >= desired(o)) return undefined;
  const reasons = waiting.map((m) => {
    const ready = readyCondition(m.object);
    const text = m.object.metadata.deletionTimestamp === undefined ? ready?.message : 'being deleted';
    return `${m.object.metadata.name}: ${text ?? 'not looked at yet'}`;
  });
  return { why: `waiting for members to be ready (${reasons.join('; ')})`, wakeAfter: ASK_SOON_MS };
};

export const steady = (o: Observed): Answer<EtcdClusterStatus> =>
  o.etcd.is === 'silent'
    ? { why: `members are ready, but etcd does not answer the operator: ${o.etcd.why}`, wakeAfter: ASK_SOON_MS }
    : { why: 'All members are ready', wakeAfter: ASK_AGAIN_MS };
