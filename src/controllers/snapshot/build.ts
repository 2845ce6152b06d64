/** The Job that takes a snapshot. */

import type { Sources } from '../../access/evaluate/view.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { agentLabels, etcdSnapshotSchedules, etcdSnapshots, snapshotJobName } from '../../api/names.ts';
import {
  AGENT_RESOURCES,
  agentContainer,
  agentJob,
  agentPodSpec,
  locationFiles,
  type Mounted,
  memoryLimit,
  resourcesOf,
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
import type { Job, ResourceRequirements } from '../../gen/kube.ts';
import type { MemberView } from './observed.ts';

/** The name of the container. */
export const AGENT = 'snapshot-agent';
const SLOWEST_BYTES_PER_SECOND = 2 ** 20;
const deadlineSeconds = (member: MemberView): number =>
  SNAPSHOT_DEADLINE_SECONDS + Math.ceil(databaseBytes(member) / SLOWEST_BYTES_PER_SECOND);

export interface Taking {
  readonly object: EtcdSnapshot;
  readonly cluster: EtcdCluster;
  readonly sources: Sources;
  readonly image: string;
  /** The member that the snapshot is taken from. */
  readonly member: MemberView;
  /** Asked in this order when it fails. */
  readonly others?: readonly MemberView[];
}

const databaseBytes = ({ report }: MemberView): number => (report.is === 'answers' ? report.databaseBytes : 0);
/** The stored form of a database is hardly larger than the database, which grows while it is streamed. */
const spoolBytes = (member: MemberView): number => Math.ceil(1.1 * databaseBytes(member)) + SPOOL_MARGIN_BYTES;
const SPOOL_MARGIN_BYTES = 64 * 2 ** 20;

/** Three parts of an upload are in memory: two that are sent, and the one that is filled. An upload has at most 9,000. */
export function uploadResources(resources: EtcdSnapshot['spec']['resources'], bytes: number): ResourceRequirements {
  const parts = Math.ceil((3 * bytes) / 9_000);
  const limits = { memory: memoryLimit(AGENT_RESOURCES.limits?.['memory'], BESIDE_PARTS_BYTES + parts) };
  return resourcesOf(resources, { ...AGENT_RESOURCES, limits });
}
const BESIDE_PARTS_BYTES = 232 * 2 ** 20;

const sourceOf = ({ name, endpoint, host }: MemberView, sources: Sources): SnapshotTask['from'] => ({
  member: name,
  endpoint,
  ...(sources.ca !== undefined && { tls: { serverName: host, client: sources.pair !== undefined } }),
  auth: sources.root !== undefined,
});

function taskOf({ object, cluster, sources, member, others = [] }: Taking): SnapshotTask {
  const { destination } = object.spec;
  const owner = controllerOf(object);
  const folder = layoutFolder(object.spec, identity(object).namespace);
  const { name = '', uid = '' } = cluster.metadata;
  return {
    task: 'snapshot',
    snapshot: identity(object),
    cluster: { name, uid },
    ...(owner?.kind === etcdSnapshotSchedules.kind && { schedule: { name: owner.name, uid: owner.uid } }),
    from: sourceOf(member, sources),
    ...(others.length > 0 && { others: others.map((other) => sourceOf(other, sources)) }),
    spoolBytes: spoolBytes(member),
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
  const limit = `${Math.ceil((spoolBytes(taking.member) + SPOOL_MARGIN_BYTES) / 2 ** 20)}Mi`;
  const files = together(
    {
      volumes: [{ name: 'spool', emptyDir: { sizeLimit: limit } }],
      mounts: [{ name: 'spool', mountPath: MOUNTS.spool }],
    },
    locationFiles(destination, encryption, { mountPath: MOUNTS.volume, readOnly: false }),
    etcdFiles(sources),
  );
  const spec = agentPodSpec({
    cluster: cluster.spec,
    location: destination,
    containers: [
      agentContainer({
        name: AGENT,
        image,
        task: taskOf(taking),
        mounts: files.mounts,
        resources: uploadResources(object.spec.resources, databaseBytes(taking.member)),
      }),
    ],
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
