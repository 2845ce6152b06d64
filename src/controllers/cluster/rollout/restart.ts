/** How one member is restarted, whatever the reason: out of the client Service, leadership transferred, then its Pod deleted. */
import { DRAINING_ANNOTATION, OLD_DRAINING_ANNOTATION, ROLE_LABEL } from '../../../api/names.ts';
import { DRAIN_MS } from '../../../domain/timing.ts';
import { iso } from '../../../lib/time.ts';
import type { ObjectRef, Step } from '../../../runtime/plan.ts';
import { nameIn } from '../build.ts';
import { healthyVoters, leaderOf, votersOf } from '../disruption.ts';
import { etcdStep } from '../etcd-calls.ts';
import {
  type ClusterDecision,
  type EtcdMemberEntry,
  entryOf,
  type MemberView,
  nameOf,
  type Observed,
} from '../observed.ts';

export const isInMemory = (m: MemberView): boolean => m.object.spec.storage.medium === 'Memory';

/** The leader last: restarting it costs a leadership transfer. */
export function leaderLast(o: Observed, members: readonly MemberView[]): readonly MemberView[] {
  const leads = (m: MemberView): number => Number(entryOf(o, m)?.id === leaderOf(o));
  return [...members].sort((a, b) => leads(a) - leads(b));
}

/** Kubernetes keeps a terminating PVC only while a Pod uses it: deleting the Pod would delete the data. */
export const losesPvc = (m: MemberView): string | undefined =>
  m.pvc === 'terminating'
    ? `the PersistentVolumeClaim of ${nameOf(m)} is being deleted, and its data would be lost with the Pod`
    : undefined;

export interface Restart {
  readonly m: MemberView;
  readonly entry: EtcdMemberEntry;
  readonly message: string;
  /** Reason of the Event. */
  readonly reason: string;
  /** What is deleted: the Pod, or the EtcdMember if its data is in memory. */
  readonly what?: ObjectRef;
}

export function restarting(o: Observed, { m, entry, message, reason, what = podOf(m) }: Restart): ClusterDecision {
  const transferee = healthyVoters(o).find(({ id }) => id !== entry.id);
  if (leaderOf(o) === entry.id && transferee)
    return {
      message: `${message}; transferring leadership to ${nameIn(transferee)} first`,
      steps: [etcdStep(o, { name: 'moveLeader', to: transferee.id }, nameIn(transferee))],
    };
  const drainedMs = isInMemory(m) || votersOf(o).length === 1 ? DRAIN_MS : drainingForMs(o, m);
  if (drainedMs === undefined)
    return {
      message: `${message}; taking it out of the client Service first`,
      steps: [trafficPatch(m, iso(o.now), null)],
    };
  if (drainedMs < DRAIN_MS)
    return { message: `${message}; taking it out of the client Service first`, requeueAfterMs: DRAIN_MS - drainedMs };
  return { message, steps: [{ do: 'delete', what }], event: { type: 'Normal', reason, note: message } };
}

export const drainingForMs = (o: Observed, { pod }: MemberView): number | undefined =>
  pod.is === 'present' && pod.terminating !== true && pod.drainingSince !== undefined
    ? o.now - pod.drainingSince
    : undefined;

export const trafficPatch = (m: MemberView, since: string | null, role: string | null): Step => ({
  do: 'patch',
  to: podOf(m),
  fields: {
    metadata: {
      labels: { [ROLE_LABEL]: role },
      annotations: { [DRAINING_ANNOTATION]: since, ...(since === null && { [OLD_DRAINING_ANNOTATION]: null }) },
    },
  },
});

function podOf(m: MemberView): ObjectRef {
  const { namespace = '', name = '' } = m.object.metadata;
  return { kind: 'Pod', namespace, name, uid: (m.pod.is === 'present' && m.pod.uid) || '' };
}
