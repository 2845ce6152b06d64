/** Changes to etcd as steps of a plan. Who is asked, and about whom, was read from etcd in the same pass. */

import { CLIENT_PORT, PEER_PORT } from '../../api/names.ts';
import { memberClientScheme, memberHost, memberPeerScheme } from '../../domain/member-address.ts';
import { identity } from '../../domain/ownership.ts';
import { endpointOf } from '../../lib/endpoint.ts';
import type { Step } from '../../runtime/plan.ts';
import type { ClusterCall, EtcdCall, EtcdChange, RootPasswordCall, RootPasswordStep } from './calls.ts';
import { healthyVoters, leaderOf } from './disruption.ts';
import { type EtcdMemberEntry, entriesOf, type MemberView, memberOf, type Observed } from './observed.ts';

export function endpointAt({ object, pod }: MemberView, port: number): readonly string[] {
  if (pod.is === 'absent' || pod.ip === undefined) return [];
  return [endpointOf(pod.ip, port, port === PEER_PORT ? memberPeerScheme(object) : memberClientScheme(object))];
}
export const endpointsOf = (m: MemberView): readonly string[] => endpointAt(m, CLIENT_PORT);

/** By endpoint, the name that is to be in the certificate there. */
export const hostsOf = (members: readonly MemberView[], port = CLIENT_PORT): Readonly<Record<string, string>> =>
  Object.fromEntries(members.flatMap((m) => endpointAt(m, port).map((endpoint) => [endpoint, memberHost(m.object)])));

/** Healthy voters, the leader first: it need not ask anybody. */
function endpointsToAsk(o: Observed): readonly string[] {
  const leader = leaderOf(o);
  const order = [...healthyVoters(o)].sort((a, b) => Number(b.id === leader) - Number(a.id === leader));
  return order.flatMap((entry) => {
    const m = memberOf(o, entry);
    return m ? endpointsOf(m) : [];
  });
}

/** The leader itself, also one that is to go because something is wrong with it. */
function leaderEndpoint(o: Observed): readonly string[] {
  const entry = entriesOf(o)?.find(({ id }) => id === leaderOf(o));
  const m = entry && memberOf(o, entry);
  return m ? endpointsOf(m) : [];
}

/** etcd refuses changes for some seconds after others: it is asked again so often. What it refuses for longer than a minute, less often. */
const RETRY_MS = 500;
const REFUSED_RETRY_MS = 10_000;
const retryMs = (o: Observed): number =>
  o.refusedSince !== undefined && o.now - o.refusedSince > 60_000 ? REFUSED_RETRY_MS : RETRY_MS;

/** Nobody else is told anything. */
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
  return { do: 'call', call, retryMs: RETRY_MS };
}

export const removal = (o: Observed, entry: EtcdMemberEntry): Step<ClusterCall> =>
  etcdStep(o, { name: 'remove', id: entry.id }, entry.name || entry.peerURLs.join());
