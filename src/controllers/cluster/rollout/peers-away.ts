/** While no quorum runs, a member that has started serves nothing, whatever it was started with. */
import { quorumOf } from '../../../domain/quorum.ts';
import { READINESS_PROBED_WITHIN_MS, STABLE_AFTER_MS } from '../../../domain/timing.ts';
import { isVoter, type MemberView, type Observed } from '../observed.ts';

/** An etcd that does not start with an edit exits within seconds; one that crashes again and again runs for a while each time. */
function hasStarted(o: Observed, { pod, self }: MemberView): boolean {
  if (self !== undefined) return true;
  if (pod.is === 'absent' || pod.terminating === true || pod.runningSince === undefined) return false;
  return o.now - pod.runningSince >= (pod.restarted === true ? STABLE_AFTER_MS : READINESS_PROBED_WITHIN_MS);
}

/**
 * Its etcd runs, and fewer voters run than a quorum needs: after a restart, etcd answers nothing before there is a leader. Taken for
 * one that the edit has broken, it would keep the others from getting what ends their outage.
 */
export function lacksPeers(o: Observed, m: MemberView): boolean {
  const voters = o.members.filter(isVoter);
  return hasStarted(o, m) && voters.filter((voter) => hasStarted(o, voter)).length < quorumOf(voters.length);
}
