/**
 * Members that take no part in the quorum and lack the present template. They get it first, and without waiting for the others:
 * otherwise a wrong edit could never be taken back, because all restarts wait for the member that it has broken.
 */
import type { Blocked } from '../../../domain/disruption.ts';
import { blockedBy } from '../disruption-view.ts';
import { desired, type MemberView, nameOf, type Observed } from '../observed.ts';
import { lossOf } from '../replacement.ts';
import { hasEdit, isServing } from './failure.ts';
import { dueFields } from './state.ts';
import { versionHeldBy } from './version-change.ts';

/** The node of its Pod is down: the member comes back with it, and its Pod cannot be replaced before. */
const isNodeDown = ({ nodeGone, nodeReady }: MemberView): boolean =>
  nodeGone === true || (nodeReady !== undefined && !nodeReady.startsWith('True'));

/** Members that have an edit that no member is known to work with: one at a time tries it. */
function tryingIt(o: Observed): readonly MemberView[] {
  const having = o.members.filter((m) => hasEdit(o, m));
  return having.some((m) => isServing(o, m)) ? [] : having;
}

const tried = (o: Observed, m: MemberView): Blocked | undefined => {
  const others = tryingIt(o).filter((other) => other !== m);
  return others.length === 0
    ? undefined
    : { reason: 'EditUnproven', message: `${others.map(nameOf).join(', ')} has the edit, and is not ready yet` };
};

export interface Broken {
  readonly m: MemberView;
  /** Why it is not restarted now. */
  readonly blockedBy: Blocked | undefined;
}

/** Not one with failure evidence: it is replaced. */
export const brokenMembersToUpdate = (o: Observed): readonly Broken[] =>
  desired(o) === 0
    ? []
    : o.members
        .filter((m) => !isServing(o, m) && !isNodeDown(m) && dueFields(o, m).length > 0 && lossOf(o, m) === undefined)
        .map((m) => ({ m, blockedBy: blockedBy(o, nameOf(m), 'remake') ?? tried(o, m) ?? versionHeldBy(o, m) }));
