/**
 * Every healthy voter refuses a membership change, although the operator finds all of them healthy: etcd has marked peers as
 * inactive, and only new connections correct that. Decides which member is restarted, and the message.
 */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { isAllowed } from '../../api/security.ts';
import { CHANGE_REFUSED_MS, COUNTED_RESTART_MS, RECORDED_RESTART_MS } from '../../domain/timing.ts';
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

/** The membership change that the rules want now. Promotions are not included: etcd does not check its peer connections for them. */
export interface Wanted {
  /** As recorded in the status. */
  readonly change: string;
  /** The id of the member that it removes. */
  readonly removed?: string;
}

function wantedIn(decision: Decided): readonly Wanted[] {
  return (decision?.steps ?? []).flatMap((step) => {
    if (step.do !== 'call' || step.call.is !== 'etcd') return [];
    const { call } = step;
    if (call.name === 'addLearner') return [{ change: `add ${call.target}` }];
    return call.name === 'remove' ? [{ change: `remove ${call.target}`, removed: call.id }] : [];
  });
}

type Rule = (o: Observed) => Decided;

/** The first membership change that one of these rules wants. */
export const wantedChange =
  (rules: readonly Rule[]) =>
  (o: Observed): Wanted | undefined =>
    rules.flatMap((rule) => wantedIn(rule(o)))[0];

/** A parameter, because it depends on rules, and only decide.ts imports rules. */
export type WantedChange = ReturnType<typeof wantedChange>;

export interface Refused {
  readonly change: string;
  readonly since: number;
  /** The member to restart; `undefined` once each was restarted. */
  readonly next?: { readonly m: MemberView; readonly entry: EtcdMemberEntry; readonly recorded: boolean };
  /** Why it is not restarted now. */
  readonly blockedBy?: string;
  /** Restarts for this change, and recent ones for other changes. */
  readonly restarts: readonly Restarted[];
}

const podUid = ({ pod }: MemberView): string | undefined => (pod.is === 'present' ? pod.uid : undefined);

/** Responds with its own id, follows a leader, lags little, and its Pod is ready and not being deleted. */
function isWell(o: Observed, entry: EtcdMemberEntry): boolean {
  const m = memberOf(o, entry);
  if (!m || m.pod.is !== 'present' || m.pod.terminating === true || !m.pod.ready) return false;
  return isHealthy(o, m);
}

/** etcd never refuses a single voter. */
export const areAllWell = (o: Observed): boolean =>
  votersOf(o).length > 1 && votersOf(o).every((entry) => isWell(o, entry));

/** The member that is to be removed comes first: while it restarts, every voter rightly counts it as inactive and accepts its removal. */
function inOrder(o: Observed, removed: string | undefined): readonly MemberView[] {
  const voters = votersOf(o).flatMap((entry) => memberOf(o, entry) ?? []);
  const leaves = (m: MemberView): number => Number(m.self?.id === removed);
  return leaderLast(o, voters).toSorted((a, b) => leaves(b) - leaves(a));
}

/** What would keep a deleted Pod from being recreated with its data, or the other members from having a quorum meanwhile. */
export function memberRestartBlockedBy(o: Observed, m: MemberView): string | undefined {
  const entry = entryOf(o, m);
  const repository = m.object.spec.image?.repository;
  if (isInMemory(m)) return `${nameOf(m)} has its data in memory only, which is lost when it restarts`;
  if (m.pvc !== 'present') return losesPvc(m) ?? `the PersistentVolumeClaim of ${nameOf(m)} is not found`;
  if (repository !== undefined && !isAllowed(o.images, repository))
    return `its Pod could not be recreated: image ${repository} is not allowed`;
  if (unreadableSecrets(o) !== undefined)
    return 'its Secrets cannot be read: whether its Pod could be recreated is unknown';
  if (!canMount(o)) return 'its Pod could not be recreated: certificates are missing or invalid';
  return blocked(o) ?? (entry ? restartBlockedBy(o, entry) : 'etcd does not list it');
}

const isFresh = (o: Observed, { at }: Restarted): boolean => o.now - Date.parse(at) < RECORDED_RESTART_MS;

/** The change that every healthy voter has refused for a minute, or for which a restart was recorded within the last minute. */
export function refusedChange(o: Observed, wantedBy: WantedChange): Refused | undefined {
  const due = o.refusedSince !== undefined && o.now - o.refusedSince >= CHANGE_REFUSED_MS;
  const { change: before, restarts: recorded = [] } = o.cluster.status?.refusedChange ?? {};
  if (!due && !recorded.some((each) => isFresh(o, each))) return undefined;
  const wanted = areAllWell(o) ? wantedBy(o) : undefined;
  if (!wanted) return undefined;
  const { change, removed } = wanted;
  const members = inOrder(o, removed);
  // Not restarted yet: it still has the recorded Pod.
  const isPending = ({ member, pod }: Restarted): boolean =>
    members.some((m) => nameOf(m) === member && podUid(m) === pod);
  const pending = recorded.find((each) => before === change && isFresh(o, each) && isPending(each));
  if (!due && !pending) return undefined;
  const restarts = recorded.filter(
    (each) => !isPending(each) && (before === change || o.now - Date.parse(each.at) < COUNTED_RESTART_MS),
  );
  const left = members.filter((m) =>
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

/** For the conditions. Hopeless: each member was restarted, and the change is still refused. */
export function refusedStatus(
  o: Observed,
  wantedBy: WantedChange,
): { readonly message: string; readonly hopeless: boolean } | undefined {
  const refused = refusedChange(o, wantedBy);
  return refused && { message: refusedMessage(refused), hopeless: refused.next === undefined };
}

export function refusedMessage({ change, since, next, blockedBy, restarts }: Refused): string {
  const what = `etcd has refused to ${change} since ${iso(since)}: every voter responds "unhealthy cluster", although all are healthy. They count connected peers as inactive, which new connections correct`;
  if (!next) {
    const names = restarts.map(({ member }) => member).join(', ');
    return `${what}. The operator has restarted each of them once (${names}) and restarts no more. Look for "peer became inactive" in the logs of the members and at the network between them; after that, delete the Pod of a follower`;
  }
  return blockedBy === undefined
    ? `${what}. Restarting ${nameOf(next.m)}`
    : `${what}. ${nameOf(next.m)} cannot be restarted now: ${blockedBy}`;
}
