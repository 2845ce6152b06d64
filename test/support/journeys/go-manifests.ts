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

export const VERSION = ETCD_VERSIONS['3.6'];
export const STORAGE = { size: '256Mi', medium: '' };

export interface GoCluster {
  readonly name: string;
  readonly members: readonly string[];
  /** Adopted by the Go operator from another one: members keep their old addresses and data directories. */
  readonly adopted?: { readonly service: string; readonly dataDir: string };
  /** Names of the user's Secrets. Peers of an adopted cluster without one run with `--peer-auto-tls`. */
  readonly tls?: {
    readonly server?: string;
    readonly mutual?: boolean;
    readonly peer?: string;
    readonly autoPeers?: true;
  };
  readonly memory?: true;
}

const storageOf = ({ memory }: GoCluster) => (memory ? { ...STORAGE, medium: 'Memory' } : STORAGE);

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

/** The view of a member on the TLS of its cluster. */
const memberTls = ({ tls }: GoCluster): Manifest => ({
  ...(tls?.server && { clientServerSecretRef: { name: tls.server } }),
  ...(tls?.mutual && { clientMTLS: true }),
  ...(tls?.peer && { peerSecretRef: { name: tls.peer } }),
  ...(tls?.autoPeers && { peerAutoTLS: true }),
});

