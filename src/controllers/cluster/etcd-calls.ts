/** Changes to etcd as steps of a plan. Who is asked, and about whom, was read from etcd in the same pass. */

import { CLIENT_PORT, PEER_PORT } from '../../api/names.ts';
import { memberClientScheme, memberHost, memberPeerScheme } from '../../domain/member-address.ts';
import { identity } from '../../domain/ownership.ts';
import { endpointOf } from '../../lib/endpoint.ts';
import type { Call, Step } from '../../runtime/plan.ts';
import { healthyVoters, leaderOf } from './disruption.ts';
import { type EtcdMemberEntry, entriesOf, type MemberView, memberOf, type Observed } from './observed.ts';

export type Change =
  | { readonly name: 'addLearner'; readonly peerURL: string }
  | { readonly name: 'promote'; readonly id: string }
  | { readonly name: 'remove'; readonly id: string }
  /** Asked of the leader only. */
  | { readonly name: 'moveLeader'; readonly to: string }
  | { readonly name: 'disarmCorrupt'; readonly id: string };

/** Every healthy voter has refused a membership change, because it takes too few of its peers for active. */
export const UNHEALTHY_CLUSTER = 'unhealthyCluster';

export type EtcdCall = Change &
  Call & {
    /** `namespace/name` of the cluster. */
    readonly cluster: string;
    readonly clusterID: string;
    /** Whom to ask, in this order. */
    readonly endpoints: readonly string[];
    /** The names that their certificates must have. */
    readonly hosts: Readonly<Record<string, string>>;
  };

/** What is done about the user root, in this order. No password is part of it. */
export type RootChange = 'intendPassword' | 'makeRoot' | 'enableAuth' | 'changePassword' | 'provePassword';

export interface RootCall extends Call {
  readonly name: RootChange;
  readonly cluster: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly clusterID: string;
  readonly endpoints: readonly string[];
  readonly hosts: Readonly<Record<string, string>>;
}

export function endpointAt({ object, pod }: MemberView, port: number): readonly string[] {
  if (pod.is === 'absent' || pod.ip === undefined) return [];
  return [endpointOf(pod.ip, port, port === PEER_PORT ? memberPeerScheme(object) : memberClientScheme(object))];
}
export const endpointsOf = (m: MemberView): readonly string[] => endpointAt(m, CLIENT_PORT);

/** By endpoint, the name that is to be in the certificate there. */
export const hostsOf = (members: readonly MemberView[], port = CLIENT_PORT): Readonly<Record<string, string>> =>
  Object.fromEntries(members.flatMap((m) => endpointAt(m, port).map((endpoint) => [endpoint, memberHost(m.object)])));

/** Healthy voters, the leader first: it need not ask anybody. */
function speakers(o: Observed): readonly string[] {
  const leader = leaderOf(o);
  const order = [...healthyVoters(o)].sort((a, b) => Number(b.id === leader) - Number(a.id === leader));
  return order.flatMap((entry) => {
    const m = memberOf(o, entry);
    return m ? endpointsOf(m) : [];
  });
}

/** The leader itself, also one that is to go because something is wrong with it. */
function leading(o: Observed): readonly string[] {
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
const meant = (o: Observed): Pick<EtcdCall, 'clusterID' | 'hosts'> => ({
  clusterID: o.cluster.status?.clusterID ?? '',
  hosts: hostsOf(o.members),
});

export function change(o: Observed, what: Change, target: string, retryAfterMs = retryMs(o)): Step {
  const { namespace, name } = identity(o.cluster);
  const call: EtcdCall = {
    ...what,
    target,
    cluster: `${namespace}/${name}`,
    endpoints: what.name === 'moveLeader' ? leading(o) : speakers(o),
    ...meant(o),
  };
  return { do: 'call', call, retryMs: retryAfterMs };
}

export function rootStep(o: Observed, name: RootChange, target: string): Step {
  const call: RootCall = {
    name,
    target,
    cluster: identity(o.cluster),
    endpoints: speakers(o),
    ...meant(o),
  };
  return { do: 'call', call, retryMs: RETRY_MS };
}

export const removal = (o: Observed, entry: EtcdMemberEntry): Step =>
  change(o, { name: 'remove', id: entry.id }, entry.name || entry.peerURLs.join());
