/**
 * One node of a local cluster: containerd, kubelet and kube-proxy in their own network and mount namespace.
 * Inside, /run, /var/log and the node's disk, which is at /run/node, are private: nodes share no hostPath, socket or log.
 * When the node's processes end, its mounts end with the namespace.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../tools/process.ts';
import { createCgroup } from './cgroup.ts';
import { apiServerUrl, proxyKubeconfig } from './control-plane.ts';
import { enter, startDaemon, waitFor } from './daemon.ts';
import { dnsIp, nodeIp, plugIn, podCidr, type Range, routePods } from './network.ts';
import { type CertificateAuthority, kubeconfig } from './pki.ts';
import { type ClusterName, clusterCgroup, daemonGroup, logPath, type NodeState, nodeDir } from './state.ts';

export interface NodeSpec {
  readonly cluster: ClusterName;
  readonly range: Range;
  readonly index: number;
  readonly switchPid: number;
  readonly ca: CertificateAuthority;
  /** Folder of the built Kubernetes programs. */
  readonly kubernetes: string;
  readonly pauseImage: string;
}

export const nodeName = (index: number): string => `node-${index}`;
export const CONTAINERD_SOCKET = '/run/containerd.sock';
/** Where node-local volumes are, as seen inside the node. */
export const VOLUMES = '/run/node/volumes';
/** The node's disk, as seen inside the node. */
const DISK = '/run/node';
/** Exists as soon as the disk and everything else is mounted. */
const MADE = '/run/made';

/** What kubelet sets for the whole machine when it differs. The node gets its own files with these values instead. */
const KERNEL_SETTINGS = {
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'kernel/keys/root_maxkeys': 1000000,
  'kernel/keys/root_maxbytes': 25000000,
};

const MAKE_DISK = [
  'mount --make-rshared /', // so that the node sees a volume that a helper Pod mounts
  'mount -t tmpfs tmpfs /run',
  `mkdir -p /run/netns /run/containerd ${DISK}`,
  `mount --bind "$1" ${DISK}`,
  `mount --bind ${DISK}/log /var/log`,
  ...Object.keys(KERNEL_SETTINGS).map((name) => `mount --bind ${DISK}/sys/${name} /proc/sys/${name}`),
  `touch ${MADE}`,
  'exec sleep infinity',
].join(' && ');

/** A process that does nothing but keep namespaces open. */
export function holdNamespaces(cluster: ClusterName, what: string, disk?: string): number {
  createCgroup(...daemonGroup(cluster, what));
  const flags = ['--net', '--mount', '--propagation', 'private'];
  const command = disk ? ['sh', '-c', MAKE_DISK, 'sh', disk] : ['sleep', 'infinity'];
  return startDaemon({
    name: what,
    command: ['unshare', ...flags, ...command],
    cgroup: daemonGroup(cluster, what),
    log: logPath(cluster, what),
  });
}

export async function startNode(spec: NodeSpec): Promise<NodeState> {
  const { cluster, index, range } = spec;
  const name = nodeName(index);
  const disk = nodeDir(cluster, name);
  for (const folder of [
    'log/containers',
    'log/pods',
    'kubelet',
    'containerd',
    'cni/net.d',
    'cni/data',
    'volumes',
    'etc',
  ])
    mkdirSync(join(disk, folder), { recursive: true });
  for (const [setting, value] of Object.entries(KERNEL_SETTINGS)) {
    mkdirSync(dirname(join(disk, 'sys', setting)), { recursive: true });
    writeFileSync(join(disk, 'sys', setting), `${value}\n`);
  }
  createCgroup(clusterCgroup(cluster), name);
  const holderPid = holdNamespaces(cluster, name, disk);
  await waitFor(`${name}'s disk is mounted`, async () => (await inNode(holderPid, ['test', '-e', MADE])) === 0, {
    timeoutMs: 10_000,
    daemon: { pid: holderPid, log: logPath(cluster, name) },
  });
  await plugIn(spec.switchPid, holderPid, name, nodeIp(range, index));
  await routePods(undefined, range, index);
  await writeConfig(spec, disk);
  const containerdPid = await startContainerd(cluster, name, holderPid);
  const node = { name, index, ip: nodeIp(range, index), holderPid, containerdPid };
  return { ...node, kubeletPid: startKubelet(cluster, node, spec.kubernetes), proxyPid: startProxy(spec, node) };
}

export async function inNode(holderPid: number, command: readonly string[]): Promise<number> {
  const [enterCommand = '', ...args] = enter(holderPid);
  return (await run(enterCommand, [...args, ...command], { allowFailure: true })).code;
}

async function startContainerd(cluster: ClusterName, name: string, holderPid: number): Promise<number> {
  const log = logPath(cluster, `${name}-containerd`);
  const pid = startDaemon({
    name: 'containerd',
    command: ['containerd', '--config', '/run/node/etc/containerd.toml'],
    cgroup: daemonGroup(cluster, name),
    log,
    inNamespacesOf: holderPid,
  });
  await waitFor(
    `${name}'s containerd answers`,
    async () => (await inNode(holderPid, ['ctr', '--address', CONTAINERD_SOCKET, 'version'])) === 0,
    { timeoutMs: 30_000, daemon: { pid, log } },
  );
  return pid;
}

