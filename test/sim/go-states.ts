/** Clusters in the middle of what the Go operator does, written from the lists of its fields: the start of a world. */
import {
  API_VERSION,
  clusterToken,
  memberLabels,
  PEER_AUTO_TLS_ANNOTATION,
  ROLE_LABEL,
  volumeClaimName,
} from '../../src/api/names.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import {
  budget,
  claim,
  clusterStatus,
  type GoCluster,
  type Manifest,
  memberObject,
  memberPod,
  memberStatus,
  type Owner,
  peerURL,
  STORAGE,
  services,
  VERSION,
} from '../support/journeys/go-manifests.ts';
import { NAMESPACE } from './world/ground.ts';
import type { Recorded, RecordedEtcd } from './world/recorded.ts';

const AT = '2026-11-18T05:00:00Z';
const CLUSTER_ID = '912a9082980f05d7';
const UID = 'uid-of-cluster';
const idOf = (index: number): string => `b8e13b01aefd15e${index}`;

/** How far one member is. */
export type Progress =
  | 'running'
  /** Its EtcdMember has no initialCluster yet, and etcd does not know it. */
  | 'created'
  /** Like that, but etcd has the learner. */
  | 'added'
  /** It runs, and does not vote. */
  | 'learner'
  | 'dormant'
  /** A finalizer keeps it, and etcd still has it. */
  | 'leaving'
  /** Its Pod has ended, and etcd has the member. */
  | 'ended';

export interface GoState {
  readonly cluster: GoCluster;
  /** Of each member; absent: it runs. */
  readonly progress?: readonly Progress[];
  /** Members that the Go operator has added to an adopted cluster: they are native. */
  readonly native?: readonly string[];
  readonly spec?: Manifest;
  readonly status?: Manifest;
  /** Fields of the spec as the Go operator's types copy them to members: without empty lists and maps that are no pointers. */
  readonly template?: Manifest;
  /** The id of the cluster is not recorded yet. */
  readonly undiscovered?: true;
}

const metadataOf = (manifest: Manifest): Readonly<Record<string, unknown>> =>
  (manifest['metadata'] ?? {}) as Readonly<Record<string, unknown>>;
const withMetadata = (manifest: Manifest, more: Manifest): KubeObject =>
  ({ ...manifest, metadata: { ...metadataOf(manifest), creationTimestamp: AT, ...more } }) as unknown as KubeObject;
const ownerOf = (kind: string, name: string, uid: string): Owner => ({
  uid,
  references: [{ apiVersion: API_VERSION, kind, name, uid, controller: true, blockOwnerDeletion: true }],
});

const runningPod = (index: number, isReady: boolean): Manifest => ({
  phase: 'Running',
  podIP: `127.0.0.${index + 10}`,
  startTime: AT,
  conditions: ['PodScheduled', 'ContainersReady', 'Ready'].map((type) => ({
    type,
    status: isReady || type === 'PodScheduled' ? 'True' : 'False',
    lastTransitionTime: AT,
  })),
  containerStatuses: [
    {
      name: 'etcd',
      state: { running: { startedAt: AT } },
      lastState: {},
      ready: isReady,
      restartCount: 0,
      image: `quay.io/coreos/etcd:v${VERSION}`,
      imageID: 'x',
      started: true,
    },
  ],
});
const endedPod: Manifest = { phase: 'Failed', reason: 'Evicted', startTime: AT };

