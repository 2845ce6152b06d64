/** What the local cluster runs in its own Pods: DNS, node-local volumes, an S3 server. Pure: objects in, objects out. */
import { BUSYBOX_IMAGE, COREDNS_IMAGE, PROVISIONER_IMAGE, S3_IMAGE } from './images.ts';
import { VOLUMES } from './node.ts';

type Manifest = Readonly<Record<string, unknown>>;

const meta = (name: string, namespace?: string): Manifest => ({ name, ...(namespace && { namespace }) });
const rule = (group: string, resources: readonly string[], verbs: readonly string[]): Manifest => ({
  apiGroups: [group],
  resources,
  verbs,
});
const READ = ['get', 'list', 'watch'];

function access(name: string, namespace: string, rules: readonly Manifest[]): readonly Manifest[] {
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: meta(name, namespace) },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: meta(name), rules },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: meta(name),
      roleRef,
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    },
  ];
}

/** Resolves only names of the cluster: without forwarding, tests never query another machine. A TTL of 1 s keeps tests quick. */
const COREFILE = `.:53 {
  errors
  ready
  kubernetes cluster.local in-addr.arpa {
    pods insecure
    ttl 1
  }
}
`;

/** One server per node, queried only by that node's Pods: a node that is cut off or dies takes no other node's DNS with it. */
export const dns = (clusterIP: string): readonly Manifest[] => [
  ...access('coredns', 'kube-system', [
    rule('', ['endpoints', 'services', 'pods', 'namespaces'], READ),
    rule('discovery.k8s.io', ['endpointslices'], READ),
  ]),
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta('coredns', 'kube-system'), data: { Corefile: COREFILE } },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta('kube-dns', 'kube-system'),
    spec: {
      clusterIP,
      internalTrafficPolicy: 'Local',
      selector: { app: 'coredns' },
      ports: ['UDP', 'TCP'].map((protocol) => ({ name: `dns-${protocol.toLowerCase()}`, port: 53, protocol })),
    },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: meta('coredns', 'kube-system'),
    spec: {
      selector: { matchLabels: { app: 'coredns' } },
      template: {
        metadata: { labels: { app: 'coredns' } },
        spec: {
          serviceAccountName: 'coredns',
          dnsPolicy: 'Default',
          tolerations: [{ operator: 'Exists' }],
          priorityClassName: 'system-node-critical',
          containers: [
            {
              name: 'coredns',
              image: COREDNS_IMAGE,
              args: ['-conf', '/etc/coredns/Corefile'],
              volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
              readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
            },
          ],
          volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
        },
      },
    },
  },
];

/** Every volume is a file system of the requested size: a full volume does not fill the machine. */
const SETUP = `#!/bin/sh
set -eu
# the kernel creates further loop devices on demand, and a container sees only those that existed when it started
i=8; while [ $i -lt 64 ]; do [ -e /dev/loop$i ] || mknod /dev/loop$i b 7 $i; i=$((i+1)); done
truncate -s "$VOL_SIZE_BYTES" "$VOL_DIR.img"
mke2fs -F -m 0 "$VOL_DIR.img" >/dev/null
mkdir -p "$VOL_DIR"
mount -t ext4 -o loop "$VOL_DIR.img" "$VOL_DIR"
rmdir "$VOL_DIR/lost+found"
chmod 0777 "$VOL_DIR"
`;
const TEARDOWN = `#!/bin/sh
set -eu
umount -d "$VOL_DIR" || true
rm -rf "$VOL_DIR" "$VOL_DIR.img"
`;
const HELPER_POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'helper' },
  spec: {
    priorityClassName: 'system-node-critical',
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'helper-pod', // the provisioner reads its log by this name
        image: BUSYBOX_IMAGE,
        imagePullPolicy: 'IfNotPresent',
        securityContext: { privileged: true },
        volumeMounts: [{ name: 'data', mountPath: VOLUMES, mountPropagation: 'Bidirectional' }],
      },
    ],
  },
};

export const storage = (): readonly Manifest[] => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: meta('local-path-storage') },
  ...access('local-path-provisioner', 'local-path-storage', [
    rule('', ['nodes', 'persistentvolumeclaims', 'configmaps', 'pods/log'], READ),
    rule('', ['pods'], [...READ, 'create', 'delete']),
    rule('', ['persistentvolumes'], [...READ, 'create', 'patch', 'update', 'delete']),
    rule('', ['events'], ['create', 'patch']),
    rule('storage.k8s.io', ['storageclasses'], READ),
  ]),
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: meta('local-path-config', 'local-path-storage'),
    data: {
      'config.json': JSON.stringify({ nodePathMap: [{ node: 'DEFAULT_PATH_FOR_NON_LISTED_NODES', paths: [VOLUMES] }] }),
      'helperPod.yaml': JSON.stringify(HELPER_POD),
      setup: SETUP,
      teardown: TEARDOWN,
    },
  },
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'local', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'rancher.io/local-path',
    volumeBindingMode: 'WaitForFirstConsumer',
    reclaimPolicy: 'Delete',
  },
  deployment('local-path-provisioner', 'local-path-storage', {
    serviceAccountName: 'local-path-provisioner',
    containers: [
      {
        name: 'provisioner',
        image: PROVISIONER_IMAGE,
        command: [
          '/usr/local/bin/local-path-provisioner',
          'start',
          '--config=/etc/config/config.json',
          '--service-account-name=local-path-provisioner',
        ],
        env: [
          { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
          { name: 'CONFIG_MOUNT_PATH', value: '/etc/config' },
        ],
        volumeMounts: [{ name: 'config', mountPath: '/etc/config' }],
      },
    ],
    volumes: [{ name: 'config', configMap: { name: 'local-path-config' } }],
  }),
];

export const S3 = {
  endpoint: 'http://s3.s3.svc:7070',
  bucket: 'backups',
  region: 'us-east-1',
  accessKeyId: 'local',
  secretAccessKey: 'local-secret',
} as const;

export const s3 = (): readonly Manifest[] => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: meta('s3') },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta('s3', 's3'),
    spec: { selector: { app: 's3' }, ports: [{ name: 's3', port: 7070 }] },
  },
  deployment('s3', 's3', {
    initContainers: [
      {
        name: 'bucket',
        image: BUSYBOX_IMAGE,
        command: ['mkdir', '-p', `/data/${S3.bucket}`],
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
    containers: [
      {
        name: 's3',
        image: S3_IMAGE,
        args: ['--port', ':7070', '--health', '/health', 'posix', '--sidecar', '/beside', '/data'],
        env: [
          { name: 'ROOT_ACCESS_KEY', value: S3.accessKeyId },
          { name: 'ROOT_SECRET_KEY', value: S3.secretAccessKey },
        ],
        readinessProbe: { httpGet: { path: '/health', port: 7070 }, periodSeconds: 1 },
        volumeMounts: [
          { name: 'data', mountPath: '/data' },
          { name: 'beside', mountPath: '/beside' },
        ],
      },
    ],
    volumes: ['data', 'beside'].map((name) => ({ name, emptyDir: {} })),
  }),
];

/** A Deployment of one Pod with short tolerations: tests kill nodes and wait until the Pod runs elsewhere. */
const deployment = (name: string, namespace: string, podSpec: Manifest): Manifest => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: meta(name, namespace),
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        tolerations: ['not-ready', 'unreachable'].map((state) => ({
          key: `node.kubernetes.io/${state}`,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 5,
        })),
        ...podSpec,
      },
    },
  },
});
