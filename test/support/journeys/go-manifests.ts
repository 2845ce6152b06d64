/** The objects of a cluster as the Go operator of the same API writes them. Pure: facts in, objects out. */
import { ETCD_VERSIONS } from '../../../local/images.ts';
import {
  API_VERSION,
  clusterLabels,
  clusterSelector,
  DATA_SUBPATH_ANNOTATION,
  HEADLESS_SERVICE_ANNOTATION,
  MEMBER_FINALIZER,
  memberLabels,
  memberSelector,
  ROLE_LABEL,
} from '../../../src/api/names.ts';

const VERSION = ETCD_VERSIONS['3.6'];
export const STORAGE = { size: '256Mi', medium: '' };

export interface GoCluster {
  readonly name: string;
  readonly members: readonly string[];
  /** Adopted by the Go operator from another one: members keep their old addresses and data directories. */
  readonly adopted?: { readonly service: string; readonly dataDir: string };
}

export type Manifest = Readonly<Record<string, unknown>>;

export interface Owner {
  readonly uid: string;
  readonly references: readonly Manifest[];
}

/** The client Service of the Go operator also selects learners. */
export function services(namespace: string, { name, adopted }: GoCluster, owner: Owner): readonly Manifest[] {
  const selector = { 'etcd-operator.cozystack.io/cluster': name };
  const [client, peer] = [
    { name: 'client', port: 2379 },
    { name: 'peer', port: 2380 },
  ];
  const service = (serviceName: string, spec: Manifest): Manifest => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: serviceName,
      namespace,
      labels: clusterLabels(name),
      ownerReferences: owner.references,
    },
    spec: { selector, ...spec },
  });
  const headless = { clusterIP: 'None', publishNotReadyAddresses: true, ports: [client, peer] };
  return [
    service(name, headless),
    service(`${name}-client`, { ports: [client] }),
    ...(adopted ? [service(adopted.service, headless)] : []), // its owners are the adopted members, once they exist
  ];
}

export const budget = (namespace: string, { name, members }: GoCluster, owner: Owner): Manifest => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name, namespace, labels: clusterLabels(name), ownerReferences: owner.references },
  spec: {
    minAvailable: Math.floor(members.length / 2) + 1,
    selector: { matchLabels: { 'etcd-operator.cozystack.io/cluster': name, [ROLE_LABEL]: 'voter' } },
  },
});

export interface MemberParts {
  readonly member: string;
  readonly owner: Owner;
  readonly initialCluster: string;
  readonly token: string;
  readonly isSeed: boolean;
}

export const memberObject = (namespace: string, { name, adopted }: GoCluster, parts: MemberParts): Manifest => ({
  apiVersion: API_VERSION,
  kind: 'EtcdMember',
  metadata: {
    name: parts.member,
    namespace,
    labels: memberLabels(name, parts.member),
    finalizers: [MEMBER_FINALIZER],
    // etcd-migrate creates EtcdMembers without an owner, and the Go operator never adds one.
    ...(!adopted && { ownerReferences: parts.owner.references }),
    ...(adopted && {
      annotations: { [HEADLESS_SERVICE_ANNOTATION]: adopted.service, [DATA_SUBPATH_ANNOTATION]: adopted.dataDir },
    }),
  },
  spec: {
    clusterName: name,
    version: VERSION,
    storage: STORAGE,
    clusterToken: parts.token,
    initialCluster: parts.initialCluster,
    replicas: 1,
    ...(parts.isSeed && !adopted && { bootstrap: true }),
  },
});

export const claim = (namespace: string, { name }: GoCluster, member: string, owner: Owner): Manifest => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    name: `data-${member}`,
    namespace,
    labels: memberLabels(name, member),
    ownerReferences: owner.references,
  },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: STORAGE.size } } },
});

const serviceOf = ({ name, adopted }: GoCluster): string => adopted?.service ?? name;
export const hostOf = (namespace: string, cluster: GoCluster, member: string): string =>
  `http://${member}.${serviceOf(cluster)}.${namespace}.svc`;

function command(namespace: string, cluster: GoCluster, parts: MemberParts): readonly string[] {
  const host = hostOf(namespace, cluster, parts.member);
  return [
    'etcd',
    `--name=${parts.member}`,
    `--data-dir=${['/var/lib/etcd', ...(cluster.adopted ? [cluster.adopted.dataDir] : [])].join('/')}`,
    '--listen-peer-urls=http://0.0.0.0:2380',
    '--listen-client-urls=http://0.0.0.0:2379',
    `--advertise-client-urls=${host}:2379`,
    `--initial-advertise-peer-urls=${host}:2380`,
    `--initial-cluster=${parts.initialCluster}`,
    `--initial-cluster-token=${parts.token}`,
    `--initial-cluster-state=${parts.isSeed ? 'new' : 'existing'}`,
    '--listen-metrics-urls=http://0.0.0.0:2381',
  ];
}

export const memberPod = (namespace: string, cluster: GoCluster, parts: MemberParts): Manifest => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: parts.member,
    namespace,
    labels: { ...memberLabels(cluster.name, parts.member), [ROLE_LABEL]: 'voter' },
    ownerReferences: parts.owner.references,
  },
  spec: {
    hostname: parts.member,
    subdomain: serviceOf(cluster),
    automountServiceAccountToken: false,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      fsGroup: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'etcd',
        image: `quay.io/coreos/etcd:v${VERSION}`,
        command: command(namespace, cluster, parts),
        ports: Object.entries({ client: 2379, peer: 2380, metrics: 2381 }).map(([name, containerPort]) => ({
          name,
          containerPort,
        })),
        resources: { requests: { cpu: '100m', memory: '128Mi' } },
        livenessProbe: { tcpSocket: { port: 2380 }, initialDelaySeconds: 15, periodSeconds: 10 },
        readinessProbe: { httpGet: { path: '/health', port: 2381 }, initialDelaySeconds: 5, periodSeconds: 5 },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        volumeMounts: [{ name: 'data', mountPath: '/var/lib/etcd' }],
      },
    ],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `data-${parts.member}` } }],
  },
});

const condition = (type: string, status: string, reason: string, message: string): Manifest => ({
  type,
  status,
  reason,
  message,
  observedGeneration: 1,
  lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
});

export const memberStatus = (cluster: string, member: string, memberID: string, podUID: string): Manifest => ({
  memberID,
  podName: member,
  podUID,
  pvcName: `data-${member}`,
  isVoter: true,
  replicas: 1,
  selector: memberSelector(cluster, member),
  version: VERSION,
  conditions: [
    condition('Ready', 'True', 'PodReady', 'pod is ready'),
    condition('VersionDrifted', 'False', 'VersionMatched', 'running version matches'),
  ],
});

export const clusterStatus = ({ name, members }: GoCluster, token: string, clusterID: string): Manifest => ({
  clusterID,
  clusterToken: token,
  readyMembers: members.length,
  selector: clusterSelector(name),
  observed: { replicas: members.length, version: VERSION, storage: STORAGE },
  conditions: [
    condition('Available', 'True', 'QuorumHealthy', 'All members are ready'),
    condition('Progressing', 'False', 'Reconciled', 'reconciled'),
    condition('Degraded', 'False', 'QuorumHealthy', 'All members are ready'),
  ],
});
