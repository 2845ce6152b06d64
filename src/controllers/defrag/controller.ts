/** The controller of EtcdDefrag: which events concern which object, and the parts of its loop. */
import type { EtcdDefrag, EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import { etcdDefrags } from '../../api/names.ts';
import type { Resource } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import type { Brain } from '../../runtime/controller.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

export const defragResource: Resource<EtcdDefrag> = etcdDefrags;

export const defragBrain = (store: Store<EtcdDefrag>, now: () => number): Brain<Observed, EtcdDefragStatus> => ({
  name: 'defrag',
  resource: defragResource,
  observe: (key) => {
    const object = store.get(key);
    return Promise.resolve(object && { now: now(), object });
  },
  subject: (observed) => observed.object,
  decide,
});