export const memberObject = (namespace: string, cluster: GoCluster, parts: MemberParts): Manifest => ({
  apiVersion: API_VERSION,
  kind: 'EtcdMember',
  metadata: {
    name: parts.member,
    namespace,
    labels: memberLabels(cluster.name, parts.member),
    finalizers: [MEMBER_FINALIZER],
    // etcd-migrate creates EtcdMembers without an owner, and the Go operator never adds one.
    ...(!cluster.adopted && { ownerReferences: parts.owner.references }),
    ...(cluster.adopted && {
      annotations: {
        [HEADLESS_SERVICE_ANNOTATION]: cluster.adopted.service,
        [DATA_SUBPATH_ANNOTATION]: cluster.adopted.dataDir,
      },
    }),
  },
  spec: {
    clusterName: cluster.name,
    version: VERSION,
    storage: storageOf(cluster),
    clusterToken: parts.token,
    initialCluster: parts.initialCluster,
    replicas: 1,
    ...(parts.isSeed && !cluster.adopted && { bootstrap: true }),
    ...(cluster.tls && { tls: memberTls(cluster) }),
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
const peerScheme = ({ tls }: GoCluster): string => (tls?.peer || tls?.autoPeers ? 'https' : 'http');
export const clientScheme = ({ tls }: GoCluster): string => (tls?.server ? 'https' : 'http');
const hostOf = (namespace: string, cluster: GoCluster, member: string): string =>
  `${member}.${serviceOf(cluster)}.${namespace}.svc`;
export const peerURL = (namespace: string, cluster: GoCluster, member: string): string =>
  `${peerScheme(cluster)}://${hostOf(namespace, cluster, member)}:2380`;

/** Where the volumes of a member are mounted. The StatefulSet of an adopted cluster has other names and folders. */
const foldersOf = ({ adopted }: GoCluster) =>
  adopted
    ? {
        data: '/var/run/etcd',
        client: { volume: 'server-certificate', path: '/etc/etcd/pki/server/cert' },
        peer: { volume: 'peer-certificate', path: '/etc/etcd/pki/peer/cert' },
      }
    : {
        data: '/var/lib/etcd',
        client: { volume: 'tls-client', path: '/etc/etcd/tls/client' },
        peer: { volume: 'tls-peer', path: '/etc/etcd/tls/peer' },
      };

function tlsFlags(cluster: GoCluster): readonly string[] {
  const { server, mutual, peer, autoPeers } = cluster.tls ?? {};
  const { client: clientAt, peer: peerAt } = foldersOf(cluster);
  return [
    ...(server ? [`--cert-file=${clientAt.path}/tls.crt`, `--key-file=${clientAt.path}/tls.key`] : []),
    ...(server && mutual ? ['--client-cert-auth=true', `--trusted-ca-file=${clientAt.path}/ca.crt`] : []),
    ...(peer
      ? [
          `--peer-cert-file=${peerAt.path}/tls.crt`,
          `--peer-key-file=${peerAt.path}/tls.key`,
          `--peer-trusted-ca-file=${peerAt.path}/ca.crt`,
          '--peer-client-cert-auth=true',
        ]
      : []),
    ...(autoPeers ? ['--peer-auto-tls'] : []),
  ];
}

function flags(namespace: string, cluster: GoCluster, parts: MemberParts): readonly string[] {
  const host = hostOf(namespace, cluster, parts.member);
  const [client, peer] = [clientScheme(cluster), peerScheme(cluster)];
  return [
    `--name=${parts.member}`,
    `--data-dir=${[foldersOf(cluster).data, ...(cluster.adopted ? [cluster.adopted.dataDir] : [])].join('/')}`,
    `--listen-peer-urls=${peer}://0.0.0.0:2380`,
    `--listen-client-urls=${client}://0.0.0.0:2379`,
    `--advertise-client-urls=${client}://${host}:2379`,
    `--initial-advertise-peer-urls=${peer}://${host}:2380`,
    `--initial-cluster=${parts.initialCluster}`,
    `--initial-cluster-token=${parts.token}`,
    `--initial-cluster-state=${parts.isSeed ? 'new' : 'existing'}`,
    '--listen-metrics-urls=http://0.0.0.0:2381',
    ...tlsFlags(cluster),
  ];
}

/** Of the Go operator, or of the StatefulSet that it has adopted: that one has its flags in `args`. */
export function memberPod(namespace: string, cluster: GoCluster, parts: MemberParts): Manifest {
  const { data, client, peer } = foldersOf(cluster);
  const words = flags(namespace, cluster, parts);
  const secrets = [
    ...(cluster.tls?.server ? [{ ...client, secretName: cluster.tls.server }] : []),
    ...(cluster.tls?.peer ? [{ ...peer, secretName: cluster.tls.peer }] : []),
  ];
  const volume = cluster.memory
    ? { emptyDir: { medium: 'Memory', sizeLimit: STORAGE.size } }
    : { persistentVolumeClaim: { claimName: `data-${parts.member}` } };
  return {
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
          ...(cluster.adopted ? { command: ['etcd'], args: words } : { command: ['etcd', ...words] }),
          ports: Object.entries({ client: 2379, peer: 2380, metrics: 2381 }).map(([name, containerPort]) => ({
            name,
            containerPort,
          })),
          resources: { requests: { cpu: '100m', memory: '128Mi' } },
          livenessProbe: { tcpSocket: { port: 2380 }, initialDelaySeconds: 15, periodSeconds: 10 },
          readinessProbe: { httpGet: { path: '/health', port: 2381 }, initialDelaySeconds: 5, periodSeconds: 5 },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: [
            { name: 'data', mountPath: data },
            ...secrets.map((each) => ({ name: each.volume, mountPath: each.path, readOnly: true })),
          ],
        },
      ],
      volumes: [
        { name: 'data', ...volume },
        ...secrets.map((each) => ({ name: each.volume, secret: { secretName: each.secretName } })),
      ],
    },
  };
}

const condition = (type: string, status: string, reason: string, message: string): Manifest => ({
  type,
  status,
  reason,
  message,
  observedGeneration: 1,
  lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
});

export const memberStatus = (cluster: GoCluster, member: string, memberID: string, podUID: string): Manifest => ({
  memberID,
  podName: member,
  podUID,
  ...(!cluster.memory && { pvcName: `data-${member}` }),
  isVoter: true,
  replicas: 1,
  selector: memberSelector(cluster.name, member),
  version: VERSION,
  conditions: [
    condition('Ready', 'True', 'PodReady', 'pod is ready'),
    condition('VersionDrifted', 'False', 'VersionMatched', 'running version matches'),
  ],
});

export const clusterStatus = (cluster: GoCluster, token: string, clusterID: string): Manifest => ({
  clusterID,
  clusterToken: token,
  readyMembers: cluster.members.length,
  selector: clusterSelector(cluster.name),
  observed: { replicas: cluster.members.length, version: VERSION, storage: storageOf(cluster) },
  conditions: [
    condition('Available', 'True', 'QuorumHealthy', 'All members are ready'),
    condition('Progressing', 'False', 'Reconciled', 'reconciled'),
    condition('Degraded', 'False', 'QuorumHealthy', 'All members are ready'),
  ],
});
