/** Which outdated member restarts next, and whether it may do so now. */
import type { Blocked } from '../../../domain/disruption.ts';
import { blockedBy } from '../disruption-view.ts';
import { entryOf, type MemberView, type Observed } from '../observed.ts';
import { cutOffMembers } from './expired.ts';
import { leaderLast } from './order.ts';
import { type Outdated, outdatedBecause } from './reasons.ts';

/** The outdated member that restarts next, although it may have to wait. */
const nextToRestart = (o: Observed): MemberView | undefined =>
  leaderLast(
    o,
    o.members.filter((m) => outdatedBecause(o, m).length > 0),
  )[0];

function rollingBlockedBy(o: Observed): Blocked | undefined {
  const next = nextToRestart(o);
  return next && blockedBy(o, entryOf(o, next)?.id, 'restart');
}

/** Why the next outdated member is not restarted now; `undefined` when it is, or when none is outdated. */
export function restartBlockedBy(o: Observed): Blocked | undefined {
  const cutOff = cutOffMembers(o);
  return cutOff.length > 0 ? cutOff.find((each) => each.blockedBy)?.blockedBy : rollingBlockedBy(o);
}

export interface Candidate {
  readonly m: MemberView;
  readonly reasons: readonly Outdated[];
}

/** The member that is restarted now. Whether the cluster is at rest is among the requirements of a restart, not left to the place of a rule. */
export function restartCandidate(o: Observed): Candidate | undefined {
  const m = rollingBlockedBy(o) === undefined ? nextToRestart(o) : undefined;
  return m && { m, reasons: outdatedBecause(o, m) };
}
