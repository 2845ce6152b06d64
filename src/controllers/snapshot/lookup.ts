/** The Job that looks a snapshot up in the store: after its own Job was deleted, or was that of an earlier operator. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { agentLabels, etcdSnapshots } from '../../api/names.ts';
import { agentContainer, agentJob, agentPodSpec, locationFiles } from '../../domain/agent-pod.ts';
import { type LookupTask, MOUNTS, objectKeyOf, placeOf } from '../../domain/agent-task.ts';
import { identity, ownedBy } from '../../domain/ownership.ts';
import { SNAPSHOT_DEADLINE_SECONDS, SNAPSHOT_JOB_KEPT_SECONDS } from '../../domain/timing.ts';
import type { Job } from '../../gen/kube.ts';
import { AGENT } from './build.ts';

const LOOKUP = 'lookup';

export interface LookingUp {
  readonly object: EtcdSnapshot;
  readonly cluster: EtcdCluster;
  readonly image: string;
  /** The name of the Job. */
  readonly job: string;
  /** The snapshot of an earlier operator has no manifest. */
  readonly withoutManifest: boolean;
}

export function lookupJob({ object, cluster, image, job, withoutManifest }: LookingUp): Job {
  const { name, namespace, uid } = identity(object);
  const { destination, encryption } = object.spec;
  const task: LookupTask = {
    task: LOOKUP,
    uid,
    at: placeOf(destination, MOUNTS.volume),
    key: objectKeyOf(object.spec, { namespace, name }),
    encrypted: encryption !== undefined,
    ...(withoutManifest && { withoutManifest }),
  };
  const files = locationFiles(destination, encryption, { mountPath: MOUNTS.volume, readOnly: true });
  const spec = agentPodSpec({
    cluster: cluster.spec,
    location: destination,
    containers: [agentContainer({ name: AGENT, image, task, mounts: files.mounts })],
    volumes: files.volumes,
  });
  const labels = agentLabels(identity(cluster).name);
  return agentJob({
    metadata: { name: job, namespace, labels, ownerReferences: ownedBy(etcdSnapshots, object) },
    seconds: SNAPSHOT_DEADLINE_SECONDS,
    keptSeconds: SNAPSHOT_JOB_KEPT_SECONDS,
    spec,
  });
}

export const isLookup = ({ spec }: Job): boolean => spec?.template.spec?.containers[0]?.args?.[0] === LOOKUP;
