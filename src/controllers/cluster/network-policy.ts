/** The NetworkPolicies of a cluster: who reaches its members, and where its agents connect to. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import {
  AGENT_OF_LABEL,
  agentPolicyName,
  CLIENT_PORT,
  CLUSTER_LABEL,
  METRICS_PORT,
  memberPolicyName,
  PEER_PORT,
} from '../../api/names.ts';
import { identity } from '../../domain/ownership.ts';
import type { ReadHolding } from '../../domain/unread.ts';
import type {
  NetworkPolicy,
  NetworkPolicyEgressRule,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicySpec,
} from '../../gen/kube.ts';
import { isInside, parseCidr } from '../../lib/cidr.ts';
import { mergePatch } from '../../lib/merge-patch.ts';
import { refTo, type Step } from '../../runtime/plan.ts';
import { ownedMetadata } from './build.ts';

/** What the administrator and the installation decide. */
export interface NetworkSettings {
  /** Of the operator's Pod; absent: it runs outside of the cluster, where no policy can let it in. */
  readonly operatorNamespace?: string;
  /** CIDRs that agents and restoring members may connect to; empty: everything but metadata services. */
  readonly storeNetworks: readonly string[];
  /** Agents get the cloud identity of their Pod or node from a metadata service. */
  readonly allowAmbientCredentials: boolean;
}

/** By its part in the cluster; `undefined`: there should be none. */
export interface NetworkPolicies<T> {
  readonly members: T;
  readonly agents: T;
}
export type HeldPolicies = NetworkPolicies<ReadHolding<NetworkPolicy>>;

const tcp = (...ports: readonly number[]): readonly NetworkPolicyPort[] =>
  ports.map((port) => ({ port, protocol: 'TCP' }));
/** A policy is compared with the port of the Pod, behind the Service: the DNS Pods of OpenShift listen at 5353. */
const DNS_PORTS = [53, 5353] as const;
const DNS: NetworkPolicyEgressRule = {
  ports: [...DNS_PORTS.map((port) => ({ port, protocol: 'UDP' })), ...tcp(...DNS_PORTS)],
};

const membersOf = (name: string): NetworkPolicyPeer => ({ podSelector: { matchLabels: { [CLUSTER_LABEL]: name } } });
const agentsOf = (name: string): NetworkPolicyPeer => ({ podSelector: { matchLabels: { [AGENT_OF_LABEL]: name } } });
/** The chart gives this label to the operator's Pod under every name of a release. */
const operatorIn = (namespace: string): NetworkPolicyPeer => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
  podSelector: { matchLabels: { 'control-plane': 'controller-manager' } },
});

