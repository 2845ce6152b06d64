/** A provisioner: binds the PVCs of a namespace to volumes at once, and deletes a volume with its PVC. */
import type { PersistentVolumeClaim } from '../../../src/gen/kube.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { persistentVolumeClaims, persistentVolumes } from '../../../src/kube/resources.ts';
import { watch } from '../../../src/kube/watcher.ts';
import { pause } from '../servers/processes.ts';

const quiet = (): void => {}; // the PVC was deleted meanwhile, or the test is over

export function provision(client: HttpClient, namespace: string, signal: AbortSignal): void {
  void watch({
    client,
    resource: persistentVolumeClaims,
    namespace,
    signal,
    emit: (event) => {
      if (event.type === 'put' && event.object.spec?.volumeName === undefined) bind(client, event.object).catch(quiet);
      else if (event.type === 'delete') remove(client, nameOf(event.object)).catch(quiet);
    },
    onError: quiet,
    sleep: (ms) => pause(ms),
    random: Math.random,
  });
}

const nameOf = ({ metadata }: PersistentVolumeClaim): string => `pvc-${metadata.uid}`;

async function bind(client: HttpClient, claim: PersistentVolumeClaim): Promise<void> {
  const { namespace = '', name = '', uid } = claim.metadata;
  const volume = nameOf(claim);
  const { accessModes = [], resources, storageClassName = '' } = claim.spec ?? {};
  const capacity = { storage: resources?.requests?.['storage'] ?? '1Gi' };
  await client.create(persistentVolumes, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: volume },
    spec: {
      accessModes,
      capacity,
      storageClassName,
      csi: { driver: 'folders', volumeHandle: volume },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, ...(uid && { uid }) },
    },
  });
  await client.patch(persistentVolumeClaims, { namespace, name }, { metadata: { uid }, spec: { volumeName: volume } });
  const status = { phase: 'Bound', accessModes, capacity };
  await client.patch(
    persistentVolumeClaims,
    { namespace, name },
    { metadata: { uid }, status },
    { subresource: 'status' },
  );
}

/** No controller releases the finalizer of volumes here. */
async function remove(client: HttpClient, name: string): Promise<void> {
  const ref = { namespace: '', name };
  const { metadata } = await client.patch(persistentVolumes, ref, { metadata: { finalizers: null } });
  await client.delete(persistentVolumes, ref, { uid: metadata.uid ?? '' });
}
