/**
 * Every healthy voter refuses a membership change, although the operator finds all of them healthy: etcd has marked peers as
 * inactive, and only new connections correct that. Decides which member is restarted, and the message.
 */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { CHANGE_REFUSED_MS, COUNTED_RESTART_MS, RECORDED_RESTART_MS } from '../../domain/timing.ts';
import { iso } from '../../lib/time.ts';
import { blockedBy, quorumView } from './disruption-view.ts';
import { type Decided, entryOf, type MemberView, memberOf, nameOf, type Observed } from './observed.ts';
import { votersOf } from './quorum.ts';
import { leaderLast } from './rollout/order.ts';

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
  readonly next?: { readonly m: MemberView; readonly recorded: boolean };
  /** Why it is not restarted now. */
  readonly blockedBy?: string;
  /** Restarts for this change, and recent ones for other changes. */
  readonly restarts: readonly Restarted[];
}

const podUid = ({ pod }: MemberView): string | undefined => (pod.is === 'present' ? pod.uid : undefined);

/** etcd never refuses a single voter, and rightly refuses while one is not connected. */
function areAllWell(o: Observed): boolean {
  const { voters } = quorumView(o);
  return voters.length > 1 && voters.every(({ healthy, podReady }) => healthy && podReady);
}

/** The member that is to be removed comes first: while it restarts, every voter rightly counts it as inactive and accepts its removal. */
function inOrder(o: Observed, removed: string | undefined): readonly MemberView[] {
  const voters = votersOf(o).flatMap((entry) => memberOf(o, entry) ?? []);
  const leaves = (m: MemberView): number => Number(m.self?.id === removed);
  return leaderLast(o, voters).toSorted((a, b) => leaves(b) - leaves(a));
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
  const blocker = (each: MemberView): string | undefined => blockedBy(o, entryOf(o, each)?.id, 'reconnect')?.message;
  const m = left.find((each) => blocker(each) === undefined) ?? left[0];
  if (!m) return { change, since, restarts };
  const blocked = blocker(m);
  const next = { m, recorded: pending !== undefined };
  return { change, since, restarts, next, ...(blocked !== undefined && { blockedBy: blocked }) };
}

/** For the conditions. Hopeless: each member was restarted, and the change is still refused. */
export function refusedStatus(
  o: Observed,
  wantedBy: WantedChange,
): { readonly message: string; readonly hopeless: boolean } | undefined {
  const refused = refusedChange(o, wantedBy);
  return refused && { message: refusedMessage(refused), hopeless: refused.next === undefined };
}

export function refusedMessage({ change, since, next, blockedBy: blocker, restarts }: Refused): string {
  const what = `etcd has refused to ${change} since ${iso(since)}: every voter responds "unhealthy cluster", although all are healthy. They count connected peers as inactive, which new connections correct`;
  if (!next) {
    const names = restarts.map(({ member }) => member).join(', ');
    return `${what}. The operator has restarted each of them once (${names}) and restarts no more. Look for "peer became inactive" in the logs of the members and at the network between them; after that, delete the Pod of a follower`;
  }
  return blocker === undefined
    ? `${what}. Restarting ${nameOf(next.m)}`
    : `${what}. ${nameOf(next.m)} cannot be restarted now: ${blocker}`;
}
