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
const withMetadata = (manifest: Manifest, more: Manifest): KubeObject => ({
  ...manifest,
  metadata: { ...metadataOf(manifest), creationTimestamp: AT, ...more },
});
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

/** What the objects of one state have in common. */
interface Left {
  readonly state: GoState;
  readonly owner: Owner;
  readonly token: string;
  readonly initialCluster: string;
}

const progressOf = ({ progress }: GoState, index: number): Progress => progress?.[index] ?? 'running';
const formOf = ({ cluster, native }: GoState, member: string): GoCluster => {
  if (!native?.includes(member)) return cluster;
  const { adopted: _, ...form } = cluster;
  return form;
};
const urlOf = (state: GoState, member: string): string => peerURL(NAMESPACE, formOf(state, member), member);

function leftOf(state: GoState): Left {
  const { name, members, adopted } = state.cluster;
  const listed = members.filter((_, i) => progressOf(state, i) !== 'created');
  return {
    state,
    owner: ownerOf('EtcdCluster', name, UID),
    token: adopted ? `${name}-${NAMESPACE}` : clusterToken(NAMESPACE, name, UID),
    initialCluster: listed
      .map((each) => `${each}=${urlOf(state, each)}`)
      .sort()
      .join(','),
  };
}

function clusterLeft({ state, token }: Left): KubeObject {
  const { cluster, spec = {}, status = {}, template = {}, undiscovered } = state;
  const { name, members } = cluster;
  const storage = cluster.memory ? { ...STORAGE, medium: 'Memory' } : STORAGE;
  const { clusterID, ...known } = clusterStatus(cluster, token, CLUSTER_ID);
  const object = {
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
    status: {
      ...known,
      ...(!undiscovered && { clusterID }),
      observed: { ...(known['observed'] as object), ...template },
      ...status,
    },
  };
  return object;
}

/** The EtcdMember, its PVC and its Pod, as far as they exist. */
function memberLeft({ state, owner, token, initialCluster }: Left, member: string, i: number): readonly KubeObject[] {
  const { cluster, template = {}, undiscovered } = state;
  const progress = progressOf(state, i);
  const form = formOf(state, member);
  const uid = `uid-${member}`;
  const isPending = progress === 'created' || progress === 'added';
  const isSeed = i === 0;
  const parts = { member, owner, token, initialCluster: isPending ? '' : initialCluster, isSeed };
  const own = ownerOf('EtcdMember', member, uid);
  const isVoter = !isPending && progress !== 'learner';
  const manifest = memberObject(NAMESPACE, form, parts);
  const etcdMember = {
    ...withMetadata(manifest, { uid, generation: 1, ...(progress === 'leaving' && { deletionTimestamp: AT }) }),
    spec: { ...(manifest['spec'] as object), ...template, ...(progress === 'dormant' && { dormant: true }) },
    status: {
      ...(isPending ? {} : memberStatus(form, member, idOf(i), `pod-${member}`)),
      ...(isSeed && { isVoter: true }),
      ...(!isVoter && !isSeed && { isVoter: false }),
      ...(undiscovered && { memberID: undefined }),
    },
  };
  if (isPending) return [etcdMember];
  const finalizers = ['kubernetes.io/pvc-protection'];
  const volume = withMetadata(claim(NAMESPACE, form, member, own), { uid: `pvc-${member}`, finalizers });
  const volumes = cluster.memory ? [] : [{ ...volume, status: { phase: 'Bound' } }];
  if (progress === 'dormant') return [etcdMember, ...volumes];
  const pod = memberPod(NAMESPACE, form, { ...parts, owner: own });
  const labels = { ...memberLabels(cluster.name, member), ...(isVoter && { [ROLE_LABEL]: 'voter' }) };
  const running = {
    ...withMetadata(pod, { uid: `pod-${member}`, labels }),
    spec: { ...(pod['spec'] as object), nodeName: 'node', restartPolicy: 'Always' },
    status: progress === 'ended' ? endedPod : runningPod(i, isVoter),
  };
  return [etcdMember, ...volumes, running];
}

function etcdLeft({ state }: Left): RecordedEtcd | undefined {
  const members = state.cluster.members.flatMap((member, i): RecordedEtcd['members'] => {
    const progress = progressOf(state, i);
    if (progress === 'created') return [];
    const isNew = progress === 'added';
    const isLearner = isNew || progress === 'learner';
    return [{ id: idOf(i), name: isNew ? '' : member, peerURLs: [urlOf(state, member)], isLearner }];
  });
  if (members.length === 0) return undefined;
  const leads = state.cluster.members.some((_, i) => ['running', 'leaving'].includes(progressOf(state, i)));
  return { clusterId: CLUSTER_ID, ...(leads && { leader: idOf(0) }), members };
}

export function leftByGo(state: GoState): Recorded {
  const { cluster, undiscovered } = state;
  const left = leftOf(state);
  const around = [
    ...services(NAMESPACE, cluster, left.owner),
    ...(undiscovered ? [] : [budget(NAMESPACE, cluster, left.owner)]),
  ].map((each) => withMetadata(each, { uid: `uid-${String(each['kind'])}-${String(metadataOf(each)['name'])}` }));
  const members = cluster.members.flatMap((member, i) => memberLeft(left, member, i));
  return { at: Date.parse(AT) + 60_000, etcd: etcdLeft(left), objects: [clusterLeft(left), ...around, ...members] };
}

export const volumesOf = ({ members }: GoCluster): readonly string[] => members.map(volumeClaimName);
