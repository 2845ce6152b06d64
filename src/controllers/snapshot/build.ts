/** The Job that takes a snapshot. */

import type { Sources } from '../../access/evaluate/view.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { agentLabels, etcdSnapshotSchedules, etcdSnapshots, snapshotJobName } from '../../api/names.ts';
import {
  agentContainer,
  agentJob,
  agentPodSpec,
  locationFiles,
  type Mounted,
  secretFiles,
  together,
} from '../../domain/agent-pod.ts';
import { keyOf, layoutFolder, MOUNTS, placeOf, type SnapshotTask, storedFormOf } from '../../domain/agent-task.ts';
import { controllerOf, identity, ownedBy } from '../../domain/ownership.ts';
import {
  AGENT_ENDS_BEFORE_SECONDS,
  SNAPSHOT_DEADLINE_SECONDS,
  SNAPSHOT_JOB_KEPT_SECONDS,
} from '../../domain/timing.ts';
import type { Job } from '../../gen/kube.ts';
import type { MemberView } from './observed.ts';

/** The name of the container. */
export const AGENT = 'snapshot-agent';
const SLOWEST_BYTES_PER_SECOND = 2 ** 20;
const deadlineSeconds = ({ report }: MemberView): number =>
  SNAPSHOT_DEADLINE_SECONDS +
  (report.is === 'answers' ? Math.ceil(report.databaseBytes / SLOWEST_BYTES_PER_SECOND) : 0);

export interface Taking {
  readonly object: EtcdSnapshot;
  readonly cluster: EtcdCluster;
  readonly sources: Sources;
  readonly image: string;
  /** The member that the snapshot is taken from. */
  readonly member: MemberView;
}

function taskOf({ object, cluster, sources, member }: Taking): SnapshotTask {
  const { destination } = object.spec;
  const owner = controllerOf(object);
  const folder = layoutFolder(object.spec, identity(object).namespace);
  const { name = '', uid = '' } = cluster.metadata;
  return {
    task: 'snapshot',
    snapshot: identity(object),
    cluster: { name, uid },
    ...(owner?.kind === etcdSnapshotSchedules.kind && { schedule: { name: owner.name, uid: owner.uid } }),
    from: {
      member: member.name,
      endpoint: member.endpoint,
      ...(sources.ca !== undefined && { tls: { serverName: member.host, client: sources.pair !== undefined } }),
      auth: sources.root !== undefined,
    },
    to: placeOf(destination, MOUNTS.volume),
    prefix: keyOf(destination),
    ...(folder !== '' && { folder }),
    ...storedFormOf(object.spec),
    deadlineSeconds: deadlineSeconds(member) - AGENT_ENDS_BEFORE_SECONDS,
  };
}

/** The Secrets that the operator authenticates to members with. */
const etcdFiles = ({ ca, pair, root }: Sources): Mounted =>
  together(
    ...(ca === undefined ? [] : [secretFiles('etcd-ca', ca, MOUNTS.etcdCa, ['ca.crt'])]),
    ...(pair === undefined ? [] : [secretFiles('etcd-client', pair, MOUNTS.etcdClient, ['tls.crt', 'tls.key'])]),
    ...(root === undefined ? [] : [secretFiles('etcd-root', root, MOUNTS.etcdRoot, ['password'])]),
  );

export function snapshotJob(taking: Taking): Job {
  const { object, cluster, sources, image } = taking;
  const { name, namespace } = identity(object);
  const { destination, encryption } = object.spec;
  const labels = agentLabels(cluster.metadata.name ?? '');
  const files = together(
    locationFiles(destination, encryption, { mountPath: MOUNTS.volume, readOnly: false }),
    etcdFiles(sources),
  );
  const spec = agentPodSpec({
    cluster: cluster.spec,
    location: destination,
    containers: [agentContainer({ name: AGENT, image, task: taskOf(taking), mounts: files.mounts })],
    volumes: files.volumes,
  });
  const ownerReferences = ownedBy(etcdSnapshots, object);
  return agentJob({
    metadata: { name: snapshotJobName(name), namespace, labels, ownerReferences },
    seconds: deadlineSeconds(taking.member),
    keptSeconds: SNAPSHOT_JOB_KEPT_SECONDS,
    spec,
  });
}
