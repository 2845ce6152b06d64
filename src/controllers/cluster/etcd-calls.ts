/** Changes to etcd as steps of a plan. Endpoints and member ids were read from etcd in the same reconcile. */

import { CLIENT_PORT, PEER_PORT } from '../../api/names.ts';
import { memberClientScheme, memberHost, memberPeerScheme } from '../../domain/member-address.ts';
import { identity } from '../../domain/ownership.ts';
import { CHANGE_REFUSED_MS, CHANGE_RETRY_MS, REFUSED_RETRY_MS } from '../../domain/timing.ts';
import { endpointOf } from '../../lib/endpoint.ts';
import type { Step } from '../../runtime/plan.ts';
import type { ClusterCall, EtcdCall, EtcdChange, RootPasswordCall, RootPasswordStep } from './calls.ts';
import { type EtcdMemberEntry, entriesOf, type MemberView, memberOf, type Observed } from './observed.ts';
import { healthyVoters, leaderOf } from './quorum.ts';

export function endpointAt({ object, pod }: MemberView, port: number): readonly string[] {
  if (pod.is === 'absent' || pod.ip === undefined) return [];
  return [endpointOf(pod.ip, port, port === PEER_PORT ? memberPeerScheme(object) : memberClientScheme(object))];
}
export const endpointsOf = (m: MemberView): readonly string[] => endpointAt(m, CLIENT_PORT);

/** By endpoint, the DNS name that the served certificate must have. */
export const hostsOf = (members: readonly MemberView[], port = CLIENT_PORT): Readonly<Record<string, string>> =>
  Object.fromEntries(members.flatMap((m) => endpointAt(m, port).map((endpoint) => [endpoint, memberHost(m.object)])));

/** Healthy voters, the leader first: a follower would have to forward the request. */
function endpointsToAsk(o: Observed): readonly string[] {
  const leader = leaderOf(o);
  const order = [...healthyVoters(o)].sort((a, b) => Number(b.id === leader) - Number(a.id === leader));
  return order.flatMap((entry) => {
    const m = memberOf(o, entry);
    return m ? endpointsOf(m) : [];
  });
}

/** The leader, even if it is unhealthy and about to be removed: only the leader transfers leadership. */
function leaderEndpoint(o: Observed): readonly string[] {
  const entry = entriesOf(o)?.find(({ id }) => id === leaderOf(o));
  const m = entry && memberOf(o, entry);
  return m ? endpointsOf(m) : [];
}

const retryMs = (o: Observed): number =>
  o.refusedSince !== undefined && o.now - o.refusedSince > CHANGE_REFUSED_MS ? REFUSED_RETRY_MS : CHANGE_RETRY_MS;

/** A member of another cluster, or with another certificate, receives no request. */
const callContext = (o: Observed): Pick<EtcdCall, 'clusterID' | 'hosts'> => ({
  clusterID: o.cluster.status?.clusterID ?? '',
  hosts: hostsOf(o.members),
});

export function etcdStep(o: Observed, what: EtcdChange, target: string, retryAfterMs = retryMs(o)): Step<ClusterCall> {
  const { namespace, name } = identity(o.cluster);
  const call: EtcdCall = {
    is: 'etcd',
    ...what,
    target,
    cluster: `${namespace}/${name}`,
    endpoints: what.name === 'moveLeader' ? leaderEndpoint(o) : endpointsToAsk(o),
    ...callContext(o),
  };
  return { do: 'call', call, retryMs: retryAfterMs };
}

export function rootPasswordStep(o: Observed, name: RootPasswordStep, target: string): Step<ClusterCall> {
  const call: RootPasswordCall = {
    is: 'rootPassword',
    name,
    target,
    cluster: identity(o.cluster),
    endpoints: endpointsToAsk(o),
    ...callContext(o),
  };
  return { do: 'call', call, retryMs: CHANGE_RETRY_MS };
}

export const removal = (o: Observed, entry: EtcdMemberEntry): Step<ClusterCall> =>
  etcdStep(o, { name: 'remove', id: entry.id }, entry.name || entry.peerURLs.join());
