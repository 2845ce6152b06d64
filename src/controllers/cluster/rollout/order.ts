/** In which order members are restarted. */

import { entryOf, type MemberView, type Observed } from '../observed.ts';
import { leaderOf } from '../quorum.ts';
import { templateOf } from './state.ts';
import { differingFields } from './template.ts';

const leads = (o: Observed, m: MemberView): number => Number(entryOf(o, m)?.id === leaderOf(o));

/** Followers before the leader: restarting the leader costs a leadership transfer. */
export function leaderLast(o: Observed, members: readonly MemberView[]): readonly MemberView[] {
  return members.toSorted((a, b) => leads(o, a) - leads(o, b));
}

/** Its restart is under way: its EtcdMember is changed, or it is out of the client Service. Another one would be a second one that is away. */
const isUnderWay = (o: Observed, m: MemberView): boolean =>
  (m.pod.is === 'present' && m.pod.drainingSince !== undefined) || differingFields(m, templateOf(o, m)).length === 0;

/** Lags are compared by thousands of entries: with each entry that a client writes, another member would be next. */
const LAG_STEP = 1_000;
const applied = ({ self }: MemberView): number => Math.floor((self?.applied ?? 0) / LAG_STEP);

/** One whose restart is under way first, then the followers that are least behind, then the leader. */
export const restartOrder = (o: Observed, members: readonly MemberView[]): readonly MemberView[] =>
  members.toSorted(
    (a, b) =>
      leads(o, a) - leads(o, b) || Number(isUnderWay(o, b)) - Number(isUnderWay(o, a)) || applied(b) - applied(a),
  );
