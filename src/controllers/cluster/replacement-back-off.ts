/** Failed replacements of members in a row, and how long the next one waits. */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { HEALTHY_RESET_MS, REPLACED_WITHIN_MS, REPLACEMENT_PAUSE_MS } from '../../domain/timing.ts';
import { iso } from '../../lib/time.ts';
import { ownEntries } from './foreign-members.ts';
import {
  createdAt,
  desired,
  entriesOf,
  isReadyVoter,
  type MemberView,
  nameOf,
  type Observed,
  readyCondition,
} from './observed.ts';
import { isHealthy } from './quorum.ts';

/** After this number of failed replacements in a row, a user has to find the cause. */
const MAX_REPLACEMENTS = 5;

/** The replacements of the present failure. An edit of the spec may have removed the cause, and starts another count. */
export function currentRepair({ cluster }: Observed): EtcdClusterStatus['repair'] {
  const { repair } = cluster.status ?? {};
  return repair?.generation === cluster.metadata.generation ? repair : undefined;
}

/** A replacement that was recorded but has no new member yet: the deletion was refused, or the operator was killed. */
function isPending(o: Observed, { last }: { readonly last: string }): boolean {
  const started = Date.parse(last);
  return o.now - started <= REPLACED_WITHIN_MS && o.members.every((m) => createdAt(m) < started - 1_000);
}

/**
 * Failed replacements in a row. A member that is older than the first of them is no failed replacement. If the last one counted
 * instead, two members that fail in turns would each reset the count of the other, and lose a volume each time.
 */
export function failedReplacements(o: Observed, m: MemberView): number {
  const repair = currentRepair(o);
  if (!repair || isPending(o, repair) || createdAt(m) < Date.parse(repair.since ?? repair.last) - 1_000) return 0;
  return repair.count;
}

/**
 * The count is reset after an hour in which every member was ready. An hour in which the replacement only existed proves nothing:
 * the operator would delete five volumes each hour. The conditions outlive a restart of the operator.
 */
export function hasRecovered(o: Observed): boolean {
  const isSettled = (time: string | undefined): boolean => o.now - Date.parse(time ?? '') >= HEALTHY_RESET_MS;
  return (
    entriesOf(o) !== undefined &&
    ownEntries(o).length === desired(o) &&
    o.members.length === desired(o) &&
    o.members.every((m) => isReadyVoter(m) && isHealthy(o, m)) &&
    o.members.every((m) => isSettled(readyCondition(m.object)?.lastTransitionTime)) &&
    isSettled(o.cluster.status?.repair?.last)
  );
}

export const hasFailedTooOften = (o: Observed, m: MemberView): boolean => failedReplacements(o, m) >= MAX_REPLACEMENTS;

/** Why a member may not be replaced yet; `undefined` when it may. */
export function replacementBackOff(o: Observed, m: MemberView): string | undefined {
  const count = failedReplacements(o, m);
  if (count === 0) return undefined;
  if (hasFailedTooOften(o, m))
    return `${count} replacements in a row failed. Find out why its Pod fails; then edit the spec, or delete EtcdMember ${nameOf(m)}, to retry`;
  const wait = REPLACEMENT_PAUSE_MS * 2 ** (count - 1);
  const at = Date.parse(o.cluster.status?.repair?.last ?? '') + wait;
  // The time, and not what is left of it: a message that changes would be written every few seconds.
  return at > o.now ? `the previous replacement failed too: the next attempt is at ${iso(at)}` : undefined;
}
