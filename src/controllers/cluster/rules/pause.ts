/** Rules about a cluster that is to have no members running: all of them are parked, and all wake. */
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

const turn = (m: MemberView, dormant: boolean): Step => ({
  do: 'patch',
  to: refTo('EtcdMember', m.object),
  fields: { spec: { dormant: dormant ? true : null } },
});

/** Nothing was ever acknowledged by a cluster without an id: there is nothing to keep. */
export function pausedBeforeBootstrap(o: Observed): Decided {
  if (isFormed(o) || desired(o) > 0) return undefined;
  const begun = o.members.filter(isNotBeingDeleted);
  const why = 'replicas is 0, and there is no data yet: nothing is begun until it is more';
  return begun.length === 0
    ? { message: why }
    : { message: why, steps: begun.map((m) => ({ do: 'delete', what: refTo('EtcdMember', m.object) })) };
}

/**
 * All Pods go, every volume and every id stays: no member has to be filled again on waking. Also of those that are to go: etcd
 * cannot be asked to forget them before it runs again.
 */
export function pause(o: Observed): Decided {
  if (!isFormed(o) || desired(o) > 0) return undefined;
  const awake = o.members.filter((m) => !isDormant(m));
  if (awake.length > 0)
    return { message: `parking ${awake.map(nameOf).join(', ')}`, steps: awake.map((m) => turn(m, true)) };
  const going = o.members.filter((m) => m.pod.is === 'present');
  return {
    message:
      going.length > 0
        ? `parking: waiting for the Pods of ${going.map(nameOf).join(', ')} to be gone`
        : 'parked: all volumes are kept; set replicas to wake the cluster',
  };
}

/** All wake, also those that are too many now, or are to go: their data is needed for a quorum. */
export function resume(o: Observed): Decided {
  const asleep = o.members.filter(isDormant);
  return asleep.length === 0
    ? undefined
    : { message: `waking ${asleep.map(nameOf).join(', ')}`, steps: asleep.map((m) => turn(m, false)) };
}
