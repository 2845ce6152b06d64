/** The EtcdDefragPolicy controller: its watches and its reconciler. */
import type { EtcdDefragPolicy, EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import { etcdDefragPolicies } from '../../api/names.ts';
import { controllerOf } from '../../domain/ownership.ts';
import { type KubeObject, keyOf, type Resource, refKey } from '../../kube/object.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import { failureMessage } from '../../runtime/plan.ts';
import { decide } from './decide.ts';
import { type DefragPolicyPorts, observe } from './observe.ts';
import type { Observed } from './observed.ts';

export const defragPolicyResource: Resource<EtcdDefragPolicy> = etcdDefragPolicies;

export const defragPolicyReconciler = (ports: DefragPolicyPorts): Reconciler<Observed, EtcdDefragPolicyStatus> => ({
  name: 'defrag-policy',
  resource: defragPolicyResource,
  observe: (key, signal, { failures }) => observe(ports, key, signal, failureMessage(failures)),
  subject: (observed) => observed.object,
  decide,
});

/** Enqueues a policy when it, or one of its EtcdDefrags, changes. */
export function wireDefragPolicy(ports: DefragPolicyPorts, enqueue: (key: string) => void): void {
  ports.defragPolicies.onChange((before, after) => enqueue(keyOf((after ?? before) as KubeObject)));
  ports.defrags.onChange((before, after) => {
    const run = (after ?? before) as KubeObject;
    const owner = controllerOf(run);
    if (owner?.kind === etcdDefragPolicies.kind)
      enqueue(refKey({ namespace: run.metadata.namespace ?? '', name: owner.name }));
  });
}
