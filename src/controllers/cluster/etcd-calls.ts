/** Changes to etcd as steps of a plan. Endpoints and member ids were read from etcd in the same reconcile. */

import { CLIENT_PORT, PEER_PORT, peerURL } from '../../api/names.ts';
import { peerScheme } from '../../domain/certificate-requirements.ts';
import { memberClientScheme, memberHost, memberPeerScheme } from '../../domain/member-address.ts';
import { identity } from '../../domain/ownership.ts';
import { CHANGE_REFUSED_MS, CHANGE_RETRY_MS, REFUSED_RETRY_MS } from '../../domain/timing.ts';
import { endpointOf } from '../../lib/endpoint.ts';
import type { Step } from '../../runtime/plan.ts';
import { nameIn } from './build.ts';
import type { ClusterCall, EtcdCall, EtcdChange } from './calls.ts';
import type { AtMembers } from './credentials/calls.ts';
import {
  type ClusterFacts,
  type Decided,
  type EtcdMemberEntry,
  entriesOf,
  type MemberView,
  memberOf,
} from './observed.ts';
import { healthyVoters, leaderOf } from './quorum.ts';

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
  };
  return { do: 'call', call, retryMs: retryAfterMs };
}

export const removal = (o: ClusterFacts, entry: EtcdMemberEntry): Step<ClusterCall> =>
  etcdStep(o, { name: 'remove', id: entry.id }, entry.name || entry.peerURLs.join());

export const addition = (o: ClusterFacts, member: string): Step<ClusterCall> => {
  const { name, namespace } = identity(o.cluster);
  const url = peerURL(member, name, namespace, peerScheme(o.cluster));
  return etcdStep(o, { name: 'addLearner', peerURL: url }, member);
};

/** What a change of the leader waits for: a transfer costs clients milliseconds instead of an election. `undefined` when it need not wait, or no other voter is healthy. */
export function transferFirst(o: ClusterFacts, id: string | undefined, message: string): Decided {
  const to = healthyVoters(o).find((entry) => entry.id !== id);
  if (leaderOf(o) !== id || !to) return undefined;
  return {
    message: `${message}; transferring leadership to ${nameIn(to)} first`,
    steps: [etcdStep(o, { name: 'moveLeader', to: to.id }, nameIn(to))],
  };
}
