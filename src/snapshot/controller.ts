/** The controller of EtcdSnapshot: which events concern which object, and the parts of its loop. */
import type { EtcdSnapshot, EtcdSnapshotStatus } from '../api/etcd-snapshot.ts';
import { etcdSnapshots } from '../api/names.ts';
import type { Resource } from '../kube/object.ts';
import type { Store } from '../kube/store.ts';
import type { Brain } from '../runtime/controller.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

export const snapshotResource: Resource<EtcdSnapshot> = etcdSnapshots;

export const snapshotBrain = (store: Store<EtcdSnapshot>, now: () => number): Brain<Observed, EtcdSnapshotStatus> => ({
  name: 'snapshot',
  resource: snapshotResource,
  observe: (key) => {
    const object = store.get(key);
    return Promise.resolve(object && { now: now(), object });
  },
  subject: (observed) => observed.object,
  decide,
});
