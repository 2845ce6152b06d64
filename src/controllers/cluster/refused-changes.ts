/**
 * Every healthy voter refuses a membership change, although the operator finds all of them healthy: their views of their peers
 * are wrong, and nothing but new connections mends them. Who is restarted for it, and what is said.
 */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { isAllowed } from '../../api/security.ts';
import { iso } from '../../lib/time.ts';
import { canMount, unreadableSecrets } from './credentials/certificates.ts';
import { isHealthy, restartBlockedBy, votersOf } from './disruption.ts';
import {
  type Decided,
  type EtcdMemberEntry,
  entryOf,
  type MemberView,
  memberOf,
  nameOf,
  type Observed,
} from './observed.ts';
import { isInMemory, leaderLast, losesPvc } from './rollout/restart.ts';
import { blocked } from './spec-drift.ts';

export const REFUSED = 'MembershipChangeRefused';

type Record = NonNullable<EtcdClusterStatus['refusedChange']>;
export type Restarted = Record['restarts'][number];

/** For five seconds after each growth etcd refuses rightly; nothing that passes by itself takes a minute. */
const REFUSED_MS = 60_000;
/** A restart that was recorded is carried out within this time, or decided again. */
const PENDING_MS = 60_000;
/** Restarts for an earlier change count for this long. */
const COUNTED_MS = 60 * 60_000;

/** The change that would be asked of etcd now, and that etcd checks by its connections: learners are promoted without it. */
export interface Wanted {
  /** As it is recorded. */
  readonly change: string;
  /** Who is removed by it. */
  readonly removed?: string;
}

function wantedIn(answer: Decided): readonly Wanted[] {
  return (answer?.steps ?? []).flatMap((step) => {
    if (step.do !== 'call' || step.call.is !== 'etcd') return [];
    const { call } = step;
    if (call.name === 'addLearner') return [{ change: `add ${call.target}` }];
    return call.name === 'remove' ? [{ change: `remove ${call.target}`, removed: call.id }] : [];
  });
}

type Rule = (o: Observed) => Decided;

/** The first membership change that one of these rules asks for. */
export const wantedChange =
  (rules: readonly Rule[]) =>
  (o: Observed): Wanted | undefined =>
    rules.flatMap((rule) => wantedIn(rule(o)))[0];

/** Decide hands it in, because what is wanted follows from rules, and rules are imported by decide alone. */
export type WantedChange = ReturnType<typeof wantedChange>;

export interface Refused {
  readonly change: string;
  readonly since: number;
  /** Who is restarted for it: nobody is left once each was. */
  readonly next?: { readonly m: MemberView; readonly entry: EtcdMemberEntry; readonly recorded: boolean };
  /** Why not now. */
  readonly blockedBy?: string;
  /** What was done for it so far, or lately for another. */
  readonly restarts: readonly Restarted[];
}

const podUid = ({ pod }: MemberView): string | undefined => (pod.is === 'present' ? pod.uid : undefined);

/** Answers under its own id, follows a leader, lags little, and its Pod is ready and not being deleted. */
function isWell(o: Observed, entry: EtcdMemberEntry): boolean {
  const m = memberOf(o, entry);
  if (!m || m.pod.is !== 'present' || m.pod.terminating === true || !m.pod.ready) return false;
  return isHealthy(o, m);
}

/** etcd never refuses a single voter. */
const areAllWell = (o: Observed): boolean => votersOf(o).length > 1 && votersOf(o).every((entry) => isWell(o, entry));

/** Who is to be removed first: while it is away, every voter takes it for inactive, rightly, and lets it go. */
function inOrder(o: Observed, removed: string | undefined): readonly MemberView[] {
  const voters = votersOf(o).flatMap((entry) => memberOf(o, entry) ?? []);
  const leaves = (m: MemberView): number => Number(m.self?.id === removed);
  return leaderLast(o, voters).toSorted((a, b) => leaves(b) - leaves(a));
}