/** The same addresses as in the SSRF guard of agents, which cannot see what a library asks by itself. */
const METADATA = {
  '0.0.0.0/0': ['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
  '::/0': ['fe80::/10', 'fd00:ec2::/32', 'fd20:ce::254/128'],
} as const;

/** Some CNIs match no Pod by its address: a store in the cluster is reached as a Pod. */
function stores({ storeNetworks, allowAmbientCredentials }: NetworkSettings): NetworkPolicyEgressRule {
  if (storeNetworks.length > 0) return { to: storeNetworks.map((cidr) => ({ ipBlock: { cidr } })) };
  if (allowAmbientCredentials) return {};
  const blocks = Object.entries(METADATA).map(([cidr, except]) => ({ ipBlock: { cidr, except: [...except] } }));
  return { to: [...blocks, { namespaceSelector: {} }] };
}

/** Whether the API server accepts it: it refuses a whole NetworkPolicy for one peer, and nothing would be limited. */
function isAccepted({ ipBlock }: NetworkPolicyPeer): boolean {
  if (!ipBlock) return true;
  const network = parseCidr(ipBlock.cidr);
  return (
    network !== undefined &&
    (ipBlock.except ?? []).every((each) => {
      const inner = parseCidr(each);
      return inner !== undefined && isInside(inner, network);
    })
  );
}

/** The peers of a spec that let nothing in, for a condition. */
export function ignoredPeers({ networkPolicy }: EtcdCluster['spec']): readonly string[] {
  const ignoredIn = (field: 'clients' | 'monitoring') =>
    (networkPolicy?.[field] ?? []).flatMap((peer, i) => (isAccepted(peer) ? [] : [`networkPolicy.${field}[${i}]`]));
  return [...ignoredIn('clients'), ...ignoredIn('monitoring')];
}

/** An empty `from` would let everything in. */
function ingress(peers: readonly NetworkPolicyPeer[] = [], ...ports: readonly number[]) {
  const from = peers.filter(isAccepted);
  return from.length === 0 ? [] : [{ from, ports: [...tcp(...ports)] }];
}

/** Members of a cluster that may restore are agents for a while. Only an administrator's list is enforced on them. */
function memberSpec({ metadata, spec }: EtcdCluster, settings: NetworkSettings): NetworkPolicySpec | undefined {
  const { name = '' } = metadata;
  const { operatorNamespace, storeNetworks } = settings;
  const asked = operatorNamespace === undefined ? undefined : spec.networkPolicy;
  if (!asked && storeNetworks.length === 0) return undefined;
  const operator = operatorNamespace === undefined ? [] : [operatorIn(operatorNamespace)];
  const restores = spec.bootstrap?.restore !== undefined;
  return {
    podSelector: membersOf(name).podSelector ?? {},
    policyTypes: [...(asked ? ['Ingress'] : []), ...(storeNetworks.length > 0 ? ['Egress'] : [])],
    ...(asked && {
      ingress: [
        ...ingress([membersOf(name)], CLIENT_PORT, PEER_PORT),
        // 2380: it reads the certificate that members serve to their peers.
        ...ingress(operator, CLIENT_PORT, PEER_PORT, METRICS_PORT),
        ...ingress([agentsOf(name), ...(asked.clients ?? [])], CLIENT_PORT),
        ...ingress(asked.monitoring, METRICS_PORT),
      ],
    }),
    ...(storeNetworks.length > 0 && {
      egress: [
        DNS,
        { to: [membersOf(name)], ports: [...tcp(CLIENT_PORT, PEER_PORT)] },
        ...(restores ? [stores(settings)] : []),
      ],
    }),
  };
}

/** Agents serve nothing. */
function agentSpec({ metadata: { name = '' }, spec }: EtcdCluster, settings: NetworkSettings) {
  if (!spec.networkPolicy && settings.storeNetworks.length === 0) return undefined;
  return {
    podSelector: agentsOf(name).podSelector ?? {},
    policyTypes: ['Ingress', 'Egress'],
    egress: [DNS, { to: [membersOf(name)], ports: [...tcp(CLIENT_PORT)] }, stores(settings)],
  };
}

export function networkPolicies(
  cluster: EtcdCluster,
  settings: NetworkSettings,
): NetworkPolicies<NetworkPolicy | undefined> {
  const { name } = identity(cluster);
  const policy = (called: string, spec: NetworkPolicySpec | undefined): NetworkPolicy | undefined =>
    spec && {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: ownedMetadata(cluster, called),
      spec,
    };
  return {
    members: policy(memberPolicyName(name), memberSpec(cluster, settings)),
    agents: policy(agentPolicyName(name), agentSpec(cluster, settings)),
  };
}

/** The fields that the operator owns; others may come from a policy or a later Kubernetes. */
const OWNED = ['podSelector', 'policyTypes', 'ingress', 'egress'];

function patchOf({ spec: is }: NetworkPolicy, { spec: want }: NetworkPolicy) {
  const others = Object.entries(is ?? {}).filter(([field]) => !OWNED.includes(field));
  return mergePatch(is, { ...Object.fromEntries(others), ...want });
}

function steps(wanted: NetworkPolicy | undefined, held: ReadHolding<NetworkPolicy>): readonly Step[] {
  if (!wanted) return held.is === 'ours' ? [{ do: 'delete', what: refTo('NetworkPolicy', held.object) }] : [];
  if (held.is === 'absent') return [{ do: 'create', object: wanted }];
  const spec = held.is === 'ours' ? patchOf(held.object, wanted) : undefined;
  return held.is === 'ours' && spec ? [{ do: 'patch', to: refTo('NetworkPolicy', held.object), fields: { spec } }] : [];
}

/** What brings the NetworkPolicies of a cluster to what they should be; nothing when they are. */
export function policySteps(
  cluster: EtcdCluster,
  { settings, held }: { readonly settings: NetworkSettings; readonly held: HeldPolicies },
): readonly Step[] {
  const wanted = networkPolicies(cluster, settings);
  return [...steps(wanted.members, held.members), ...steps(wanted.agents, held.agents)];
}
