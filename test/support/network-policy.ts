/** What NetworkPolicies allow, as the API defines it: for a matrix of connections where no CNI enforces them. */
import { BlockList, isIPv6 } from 'node:net';
import type { LabelSelector, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../src/gen/kube.ts';

type Labels = Readonly<Record<string, string>>;
/** A Pod; or, without a namespace, an address outside of the Pod network. */
export interface Endpoint {
  readonly namespace?: string;
  readonly labels?: Labels;
  readonly ip?: string;
}

function selects({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels = {}): boolean {
  const holds = ({ key, operator, values = [] }: (typeof matchExpressions)[number]): boolean => {
    if (operator === 'Exists') return key in labels;
    if (operator === 'DoesNotExist') return !(key in labels);
    return values.includes(labels[key] ?? '') === (operator === 'In') || (operator === 'NotIn' && !(key in labels));
  };
  return Object.entries(matchLabels).every(([key, value]) => labels[key] === value) && matchExpressions.every(holds);
}

function isIn(cidr: string, ip: string): boolean {
  const [address = '', bits] = cidr.split('/');
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  if (isIPv6(ip) !== (family === 'ipv6')) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(bits), family);
  return list.check(ip, family);
}

/** As the API server labels them. */
const namespaceLabels = (namespace: string): Labels => ({ 'kubernetes.io/metadata.name': namespace });

/** Some CNIs never match a Pod by an ipBlock, so here none does. */
function matches(peer: NetworkPolicyPeer, other: Endpoint, own: string): boolean {
  const { ipBlock, namespaceSelector, podSelector } = peer;
  const { namespace } = other;
  if (ipBlock)
    return (
      namespace === undefined &&
      isIn(ipBlock.cidr, other.ip ?? '') &&
      !(ipBlock.except ?? []).some((block) => isIn(block, other.ip ?? ''))
    );
  if (namespace === undefined) return false;
  const isThere = namespaceSelector ? selects(namespaceSelector, namespaceLabels(namespace)) : namespace === own;
  return isThere && (!podSelector || selects(podSelector, other.labels));
}

interface Rule {
  readonly peers: readonly NetworkPolicyPeer[] | undefined;
  readonly ports: readonly NetworkPolicyPort[] | undefined;
}

/** One direction: a Pod that no policy selects may do everything; otherwise some rule has to allow it. */
function mayPass(
  policies: readonly NetworkPolicy[],
  type: 'Ingress' | 'Egress',
  of: Endpoint,
  other: Endpoint,
  port: number,
  protocol: string,
): boolean {
  const rulesOf = ({ spec }: NetworkPolicy): readonly Rule[] =>
    type === 'Ingress'
      ? (spec?.ingress ?? []).map(({ from: peers, ports }) => ({ peers, ports }))
      : (spec?.egress ?? []).map(({ to: peers, ports }) => ({ peers, ports }));
  const own = policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === of.namespace &&
      spec?.policyTypes?.includes(type) === true &&
      selects(spec.podSelector ?? {}, of.labels),
  );
  const allows = ({ peers = [], ports = [] }: Rule): boolean =>
    (peers.length === 0 || peers.some((peer) => matches(peer, other, of.namespace ?? ''))) &&
    (ports.length === 0 || ports.some((each) => each.port === port && (each.protocol ?? 'TCP') === protocol));
  return own.length === 0 || own.some((policy) => rulesOf(policy).some(allows));
}

/** Both ends have to allow a connection. */
export const connects = (
  policies: readonly NetworkPolicy[],
  from: Endpoint,
  to: Endpoint,
  port: number,
  protocol = 'TCP',
): boolean =>
  mayPass(policies, 'Egress', from, to, port, protocol) && mayPass(policies, 'Ingress', to, from, port, protocol);
