/** Members that no new connection reaches any more, because CAs or certificates have expired, and that a restart would mend. */
import type { Blocked } from '../../../domain/disruption.ts';
import { loads, ROTATING } from '../credentials/state.ts';
import { blockedBy } from '../disruption-view.ts';
import { type MemberView, nameOf, type Observed } from '../observed.ts';
import { outdatedBecause } from './reasons.ts';

/** One that reports a leader is part of a quorum, and reached by the operator: it restarts like any other. */
const isCutOff = (o: Observed, { pod, self }: MemberView): boolean =>
  self?.leader === undefined &&
  pod.is === 'present' &&
  pod.terminating !== true &&
  o.credentials.expired.some((bundle) => loads(pod, bundle));

export interface CutOff {
  readonly m: MemberView;
  /** Why it is not restarted now. */
  readonly blockedBy: Blocked | undefined;
}

/** Only with another CA bundle: with the same one, a member would be as unreachable as before. */
export const cutOffMembers = (o: Observed): readonly CutOff[] =>
  o.members
    .filter((m) => isCutOff(o, m) && outdatedBecause(o, m).some(({ reason }) => reason === ROTATING))
    .map((m) => ({ m, blockedBy: blockedBy(o, nameOf(m), 'restartExpired') }));