/** What would keep a deleted Pod from coming back with its data, or the others from carrying the cluster meanwhile. */
function memberRestartBlockedBy(o: Observed, m: MemberView): string | undefined {
  const entry = entryOf(o, m);
  const repository = m.object.spec.image?.repository;
  if (isInMemory(m)) return `${nameOf(m)} has its data in memory only, which is lost when it restarts`;
  if (m.pvc !== 'present') return losesPvc(m) ?? `the PersistentVolumeClaim of ${nameOf(m)} is not found`;
  if (repository !== undefined && !isAllowed(o.images, repository))
    return `its Pod could not be made again: image ${repository} is not allowed`;
  if (unreadableSecrets(o) !== undefined)
    return 'its Secrets cannot be read: whether its Pod could be made again is not known';
  if (!canMount(o)) return 'its Pod could not be made again: certificates are missing or wrong';
  return blocked(o) ?? (entry ? restartBlockedBy(o, entry) : 'etcd does not list it');
}

const isFresh = (o: Observed, { at }: Restarted): boolean => o.now - Date.parse(at) < PENDING_MS;

/** The change that every healthy voter has refused for a minute, or for which a restart was recorded a moment ago. */
export function refusedChange(o: Observed, wantedBy: WantedChange): Refused | undefined {
  const due = o.refusedSince !== undefined && o.now - o.refusedSince >= REFUSED_MS;
  const { change: before, restarts: recorded = [] } = o.cluster.status?.refusedChange ?? {};
  if (!due && !recorded.some((each) => isFresh(o, each))) return undefined;
  const wanted = areAllWell(o) ? wantedBy(o) : undefined;
  if (!wanted) return undefined;
  const { change, removed } = wanted;
  const candidates = inOrder(o, removed);
  // Not restarted yet: its Pod is the one that was to be deleted.
  const isPending = ({ member, pod }: Restarted): boolean =>
    candidates.some((m) => nameOf(m) === member && podUid(m) === pod);
  const pending = recorded.find((each) => before === change && isFresh(o, each) && isPending(each));
  if (!due && !pending) return undefined;
  const restarts = recorded.filter(
    (each) => !isPending(each) && (before === change || o.now - Date.parse(each.at) < COUNTED_MS),
  );
  const left = candidates.filter((m) =>
    pending ? pending.member === nameOf(m) : !restarts.some(({ member }) => member === nameOf(m)),
  );
  const since = o.refusedSince ?? Date.parse(pending?.at ?? '');
  const m = left.find((each) => memberRestartBlockedBy(o, each) === undefined) ?? left[0];
  const entry = m && entryOf(o, m);
  if (!m || !entry) return { change, since, restarts };
  const blockedBy = memberRestartBlockedBy(o, m);
  const next = { m, entry, recorded: pending !== undefined };
  return { change, since, restarts, next, ...(blockedBy !== undefined && { blockedBy }) };
}

/** For the conditions; hopeless: each was restarted, and it is still refused. */
export function refusedStatus(
  o: Observed,
  wantedBy: WantedChange,
): { readonly message: string; readonly hopeless: boolean } | undefined {
  const refused = refusedChange(o, wantedBy);
  return refused && { message: refusedMessage(refused), hopeless: refused.next === undefined };
}

export function refusedMessage({ change, since, next, blockedBy, restarts }: Refused): string {
  const what = `etcd refuses to ${change} since ${iso(since)}: every voter answers "unhealthy cluster", although all are healthy. Their views of their peers are wrong, which new connections mend`;
  if (!next) {
    const names = restarts.map(({ member }) => member).join(', ');
    return `${what}. The operator has restarted each of them once (${names}), and does not go on. Look for "peer became inactive" in the logs of the members and at the network between them; after that, delete the Pod of a follower`;
  }
  return blockedBy === undefined
    ? `${what}. ${nameOf(next.m)} is restarted`
    : `${what}. ${nameOf(next.m)} is to be restarted, but not now: ${blockedBy}`;
}
