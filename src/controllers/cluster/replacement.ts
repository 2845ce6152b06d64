/** Which members will not come back by themselves, and whether each may be replaced now: with evidence, through the disruption check, and counted. */
import { iso } from '../../lib/time.ts';
import { refTo } from '../../runtime/plan.ts';
import { isCorrupt, isHealthy, removalBlockedBy } from './disruption.ts';
import {
  type ClusterDecision,
  createdAt,
  entriesOf,
  entryOf,
  evidence,
  isNotBeingDeleted,
  type MemberView,
  nameOf,
  type Observed,
} from './observed.ts';

/** A member that fails so soon after it was made is one that replacing did not help. */
const YOUNG_MS = 60 * 60_000;
const FIRST_PAUSE_MS = 30_000;
/** After so many in a row that did not help, a person has to look. */
const MAX_REPLACEMENTS = 5;

const isYoung = (o: Observed, m: MemberView): boolean => o.now - createdAt(m) < YOUNG_MS;

/** Replacements in a row that did not help so far. An edit of the spec, or an hour of peace, ends the counting. */
function failedReplacements(o: Observed, m: MemberView): number {
  const { repair } = o.cluster.status ?? {};
  if (!repair || !isYoung(o, m) || createdAt(m) < Date.parse(repair.last) - 1_000) return 0;
  return repair.generation === o.cluster.metadata.generation ? repair.count : 0;
}

/** Why a member may not be replaced yet; `undefined` when it may. */
function replacementBlockedBy(o: Observed, m: MemberView): string | undefined {
  const count = failedReplacements(o, m);
  if (count === 0) return undefined;
  if (count >= MAX_REPLACEMENTS)
    return `${count} replacements in a row did not help. Find out why its Pod fails; then edit the spec, or delete EtcdMember ${nameOf(m)}, to have it tried again`;
  const wait = FIRST_PAUSE_MS * 2 ** (count - 1);
  const left = Date.parse(o.cluster.status?.repair?.last ?? '') + wait - o.now;
  return left > 0 ? `the one before it has failed too: the next is tried in ${Math.ceil(left / 1000)} s` : undefined;
}

/** A replacement that was counted and has brought no new member yet: its deletion was refused, or the operator was killed. */
const RETRIED_WITHIN_MS = 60_000;
function countedOnly(o: Observed): number {
  const { repair } = o.cluster.status ?? {};
  const last = Date.parse(repair?.last ?? '');
  if (!repair || repair.generation !== o.cluster.metadata.generation || o.now - last > RETRIED_WITHIN_MS) return 0;
  return o.members.every((m) => createdAt(m) < last - 1_000) ? repair.count : 0;
}

/**
 * Counted before it is done: after a crash the count must not start again. The deletion is void when the member has changed: a
 * member whose evidence was withdrawn in this moment keeps its volume.
 */
export const replacing = (
  o: Observed,
  m: MemberView,
  why: string,
  count = Math.max(failedReplacements(o, m) + 1, countedOnly(o)),
): ClusterDecision => ({
  message: why,
  latch: { repair: { count, last: iso(o.now), generation: o.cluster.metadata.generation ?? 0 } },
  steps: [{ do: 'delete', what: refTo('EtcdMember', m.object, { resourceVersion: true }) }],
  event: { type: 'Warning', reason: 'ReplacingMember', note: why },
});

function trouble(m: MemberView): string | undefined {
  const found = evidence(m);
  return found && `${nameOf(m)} (${found.reason}): ${found.message}`;
}

/** A member that will not come back, and why. One that is healthy in this very moment has come back. */
export function lossOf(o: Observed, m: MemberView): string | undefined {
  if (!isNotBeingDeleted(m) || entryOf(o, m) === undefined || isHealthy(o, m)) return undefined;
  if (isCorrupt(o, m)) return `${nameOf(m)} (Corrupt): its data differs from that of a quorum, which agrees`;
  return trouble(m);
}

/** Why a loss is not made good now; `undefined` when it is, or can be. */
export const blockedBy = (o: Observed, m: MemberView): string | undefined => {
  const entry = entryOf(o, m);
  return entry && (removalBlockedBy(o, entry) ?? replacementBlockedBy(o, m));
};

/** Who deletes such a cluster destroys what its other members still have. */
const UNANSWERED =
  'etcd does not answer. Bring back what is missing. If that is not possible, do not delete this EtcdCluster yet: an EtcdSnapshot of it may still work as long as one member runs, and a new EtcdCluster can begin with that, or with an earlier one';

/** What is lost and waits, as sentences for people. */
export const waitingLosses = (o: Observed): readonly string[] =>
  o.members.flatMap((m) => {
    const listed = entriesOf(o) !== undefined;
    const loss = listed ? lossOf(o, m) : trouble(m);
    if (loss === undefined) return [];
    const why = listed ? blockedBy(o, m) : UNANSWERED;
    return [why === undefined ? loss : `${loss}; it is not replaced now: ${why}`];
  });

/** Whether a person is needed. */
export const isExhausted = (o: Observed): boolean =>
  o.members.some((m) => lossOf(o, m) !== undefined && failedReplacements(o, m) >= MAX_REPLACEMENTS);
