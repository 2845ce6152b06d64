/** In which order members are restarted. */

import { entryOf, type MemberView, type Observed } from '../observed.ts';
import { leaderOf } from '../quorum.ts';

/** Followers before the leader: restarting the leader costs a leadership transfer. */
export function leaderLast(o: Observed, members: readonly MemberView[]): readonly MemberView[] {
  const leads = (m: MemberView): number => Number(entryOf(o, m)?.id === leaderOf(o));
  return members.toSorted((a, b) => leads(a) - leads(b));
}
