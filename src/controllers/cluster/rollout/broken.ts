/**
 * Members that take no part in the quorum and lack the present template. They get it first, and without waiting for the others:
 * otherwise a wrong edit could never be taken back, because all restarts wait for the member that it has broken.
 */
import type { Blocked } from '../../../domain/disruption.ts';
import { blockedBy } from '../disruption-view.ts';
import { desired, isInMemory, isLosingMemory, type MemberView, nameOf, type Observed } from '../observed.ts';
import { lossOf } from '../replacement.ts';
import { hasEdit, isNodeDown, isServing } from './failure.ts';
import { heldFields } from './held.ts';
import { lacksPeers } from './peers-away.ts';
import { dueFields } from './state.ts';
import { versionHeldBy } from './version-change.ts';

/**
 * Members that have an edit that no member is known to work with: one at a time tries it. One that only lacks peers keeps no other
 * one waiting: it cannot serve before they have the edit, too.
 */
function tryingIt(o: Observed): readonly MemberView[] {
  const having = o.members.filter((m) => hasEdit(o, m));
  return having.some((m) => isServing(o, m)) ? [] : having.filter((m) => !lacksPeers(o, m));
}

const tried = (o: Observed, m: MemberView): Blocked | undefined => {
  const others = tryingIt(o).filter((other) => other !== m);
  return others.length === 0
    ? undefined
    : { reason: 'EditUnproven', message: `${others.map(nameOf).join(', ')} has the edit, and is not ready yet` };
};

/** Data in memory is lost with the Pod, which would come back empty: another member joins in its place. */
const kindOf = (m: MemberView): 'remake' | 'rejoin' => (isInMemory(m) ? 'rejoin' : 'remake');

export interface Broken {
  readonly m: MemberView;
  /** Why it is not restarted now. */
  readonly blockedBy: Blocked | undefined;
}

/** Not one with failure evidence, nor one whose data in memory is being lost with its Pod: those are replaced. */
export const brokenMembersToUpdate = (o: Observed): readonly Broken[] =>
  desired(o) === 0
    ? []
    : o.members
        .filter((m) => !isServing(o, m) && !isNodeDown(m) && !isLosingMemory(m) && lossOf(o, m) === undefined)
        .filter((m) => dueFields(o, m).length > 0)
        .map((m) => ({ m, blockedBy: blockedBy(o, nameOf(m), kindOf(m)) ?? tried(o, m) ?? held(o, m) }));

/** Only the version is missing, and may not be changed now. */
const held = (o: Observed, m: MemberView): Blocked | undefined =>
  heldFields(o, m)?.length === 0 ? versionHeldBy(o, m) : undefined;
