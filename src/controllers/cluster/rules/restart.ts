/** Rules that restart outdated members, one after the other. */
import { ROLE_VOTER } from '../../../api/names.ts';
import type { Step } from '../../../runtime/plan.ts';
import { ROTATING } from '../credentials/state.ts';
import { type Contributed, type Decided, type MemberView, nameOf, type Observed } from '../observed.ts';
import { restartCandidate } from '../rollout/candidate.ts';
import { cutOffMembers } from '../rollout/expired.ts';
import { drainingForMs, podOf, restarting, trafficPatch } from '../rollout/restart.ts';

export function restart(o: Observed): Decided {
  const { m, reasons = [] } = restartCandidate(o) ?? {};
  const [first] = reasons;
  if (!m || !first) return undefined;
  const message = `${nameOf(m)} is restarted ${reasons.map((each) => each.message).join(', ')}`;
  return restarting(o, { m, message, reason: first.reason });
}

/**
 * CAs or certificates have expired, and no new connection reaches the member: neither the operator's, nor the one that would have
 * it restarted in turn. One that is not ready has no connection to lose, so all of these restart without waiting for each other.
 */
export function restartExpired(o: Observed): Decided {
  const m = cutOffMembers(o).find((each) => each.blockedBy === undefined)?.m;
  if (!m) return undefined;
  const message = `${nameOf(m)} is restarted with the new CA bundle: the certificates have expired, and no new connection reaches it`;
  const steps: readonly Step[] = [{ do: 'delete', what: podOf(m) }];
  return { message, steps, restarts: m, event: { type: 'Normal', reason: ROTATING, note: message } };
}

/** A member that is not restarted after all, or has to wait for another one, goes back into the client Service. */
export const restoreTraffic =
  (restarts: MemberView | undefined) =>
  (o: Observed): Contributed => {
    const drained = o.members.filter((m) => drainingForMs(o, m) !== undefined && m !== restarts);
    if (drained.length === 0) return undefined;
    const message = `${drained.map(nameOf).join(', ')} is not restarted now: back in the client Service`;
    return { message, sequences: drained.map((m) => [trafficPatch(m, null, ROLE_VOTER)]) };
  };
