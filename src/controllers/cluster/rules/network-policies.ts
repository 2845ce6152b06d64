/** The row of upkeep about the NetworkPolicies: created when the spec or the administrator asks for them, deleted when neither does. */
import type { ReadHolding } from '../../../domain/unread.ts';
import type { NetworkPolicy } from '../../../gen/kube.ts';
import { mergePatch } from '../../../lib/merge-patch.ts';
import { independent, refTo, type Step } from '../../../runtime/plan.ts';
import { networkPolicies } from '../network-policy.ts';
import { type Contributed, hasToken, type Observed } from '../observed.ts';

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

/** Also before the bootstrap: the first Pod of a member is not open for a moment. */
export const correctNetworkPolicies = (o: Observed): Contributed => {
  const { network } = o;
  if (!network || !hasToken(o)) return undefined;
  const wanted = networkPolicies(o.cluster, network.settings);
  return independent('a NetworkPolicy is missing, was changed, or is not wanted any more', [
    ...steps(wanted.members, network.held.members),
    ...steps(wanted.agents, network.held.agents),
  ]);
};
