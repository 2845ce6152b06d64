/** The controllers of EtcdDefrag and EtcdDefragPolicy. */
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdDefragPolicy } from '../../api/etcd-defrag-policy.ts';
import { etcdDefragPolicies, etcdDefrags } from '../../api/names.ts';
import type { KubeObject, Resource } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import { type Accepted, decide, type Observed } from './decide.ts';

export const defragResource: Resource<EtcdDefrag> = etcdDefrags;
export const defragPolicyResource: Resource<EtcdDefragPolicy> = etcdDefragPolicies;

export const notYetReconciler = <T extends KubeObject & Accepted>(
  name: string,
  store: Store<T>,
  now: () => number,
): Reconciler<Observed, object> => ({
  name,
  resource: store.resource,
  observe: (key) => {
    const object = store.get(key);
    return Promise.resolve(object && { now: now(), object });
  },
  subject: (observed) => observed.object,
  decide: decide(store.resource.kind),
});
