/** Rules that pause a cluster (replicas 0) and resume it: all members at once. */
import { refTo, type Step } from '../../../runtime/plan.ts';
import {
  type Decided,
  desired,
  isDormant,
  isFormed,
  isNotBeingDeleted,
  type MemberView,
  nameOf,
  type Observed,
} from '../observed.ts';

const setDormant = (m: MemberView, dormant: boolean): Step => ({
  do: 'patch',
  to: refTo('EtcdMember', m.object),
  fields: { spec: { dormant: dormant ? true : null } },
});

/** A cluster without an ID never acknowledged a write: its seed is deleted. */
export function pausedBeforeBootstrap(o: Observed): Decided {
  if (isFormed(o) || desired(o) > 0) return undefined;
  const created = o.members.filter(isNotBeingDeleted);
  const message = 'replicas is 0, and there is no data yet: set replicas to bootstrap the cluster';
  return created.length === 0
    ? { message }
    : { message, steps: created.map((m) => ({ do: 'delete', what: refTo('EtcdMember', m.object) })) };
}

/**
 * Deletes all Pods and keeps every PVC and member id, so that no member has to replicate its data again on resume. Members that
 * are being deleted are paused too: etcd cannot remove them before it runs again.
 */
export function pause(o: Observed): Decided {
  if (!isFormed(o) || desired(o) > 0) return undefined;
  const active = o.members.filter((m) => !isDormant(m));
  if (active.length > 0)
    return { message: `pausing ${active.map(nameOf).join(', ')}`, steps: active.map((m) => setDormant(m, true)) };
  const stopping = o.members.filter((m) => m.pod.is === 'present');
  return {
    message:
      stopping.length > 0
        ? `pausing: waiting for the Pods of ${stopping.map(nameOf).join(', ')} to be deleted`
        : 'paused: all volumes are kept; set replicas to resume the cluster',
  };
}

/** Resumes all members, including those beyond replicas or being deleted: the quorum needs their votes and data. */
export function resume(o: Observed): Decided {
  const dormant = o.members.filter(isDormant);
  return dormant.length === 0
    ? undefined
    : { message: `resuming ${dormant.map(nameOf).join(', ')}`, steps: dormant.map((m) => setDormant(m, false)) };
}