export function leftByGo(state: GoState): Recorded {
  const { cluster, spec = {}, status = {}, template = {}, undiscovered } = state;
  const { name, members, adopted } = cluster;
  const owner = ownerOf('EtcdCluster', name, UID);
  const token = adopted ? `${name}-${NAMESPACE}` : clusterToken(NAMESPACE, name, UID);
  const progressOf = (i: number): Progress => state.progress?.[i] ?? 'running';
  const formOf = (member: string): GoCluster => {
    if (!state.native?.includes(member)) return cluster;
    const { adopted: _, ...native } = cluster;
    return native;
  };
  const listed = members.filter((_, i) => progressOf(i) !== 'created');
  const urlOf = (member: string): string => peerURL(NAMESPACE, formOf(member), member);
  const initialCluster = listed
    .map((each) => `${each}=${urlOf(each)}`)
    .sort()
    .join(',');
  const storage = cluster.memory ? { ...STORAGE, medium: 'Memory' } : STORAGE;
  const known = clusterStatus(cluster, token, CLUSTER_ID);
  const object: Manifest = {
    apiVersion: API_VERSION,
    kind: 'EtcdCluster',
    metadata: {
      name,
      namespace: NAMESPACE,
      uid: UID,
      generation: 1,
      ...(cluster.tls?.autoPeers && { annotations: { [PEER_AUTO_TLS_ANNOTATION]: 'true' } }),
    },
    spec: { replicas: members.length, version: VERSION, storage, progressDeadlineSeconds: 600, ...spec },
    status: { ...known, observed: { ...(known['observed'] as object), ...template }, ...status },
  };
  if (undiscovered) delete (object['status'] as Record<string, unknown>)['clusterID'];
  const objects = members.flatMap((member, i) => {
    const progress = progressOf(i);
    const form = formOf(member);
    const uid = `uid-${member}`;
    const isPending = progress === 'created' || progress === 'added';
    const isSeed = i === 0;
    const parts = { member, owner, token, initialCluster: isPending ? '' : initialCluster, isSeed };
    const own = ownerOf('EtcdMember', member, uid);
    const isVoter = !isPending && progress !== 'learner';
    const reported = memberStatus(form, member, idOf(i), `pod-${member}`);
    const manifest = memberObject(NAMESPACE, form, parts);
    const object = withMetadata(manifest, {
      uid,
      generation: 1,
      ...(progress === 'leaving' && { deletionTimestamp: AT }),
    });
    const etcdMember = {
      ...object,
      spec: { ...(manifest['spec'] as object), ...template, ...(progress === 'dormant' && { dormant: true }) },
      status: {
        ...(isPending ? {} : reported),
        ...(isSeed && { isVoter: true }),
        ...(!isVoter && !isSeed && { isVoter: false }),
        ...(undiscovered && { memberID: undefined }),
      },
    } as unknown as KubeObject;
    if (isPending) return [etcdMember];
    const volume = withMetadata(claim(NAMESPACE, form, member, own), {
      uid: `pvc-${member}`,
      finalizers: ['kubernetes.io/pvc-protection'],
    });
    const volumes = cluster.memory ? [] : [{ ...volume, status: { phase: 'Bound' } } as KubeObject];
    if (progress === 'dormant') return [etcdMember, ...volumes];
    const pod = memberPod(NAMESPACE, form, { ...parts, owner: own });
    const labels = { ...memberLabels(name, member), ...(isVoter && { [ROLE_LABEL]: 'voter' }) };
    const running = {
      ...withMetadata(pod, { uid: `pod-${member}`, labels }),
      spec: { ...(pod['spec'] as object), nodeName: 'node', restartPolicy: 'Always' },
      status: progress === 'ended' ? endedPod : runningPod(i, isVoter),
    } as unknown as KubeObject;
    return [etcdMember, ...volumes, running];
  });
  const around = [
    ...services(NAMESPACE, cluster, owner),
    ...(undiscovered ? [] : [budget(NAMESPACE, cluster, owner)]),
  ].map((each) => withMetadata(each, { uid: `uid-${String(each['kind'])}-${String(metadataOf(each)['name'])}` }));
  const etcdMembers = members.flatMap((member, i): RecordedEtcd['members'] => {
    const progress = progressOf(i);
    if (progress === 'created') return [];
    const isNew = progress === 'added';
    return [
      {
        id: idOf(i),
        name: isNew ? '' : member,
        peerURLs: [urlOf(member)],
        isLearner: isNew || progress === 'learner',
      },
    ];
  });
  const etcd: RecordedEtcd | undefined =
    etcdMembers.length === 0
      ? undefined
      : {
          clusterId: CLUSTER_ID,
          ...(members.some((_, i) => ['running', 'leaving'].includes(progressOf(i))) && { leader: idOf(0) }),
          members: etcdMembers,
        };
  return {
    at: Date.parse(AT) + 60_000,
    etcd,
    objects: [object as unknown as KubeObject, ...around, ...objects],
  };
}

export const volumesOf = ({ members }: GoCluster): readonly string[] => members.map(volumeClaimName);
