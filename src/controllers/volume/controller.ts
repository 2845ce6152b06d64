/** The volume controller: deletes PVCs that outlived their cluster, when their time is over. */
import { CLUSTER_LABEL } from '../../api/names.ts';
import type { PersistentVolumeClaim, PersistentVolumeClaimStatus } from '../../gen/kube.ts';
import { keyOf } from '../../kube/object.ts';
import { persistentVolumeClaims } from '../../kube/resources.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import { decide } from './decide.ts';
import { isExpiring, observe, type VolumePorts } from './observe.ts';
import type { Observed } from './observed.ts';

export const volumeReconciler = (ports: VolumePorts): Reconciler<Observed, PersistentVolumeClaimStatus> => ({
  name: 'volume',
  resource: persistentVolumeClaims,
  observe: (key) => observe(ports, key),
  subject: ({ pvc }) => pvc,
  decide,
});

export function wireVolume(ports: VolumePorts, enqueue: (key: string) => void): void {
  ports.volumes.onChange((_, after: PersistentVolumeClaim | undefined) => {
    if (after && isExpiring(after)) enqueue(keyOf(after));
  });
  ports.clusters.onChange((before, after) => {
    const { namespace = '', name = '' } = before?.metadata ?? {};
    if (after === undefined)
      for (const pvc of ports.volumes.byIndex(namespace, CLUSTER_LABEL, name)) if (isExpiring(pvc)) enqueue(keyOf(pvc));
  });
}
