/** The Job that copies a stored snapshot to a second location. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { agentLabels, copyJobName, etcdSnapshotSchedules, etcdSnapshots } from '../../api/names.ts';
import type { SnapshotLocation } from '../../api/snapshot-location.ts';
import { agentContainer, agentJob, agentPodSpec, locationFiles, together } from '../../domain/agent-pod.ts';
import { type CopyTask, MOUNTS, objectKeyOf, placeOf } from '../../domain/agent-task.ts';
import { controllerOf, identity, ownedBy } from '../../domain/ownership.ts';
import { SCHEDULE_JOB_KEPT_SECONDS, SNAPSHOT_DEADLINE_SECONDS } from '../../domain/timing.ts';
import type { Job } from '../../gen/kube.ts';
import { uploadResources } from './build.ts';

/** The name of the container. */
export const COPY_AGENT = 'copy';
const SLOWEST_BYTES_PER_SECOND = 2 ** 20;

/** Of the attempt that is due or runs. */
export const jobNameOf = (object: EtcdSnapshot): string =>
  copyJobName(identity(object).name, object.status?.copy?.attempts ?? 0);

export function copyJob(
  object: EtcdSnapshot,
  { cluster, image, to }: { readonly cluster: EtcdCluster; readonly image: string; readonly to: SnapshotLocation },
): Job {
  const { name, namespace, uid } = identity(object);
  const { destination, resources } = object.spec;
  const { checksum = '', sizeBytes = 0 } = object.status?.artifact ?? {};
  const owner = controllerOf(object);
  const task: CopyTask = {
    task: 'copy',
    from: placeOf(destination, MOUNTS.source),
    key: objectKeyOf(object.spec, { namespace, name }),
    to: placeOf(to, MOUNTS.copy),
    toKey: objectKeyOf({ ...object.spec, destination: to }, { namespace, name }),
    uid,
    ...(owner?.kind === etcdSnapshotSchedules.kind && { schedule: owner.uid }),
    sha256: checksum.replace(/^sha256:/, ''),
  };
  const files = together(
    locationFiles(destination, undefined, { mountPath: MOUNTS.source, readOnly: true }),
    locationFiles(to, undefined, { mountPath: MOUNTS.copy, readOnly: false, isSecond: true }),
  );
  const container = { name: COPY_AGENT, image, task, mounts: files.mounts };
  const spec = agentPodSpec({
    cluster: cluster.spec,
    location: destination,
    second: to,
    containers: [agentContainer({ ...container, resources: uploadResources(resources, sizeBytes) })],
    volumes: files.volumes,
  });
  const labels = agentLabels(identity(cluster).name);
  return agentJob({
    metadata: { name: jobNameOf(object), namespace, labels, ownerReferences: ownedBy(etcdSnapshots, object) },
    seconds: SNAPSHOT_DEADLINE_SECONDS + Math.ceil(sizeBytes / SLOWEST_BYTES_PER_SECOND),
    keptSeconds: SCHEDULE_JOB_KEPT_SECONDS,
    spec,
  });
}
