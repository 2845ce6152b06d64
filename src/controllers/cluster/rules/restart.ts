/** Rules that restart outdated members, one after the other. */
import { ROLE_VOTER } from '../../../api/names.ts';
import { type Contributed, type Decided, type MemberView, nameOf, type Observed } from '../observed.ts';
import { restartCandidate } from '../rollout/candidate.ts';
import { drainingForMs, restarting, trafficPatch } from '../rollout/restart.ts';

export function restart(o: Observed): Decided {
  const { m, reasons = [] } = restartCandidate(o) ?? {};
  const [first] = reasons;
  if (!m || !first) return undefined;
  const message = `${nameOf(m)} is restarted ${reasons.map((each) => each.message).join(', ')}`;
  return restarting(o, { m, message, reason: first.reason });
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
