/** How far a rollout is, for the conditions and for how soon the next reconcile is due. */
import type { Template } from '../../../api/template.ts';
import { DATA_IN_MEMORY } from '../../../domain/disruption.ts';
import { hasOtherRepository } from '../../../domain/pod-template.ts';
import { isNotBeingDeleted, type MemberView, nameOf, type Observed, wanted } from '../observed.ts';
import { votersOf } from '../quorum.ts';
import { nextToRestart, restartBlockedBy, settlesInMs, waitsFor } from './candidate.ts';
import { membersOnTrial } from './failure.ts';
import { ROLLING_OUT } from './reasons.ts';
import { isRestartRequested, ROLLOUT_FAILED, rolloutHeldBy, UPDATE_PENDING } from './state.ts';
import { describedFields, lackedFields } from './template.ts';
import { turnBlockedBy } from './turn.ts';
import { windowOpensInMs } from './windows.ts';

export interface Progress {
  readonly reason: string;
  readonly message: string;
  /** It waits for a user, or for a time: no deadline counts. */
  readonly waits: boolean;
}

const usesOtherRepository = (o: Observed, { object, pod }: MemberView): boolean =>
  pod.is === 'present' && pod.stamp !== undefined && hasOtherRepository(pod.stamp, object, o.images.repository);

/** The administrator has configured another repository for all clusters: that alone restarts no member. */
function otherRepository(o: Observed): Progress | undefined {
  const members = o.members.filter((m) => usesOtherRepository(o, m));
  if (members.length === 0) return undefined;
  const message = `${members.map(nameOf).join(', ')}: the image is not from ${o.images.repository}, which the administrator has configured since. The next restart applies it`;
  return { reason: UPDATE_PENDING, message, waits: true };
}

/** By the number of voters: with more than two, the others serve meanwhile. */
const INTERRUPTED: Readonly<Record<number, string>> = {
  1: '; clients are interrupted while the only member restarts',
  2: '; clients are interrupted while one of the two members restarts',
};

/** `undefined` when every running member has the spec. `message`: what the operator does now. */
export function rolloutProgress(o: Observed, message: string): Progress | undefined {
  const members = o.members.filter(isNotBeingDeleted);
  const lacking = members.filter((m) => lackedFields(m, wanted(o)).length > 0);
  const requested = members.filter((m) => isRestartRequested(o, m));
  const left = members.filter((m) => lacking.includes(m) || requested.includes(m));
  const held = rolloutHeldBy(o);
  const fields = new Set<keyof Template>(lacking.flatMap((m) => lackedFields(m, wanted(o))));
  const edit = lacking.length > 0 ? describedFields([...fields], wanted(o)) : 'the requested restart';
  if (held && requested.length === 0 && (lacking.length > 0 || held.reason === ROLLOUT_FAILED)) {
    const what = lacking.length > 0 ? `${lacking.map(nameOf).join(', ')} does not have ${edit}: ` : '';
    const trial = membersOnTrial(o);
    if (trial.length === 0) return { reason: held.reason, message: `${what}${held.message}`, waits: true };
    const names = trial.map(nameOf).join(', ');
    return {
      reason: ROLLING_OUT,
      message: `waiting for ${names} to be ready with it; ${what}${held.message}`,
      waits: false,
    };
  }
  if (left.length === 0) return otherRepository(o);
  const done = `${members.length - left.length} of ${members.length} members have ${edit}`;
  const turn = turnBlockedBy(o);
  if (turn) return { reason: turn.reason, message: `${done}; ${turn.message}`, waits: true };
  // Only a user can end it: data in memory is lost with the Pod.
  if (restartBlockedBy(o)?.reason === DATA_IN_MEMORY)
    return { reason: UPDATE_PENDING, message: `${done}; ${waitsFor(o) ?? message}`, waits: true };
  const warning = INTERRUPTED[votersOf(o).length] ?? '';
  return { reason: ROLLING_OUT, message: `${done}${warning}; ${waitsFor(o) ?? message}`, waits: false };
}

/** When the next member may be restarted, if only time is waited for. */
export function rolloutRequeueMs(o: Observed): number | undefined {
  const isLacking = o.members.some((m) => lackedFields(m, wanted(o)).length > 0);
  const ms = nextToRestart(o) ? settlesInMs(o) : isLacking ? (windowOpensInMs(o) ?? 0) : 0;
  return ms > 0 ? ms : undefined;
}
