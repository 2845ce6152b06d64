/** Changes to etcd as steps of a plan. Endpoints and member ids were read from etcd in the same reconcile. */

import { CLIENT_PORT, PEER_PORT, peerURL } from '../../api/names.ts';
import { memberClientScheme, memberHost, memberPeerScheme } from '../../domain/member-address.ts';
import { identity } from '../../domain/ownership.ts';
import { CHANGE_REFUSED_MS, CHANGE_RETRY_MS, REFUSED_RETRY_MS } from '../../domain/timing.ts';
import { endpointOf } from '../../lib/endpoint.ts';
import { versionNumber } from '../../lib/version.ts';
import type { Step } from '../../runtime/plan.ts';
import { nameIn } from './build.ts';
import type { ClusterCall, EtcdCall, EtcdChange } from './calls.ts';
import type { AtMembers } from './credentials/calls.ts';
import {
  type ClusterFacts,
  type Decided,
  type EtcdMemberEntry,
  entriesOf,
  isLosingPvc,
  isNotBeingDeleted,
  type MemberView,
  memberOf,
} from './observed.ts';
import { peerSchemeOf, peersOf } from './peers.ts';
import { healthyVoters, leaderOf } from './quorum.ts';
import { dueFields } from './rollout/state.ts';

export function endpointAt({ object, pod }: MemberView, port: number): readonly string[] {
  if (pod.is === 'absent' || pod.ip === undefined) return [];
  return [endpointOf(pod.ip, port, port === PEER_PORT ? memberPeerScheme(object) : memberClientScheme(object))];
}
export const endpointsOf = (m: MemberView): readonly string[] => endpointAt(m, CLIENT_PORT);

/** By endpoint, the DNS name that the served certificate must have. */
export const hostsOf = (members: readonly MemberView[], port = CLIENT_PORT): Readonly<Record<string, string>> =>
  Object.fromEntries(members.flatMap((m) => endpointAt(m, port).map((endpoint) => [endpoint, memberHost(m.object)])));

const endpointsAt = (o: ClusterFacts, entries: readonly EtcdMemberEntry[]): readonly string[] =>
  entries.flatMap((entry) => memberOf(o, entry) ?? []).flatMap(endpointsOf);

/** Healthy voters, the leader first: a follower would have to forward the request. */
export function atVoters(o: ClusterFacts): AtMembers {
  const leader = leaderOf(o);
  const order = [...healthyVoters(o)].sort((a, b) => Number(b.id === leader) - Number(a.id === leader));
  return {
    clusterID: o.cluster.status?.clusterID ?? '',
    endpoints: endpointsAt(o, order),
    hosts: hostsOf(o.members),
  };
}

/** The leader, even if it is unhealthy and about to be removed: only the leader transfers leadership. */
const leaderEndpoint = (o: ClusterFacts): readonly string[] =>
  endpointsAt(o, entriesOf(o)?.filter(({ id }) => id === leaderOf(o)) ?? []);

/** etcd 3.5 cancels a downgrade and does not respond, so one that runs a later version is asked. */
function newestEndpoints(o: ClusterFacts): readonly string[] {
  const versionOf = (entry: EtcdMemberEntry): number => versionNumber(memberOf(o, entry)?.self?.version ?? '');
  return endpointsAt(
    o,
    [...healthyVoters(o)].sort((a, b) => versionOf(b) - versionOf(a)),
  );
}

const retryMs = (o: ClusterFacts): number =>
  o.refusedSince !== undefined && o.now - o.refusedSince > CHANGE_REFUSED_MS ? REFUSED_RETRY_MS : CHANGE_RETRY_MS;

export function etcdStep(
  o: ClusterFacts,
  what: EtcdChange,
  target: string,
  retryAfterMs = retryMs(o),
): Step<ClusterCall> {
  const { namespace, name } = identity(o.cluster);
  const call: EtcdCall = {
    is: 'etcd',
    ...what,
    target,
    cluster: `${namespace}/${name}`,
    ...atVoters(o),
    ...(what.name === 'moveLeader' && { endpoints: leaderEndpoint(o) }),
    ...(what.name === 'cancelDowngrade' && { endpoints: newestEndpoints(o) }),
  };
  return { do: 'call', call, retryMs: retryAfterMs };
}

export const removal = (o: ClusterFacts, entry: EtcdMemberEntry): Step<ClusterCall> =>
  etcdStep(o, { name: 'remove', id: entry.id }, entry.name || entry.peerURLs.join());

export const addition = (o: ClusterFacts, member: string): Step<ClusterCall> => {
  const { name, namespace } = identity(o.cluster);
  const url = peerURL(member, name, namespace, peerSchemeOf(o.cluster, peersOf(o)));
  return etcdStep(o, { name: 'addLearner', peerURL: url }, member);
};

/** Why the member will soon stop, by no decision of this reconcile; `undefined` when nothing indicates it. */
export function goesAway({ pod, nodeCordoned }: MemberView): string | undefined {
  if (pod.is === 'present' && pod.terminating === true) return 'its Pod is being deleted';
  return nodeCordoned === true ? 'its node is cordoned' : undefined;
}

/** It would keep the leadership: the next transfer costs clients as much as this one. */
const stays = (m: MemberView): boolean =>
  goesAway(m) === undefined &&
  isNotBeingDeleted(m) &&
  !isLosingPvc(m) &&
  m.pod.is === 'present' &&
  m.pod.ready &&
  m.pod.drainingSince === undefined;

interface Transferee {
  readonly entry: EtcdMemberEntry;
  readonly stays: boolean;
}

/**
 * The healthy voter that takes over from this one. Until the transferee has the whole log of the leader, the leader drops
 * proposals: so, of those that stay and are not restarted next for an edit, the one that has applied most.
 */
function transfereeOf(o: ClusterFacts, id: string | undefined): Transferee | undefined {
  const rank = (entry: EtcdMemberEntry): readonly [number, number, number] => {
    const m = memberOf(o, entry);
    const staysLong = m !== undefined && stays(m);
    return [Number(staysLong), Number(staysLong && dueFields(o, m).length === 0), m?.self?.applied ?? 0];
  };
  const ranked = healthyVoters(o)
    .filter((entry) => entry.id !== id)
    .map((entry) => ({ entry, rank: rank(entry) }))
    .toSorted((a, b) => b.rank[0] - a.rank[0] || b.rank[1] - a.rank[1] || b.rank[2] - a.rank[2]);
  const [best] = ranked;
  return best && { entry: best.entry, stays: best.rank[0] === 1 };
}

interface Transfer {
  /** Only to a member that stays. Otherwise etcd hands over when it stops, to one that is left by then. */
  readonly toOneThatStays?: boolean;
}

/** What a change of the leader waits for: a transfer costs clients milliseconds instead of an election. `undefined` when it need not wait, or no other voter is healthy. */
export function transferFirst(
  o: ClusterFacts,
  id: string | undefined,
  message: string,
  { toOneThatStays = false }: Transfer = {},
): Decided {
  const to = leaderOf(o) === id ? transfereeOf(o, id) : undefined;
  if (!to || (toOneThatStays && !to.stays)) return undefined;
  const name = nameIn(to.entry);
  return {
    message: `${message}; transferring leadership to ${name} first`,
    steps: [etcdStep(o, { name: 'moveLeader', to: to.entry.id }, name)],
  };
}
