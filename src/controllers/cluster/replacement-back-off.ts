/** Failed replacements of members in a row, and how long the next one waits. */
import { REPLACEMENT_PAUSE_MS, YOUNG_MEMBER_MS } from '../../domain/timing.ts';
import { createdAt, type MemberView, nameOf, type Observed } from './observed.ts';

/** After this number of failed replacements in a row, a user has to find the cause. */
const MAX_REPLACEMENTS = 5;

const isYoung = (o: Observed, m: MemberView): boolean => o.now - createdAt(m) < YOUNG_MEMBER_MS;

/** Failed replacements in a row. An edit of the spec, or an hour without a failure, resets the count. */
export function failedReplacements(o: Observed, m: MemberView): number {
  const { repair } = o.cluster.status ?? {};
  if (!repair || !isYoung(o, m) || createdAt(m) < Date.parse(repair.last) - 1_000) return 0;
  return repair.generation === o.cluster.metadata.generation ? repair.count : 0;
}

export const hasFailedTooOften = (o: Observed, m: MemberView): boolean => failedReplacements(o, m) >= MAX_REPLACEMENTS;

/** Why a member may not be replaced yet; `undefined` when it may. */
export function replacementBackOff(o: Observed, m: MemberView): string | undefined {
  const count = failedReplacements(o, m);
  if (count === 0) return undefined;
  if (hasFailedTooOften(o, m))
    return `${count} replacements in a row failed. Find out why its Pod fails; then edit the spec, or delete EtcdMember ${nameOf(m)}, to retry`;
  const wait = REPLACEMENT_PAUSE_MS * 2 ** (count - 1);
  const left = Date.parse(o.cluster.status?.repair?.last ?? '') + wait - o.now;
  return left > 0
    ? `the previous replacement failed too: the next attempt is in ${Math.ceil(left / 1000)} s`
    : undefined;
}
