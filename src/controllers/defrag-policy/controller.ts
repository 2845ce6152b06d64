/** The controller of EtcdDefragPolicy: which events concern which object, and the parts of its loop. */
import type { EtcdDefragPolicy, EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import { etcdDefragPolicies } from '../../api/names.ts';
import type { Resource } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import type { Brain } from '../../runtime/controller.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

export const defragPolicyResource: Resource<EtcdDefragPolicy> = etcdDefragPolicies;

export const defragPolicyBrain = (
  store: Store<EtcdDefragPolicy>,
  now: () => number,
): Brain<Observed, EtcdDefragPolicyStatus> => ({
  name: 'defrag-policy',
  resource: defragPolicyResource,
  observe: (key) => {
    const object = store.get(key);
    return Promise.resolve(object && { now: now(), object });
  },
  subject: (observed) => observed.object,
  decide,
});
