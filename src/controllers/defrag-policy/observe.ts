/** Observes one policy from the caches; only whether the name of the next EtcdDefrag is free comes from the API server. */
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdDefragPolicy } from '../../api/etcd-defrag-policy.ts';
import { POLICY_LABEL, scheduledDefragName } from '../../api/names.ts';
import { controllerOf, holding, identity } from '../../domain/ownership.ts';
import type { Client } from '../../kube/client.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { type Observed, slotIn } from './observed.ts';
import { schedulingOf } from './scheduling.ts';

export interface DefragPolicyPorts {
  readonly client: Client;
  readonly now: () => number;
  readonly defragPolicies: Store<EtcdDefragPolicy>;
  /** Indexed by their policy. */
  readonly defrags: Store<EtcdDefrag>;
}

export async function observe(
  ports: DefragPolicyPorts,
  key: string,
  signal: AbortSignal,
  refusal: string | undefined,
): Promise<Observed | undefined> {
  const object = ports.defragPolicies.get(key);
  if (!object) return undefined;
  const { name, namespace, uid } = identity(object);
  const runs = ports.defrags
    .byIndex(namespace, POLICY_LABEL, name)
    .filter((run) => controllerOf(run)?.uid === uid)
    .toSorted((a, b) => slotIn({ object }, a) - slotIn({ object }, b));
  const base: Observed = { now: ports.now(), refusal, object, runs, due: { is: 'absent' } };
  const scheduling = schedulingOf(base);
  if (scheduling.is !== 'due') return base;
  // A user may have removed the label, and the cache may be stale.
  const ref = { namespace, name: scheduledDefragName(name, scheduling.due.slot) };
  const taken = ports.defrags.get(refKey(ref)) ?? (await ports.client.get(ports.defrags.resource, ref, signal));
  return { ...base, due: holding(taken, uid) };
}