export function startKubelet(
  cluster: ClusterName,
  node: Pick<NodeState, 'name' | 'ip' | 'holderPid'>,
  kubernetes: string,
): number {
  return startDaemon({
    name: 'kubelet',
    command: [
      join(kubernetes, 'kubelet'),
      '--config=/run/node/etc/kubelet.json',
      '--kubeconfig=/run/node/etc/kubelet.kubeconfig',
      '--root-dir=/run/node/kubelet',
      '--cert-dir=/run/node/kubelet/pki',
      `--hostname-override=${node.name}`,
      `--node-ip=${node.ip}`,
    ],
    cgroup: daemonGroup(cluster, node.name),
    log: logPath(cluster, `${node.name}-kubelet`),
    inNamespacesOf: node.holderPid,
  });
}

function startProxy(spec: NodeSpec, node: Pick<NodeState, 'name' | 'holderPid'>): number {
  return startDaemon({
    name: 'kube-proxy',
    command: [
      join(spec.kubernetes, 'kube-proxy'),
      '--config=/run/node/etc/kube-proxy.json',
      `--hostname-override=${node.name}`,
    ],
    cgroup: daemonGroup(spec.cluster, node.name),
    log: logPath(spec.cluster, `${node.name}-kube-proxy`),
    inNamespacesOf: node.holderPid,
  });
}

async function writeConfig(spec: NodeSpec, disk: string): Promise<void> {
  const { ca, cluster, index, range } = spec;
  const name = nodeName(index);
  const write = (path: string, content: string): void => writeFileSync(join(disk, path), content, { mode: 0o600 });
  const identity = await ca.issue({ user: `system:node:${name}`, group: 'system:nodes' }, [name, nodeIp(range, index)]);
  write('etc/ca.crt', ca.cert);
  write('etc/kubelet.crt', identity.cert);
  write('etc/kubelet.key', identity.key);
  write('etc/kubelet.kubeconfig', kubeconfig(apiServerUrl(range), ca.cert, identity));
  write('etc/resolv.conf', ''); // Pods with dnsPolicy Default have no resolver: nothing here leaves the machine
  write('etc/containerd.toml', containerdConfig(spec.pauseImage));
  write('etc/kubelet.json', JSON.stringify(kubeletConfig(cluster, range, index)));
  write('etc/kube-proxy.json', JSON.stringify(proxyConfig(cluster)));
  write('cni/net.d/10-pods.conflist', JSON.stringify(cniConfig(range, index)));
}

const containerdConfig = (pauseImage: string): string => `version = 2
root = "/run/node/containerd"
state = "/run/containerd-state"
oom_score = 0
[grpc]
  address = "${CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/run/node/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`;

const kubeletConfig = (cluster: ClusterName, range: Range, index: number): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address: nodeIp(range, index),
  authentication: {
    x509: { clientCAFile: '/run/node/etc/ca.crt' },
    webhook: { enabled: true },
    anonymous: { enabled: false },
  },
  authorization: { mode: 'Webhook' },
  tlsCertFile: '/run/node/etc/kubelet.crt',
  tlsPrivateKeyFile: '/run/node/etc/kubelet.key',
  containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
  clusterDNS: [dnsIp(range)],
  clusterDomain: 'cluster.local',
  resolvConf: '/run/node/etc/resolv.conf',
  volumePluginDir: '/run/node/kubelet/plugins-exec',
  podLogsDir: '/var/log/pods',
  cgroupDriver: 'cgroupfs',
  cgroupRoot: `/${clusterCgroup(cluster)}/${nodeName(index)}`,
  enforceNodeAllocatable: [],
  failCgroupV1: false,
  failSwapOn: false,
  featureGates: { KubeletInUserNamespace: true }, // tolerate kernel settings that this machine may not let us change
  nodeStatusUpdateFrequency: '4s',
  evictionHard: { 'memory.available': '0%', 'nodefs.available': '0%', 'imagefs.available': '0%' }, // one disk for all nodes: do not evict for it
  imageGCHighThresholdPercent: 100,
  maxPods: 110,
});

const BRIDGE = 'cni0';

const proxyConfig = (cluster: ClusterName): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
  clientConnection: { kubeconfig: proxyKubeconfig(cluster) },
  // Traffic that does not come from a Pod of this node gets the node's address: otherwise responses would take another route.
  detectLocalMode: 'BridgeInterface',
  detectLocal: { bridgeInterface: BRIDGE },
  conntrack: { maxPerCore: 0 },
  metricsBindAddress: '127.0.0.1:10249',
});

const cniConfig = (range: Range, index: number): object => ({
  cniVersion: '0.4.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: BRIDGE,
      isGateway: true,
      hairpinMode: true,
      ipam: {
        type: 'host-local',
        dataDir: '/run/node/cni/data',
        ranges: [[{ subnet: podCidr(range, index) }]],
        routes: [{ dst: '0.0.0.0/0' }],
      },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
});
