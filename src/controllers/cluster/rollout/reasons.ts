/** Why a member is outdated and has to restart. A new reason to restart members is a function in CHECKERS. */
import { loadsOther, ROTATING } from '../credentials/state.ts';
import type { MemberView, Observed } from '../observed.ts';

export interface Outdated {
  /** Reason of the Event. */
  readonly reason: string;
  /** What the restart is for: "to …". */
  readonly message: string;
}

type Checker = (o: Observed, m: MemberView) => Outdated | undefined;

const loadsOtherBundle: Checker = (o, m) =>
  o.credentials.restart.some((bundle) => loadsOther(m.pod, bundle))
    ? { reason: ROTATING, message: 'to load the recorded CA bundle' }
    : undefined;

const CHECKERS: readonly Checker[] = [loadsOtherBundle];

/** All reasons at once: a member that is outdated in two ways restarts once. */
export const outdatedBecause = (o: Observed, m: MemberView): readonly Outdated[] =>
  CHECKERS.flatMap((check) => check(o, m) ?? []);
