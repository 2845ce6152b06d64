/** Restores a snapshot into the seed: init containers that run before etcd while no cluster id is recorded. */

import { DEFAULT_BUMP } from '../../api/bootstrap.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import {
  agentBesideEtcd,
  locationFiles,
  memoryLimit,
  resourcesOf,
  serviceAccountOf,
  together,
} from '../../domain/agent-pod.ts';
import { FETCHED_VOLUME, keyOf, MOUNTS, placeOf, type RestoreTask } from '../../domain/agent-task.ts';
import { addedPeerURL } from '../../domain/member-address.ts';
import type { EnvVar, PodSpec, ResourceRequirements, Volume, VolumeMount } from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';
import { quantityBytes } from '../../lib/quantity.ts';

const GIB = 2 ** 30;
/**
 * etcdutl maps the database and keeps its freelist in memory; the agent streams. The database is not larger than its volume. The
 * limit is bounded, because a LimitRange may refuse larger ones, and follows that of the members, which such a range allows.
 */
const resourcesFor = ({ spec }: EtcdMember, restore: Source): ResourceRequirements => {
  const size = quantityBytes(spec.storage.size);
  const memory = memoryLimit(GIB, Math.min(size / 8, 4 * GIB), spec.resources?.limits?.['memory']);
  return resourcesOf(restore.resources, { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory } });
};

type Source = NonNullable<EtcdMember['spec']['restore']>;

const taskOf = (member: EtcdMember, restore: Source, dataDir: string, auth: boolean): RestoreTask => ({
  task: 'restore',
  from: placeOf(restore.source, MOUNTS.source),
  key: keyOf(restore.source),
  encrypted: restore.encryption !== undefined,
  dataDir,
  scratch: MOUNTS.fetched,
  member: member.metadata.name ?? '',
  initialCluster: member.spec.initialCluster,
  token: member.spec.clusterToken,
  peerURL: addedPeerURL(member),
  bumpRevision: restore.bumpRevision ?? DEFAULT_BUMP,
  version: member.spec.version,
  auth,
  ...present({
    copy: restore.source.copy && {
      from: placeOf(restore.source.copy, MOUNTS.copy),
      key: keyOf(restore.source.copy),
    },
    latest: restore.source.latest && present({ cluster: restore.source.latest.cluster }),
    sha256: restore.source.checksum?.replace(/^sha256:/, ''),
    resetRootPassword: restore.resetRootPassword,
  }),
});

export function restoring(
  member: EtcdMember,
  options: {
    readonly operatorImage: string;
    readonly etcdImage: string;
    readonly dataDir: string;
    readonly data: VolumeMount;
    readonly auth: boolean;
    /** Read at each start: whether the seed may still bootstrap the cluster. */
    readonly initial: EnvVar;
  },
):
  | { readonly pod: Pick<PodSpec, 'initContainers' | 'serviceAccountName'>; readonly volumes: readonly Volume[] }
  | undefined {
  const { restore } = member.spec;
  if (!restore) return undefined;
  const { operatorImage, etcdImage, dataDir, data, auth, initial } = options;
  const { copy } = restore.source;
  const first = locationFiles(restore.source, restore.encryption, { mountPath: MOUNTS.source, readOnly: true });
  const second = copy && locationFiles(copy, undefined, { mountPath: MOUNTS.copy, readOnly: true, isSecond: true });
  const files = together(first, ...(second ? [second] : []));
  const { install, agent, volume } = agentBesideEtcd({
    name: 'restore',
    operatorImage,
    etcdImage,
    task: taskOf(member, restore, dataDir, auth),
    env: [initial],
    mounts: [data, { name: FETCHED_VOLUME, mountPath: MOUNTS.fetched }, ...files.mounts],
    resources: resourcesFor(member, restore),
  });
  const identity = serviceAccountOf(restore.source) ?? (copy && serviceAccountOf(copy));
  return {
    pod: { initContainers: [install, agent], ...(identity !== undefined && { serviceAccountName: identity }) },
    // No sizeLimit: a provisioner may make the data volume larger than storage.size, and the agent fetches no more than fits there.
    volumes: [volume, { name: FETCHED_VOLUME, emptyDir: {} }, ...files.volumes],
  };
}
