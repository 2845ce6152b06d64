/** The real Kubernetes on this machine: `up` brings it to a state where Pods, Services, DNS and volumes work; `down` leaves no trace of it. */
import { existsSync, readFileSync, readlinkSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { withUndo } from '../tools/interrupt.ts';
import { root } from '../tools/paths.ts';
import { run } from '../tools/process.ts';
import { Failure, step } from '../tools/terminal.ts';
import { dns, s3, storage } from './addons.ts';
import { build } from './binaries.ts';
import { cgroupExists, killAll, processesIn, removeCgroup } from './cgroup.ts';
import { savedCA, startControlPlane } from './control-plane.ts';
import { waitFor } from './daemon.ts';
import { installPackages, requireNodesHost } from './host.ts';
import { baseImages, type EtcdMinor, etcdImageArchive, loadImage, PAUSE_IMAGE, s3Image } from './images.ts';
import { withLock } from './lock.ts';
import { saveLogs } from './logs.ts';
import {
  controlPlaneIp,
  dnsIp,
  freeRange,
  makeSwitch,
  plugIn,
  routePods,
  routeServices,
  unplugHost,
} from './network.ts';
import { holdNamespaces, nodeName, startNode } from './node.ts';
import { createCA } from './pki.ts';
import {
  type Archive,
  CLUSTER_NAMES,
  type ClusterName,
  type ClusterState,
  cgroupOf,
  clusterCgroup,
  clusterDir,
  clusterId,
  hostLink,
  kubeconfigPath,
  logPath,
  type NodeState,
  readState,
  writeState,
} from './state.ts';

const NODES = [1, 2, 3];

export interface UpOptions {
  /** Also run the S3 server. */
  readonly s3?: boolean;
  /** The etcd images that every node should have. */
  readonly etcd?: readonly EtcdMinor[];
}

/** A running local cluster. */
export class LocalCluster {
  readonly name: ClusterName;
  readonly kubeconfig: string;
  constructor(name: ClusterName) {
    this.name = name;
    this.kubeconfig = kubeconfigPath(name);
  }

  get state(): ClusterState {
    const state = readState(this.name);
    if (!state) throw new Failure(`The ${this.name} cluster is not running: ./dev up starts one.`);
    return state;
  }

  node(name: string): NodeState {
    const node = this.state.nodes.find((candidate) => candidate.name === name);
    if (!node)
      throw new Failure(`There is no node ${name}; there are ${this.state.nodes.map((n) => n.name).join(', ')}.`);
    return node;
  }

  async kubectl(args: readonly string[], input?: string): Promise<string> {
    const { kubernetes } = await build(['kubernetes']);
    const options = { env: { KUBECONFIG: this.kubeconfig }, ...(input !== undefined && { input }) };
    return (await run(join(kubernetes, 'kubectl'), args, options)).stdout;
  }

  async helm(args: readonly string[]): Promise<string> {
    const { helm } = await build(['helm']);
    return (await run(join(helm, 'helm'), args, { env: { KUBECONFIG: this.kubeconfig } })).stdout;
  }

  async apply(manifests: readonly unknown[]): Promise<void> {
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests });
    await this.kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], list);
  }

  /** Loads images into every node, so that Pods can use them without a registry; images that are loaded already are skipped. */
  async load(images: readonly Archive[]): Promise<void> {
    const missing = images.filter((image) => !this.state.images.some((loaded) => loaded.digest === image.digest));
    await Promise.all(this.state.nodes.map((node) => loadInto(node, missing)));
    writeState(this.name, { ...this.state, images: [...this.state.images, ...missing] });
  }
}

const loadInto = async (node: NodeState, images: readonly Archive[]): Promise<void> => {
  for (const image of images) await loadImage(node, image.path);
};

/** The cluster of that name if it runs. Process ids count only while the kernel lists them in our cgroup. */
export async function running(name: ClusterName): Promise<LocalCluster | undefined> {
  const state = readState(name);
  if (!state?.complete || state.id !== clusterId(name)) return undefined;
  const alive = processesIn(clusterCgroup(name));
  const needed = [state.switchPid, state.controlPlanePid, ...state.controlPlane];
  return needed.every((pid) => alive.includes(pid)) ? new LocalCluster(name) : undefined;
}

/** Whether nothing of it is broken: a killed process of a node, an API server that hangs. */
async function isWhole(cluster: LocalCluster): Promise<boolean> {
  const alive = processesIn(clusterCgroup(cluster.name));
  const nodes = cluster.state.nodes.flatMap((node) => [
    node.holderPid,
    node.containerdPid,
    node.kubeletPid,
    node.proxyPid,
  ]);
  if (!nodes.every((pid) => alive.includes(pid))) return false;
  const answer = await cluster.kubectl(['get', '--raw', '/readyz', '--request-timeout=5s']).catch(() => '');
  return answer === 'ok';
}

/** Starts the cluster, or returns the running one. A broken cluster, or what a killed `up` left behind, is removed first. */
export async function up(name: ClusterName, options: UpOptions = {}): Promise<LocalCluster> {
  await requireNodesHost();
  return withLock(`${name} cluster`, async () => {
    await buildParts(options);
    await installPackages();
    const etcd = await Promise.all((options.etcd ?? []).map(etcdImageArchive));
    const present = await running(name);
    if (present && (await isWhole(present))) {
      await present.load(etcd);
      if (options.s3 && !present.state.s3) await step('start the S3 server', () => startS3(present));
      return present;
    }
    if (exists(name)) await step(`remove a broken ${name} cluster`, () => remove(name));
    requireSpace();
    return createOrUndo(name, [...(await baseImages()), ...etcd], options.s3 === true);
  });
}

/** A cluster that did not start, or whose start was interrupted, is removed again. */
async function createOrUndo(name: ClusterName, images: readonly Archive[], withS3: boolean): Promise<LocalCluster> {
  let complete = false;
  const undo = async (): Promise<void> => {
    if (!complete && process.env['DEV_KEEP'] !== '1') await remove(name);
  };
  return withUndo(undo, async () => {
    try {
      const cluster = await create(name, images, withS3);
      complete = true;
      return cluster;
    } catch (error) {
      const logs = await saveLogs(name);
      throw error instanceof Failure ? new Failure(`${error.message}\nAll logs are in ${logs}`) : error;
    }
  });
}

const CLUSTER_BYTES = 3 * 1024 ** 3;

/** Images and volumes of three nodes. */
function requireSpace(): void {
  const { bavail, bsize } = statfsSync(root);
  if (bavail * bsize < CLUSTER_BYTES)
    throw new Failure(
      `A local cluster takes up to 3 GiB of disk, and ${root} has ${((bavail * bsize) / 1024 ** 3).toFixed(1)} GiB left: free some space, then run this again.`,
    );
}

/** Everything at once, the longest first, so that the progress shows how much is still to come. */
const buildParts = ({ s3: withS3, etcd = [] }: UpOptions): Promise<unknown> => {
  const minors = new Set<EtcdMinor>(['3.6', ...etcd]); // 3.6 keeps Kubernetes' own state
  return build([
    'kubernetes',
    'coredns',
    'helm',
    'local-path-provisioner',
    'pause',
    ...[...minors].map((minor) => `etcd-${minor}` as const),
    ...(withS3 ? (['versitygw'] as const) : []),
  ]);
};

async function create(name: ClusterName, images: readonly Archive[], withS3: boolean): Promise<LocalCluster> {
  const { kubernetes, 'etcd-3.6': etcd } = await build(['kubernetes', 'etcd-3.6']);
  const cluster = new LocalCluster(name);
  await step('start the control plane', async (progress) => {
    progress('network');
    const state = await createNetwork(name);
    const ca = await createCA();
    progress('etcd, API server, controller manager, scheduler');
    const controlPlane = await startControlPlane({
      name,
      range: state.range,
      pid: state.controlPlanePid,
      ca,
      bin: { kubernetes, etcd },
    });
    writeState(name, { ...state, controlPlane });
  });
  await step(`start ${NODES.length} nodes and load ${images.length} images`, async (progress) => {
    for (const index of NODES) {
      progress(nodeName(index));
      await addNode(cluster, index);
    }
    progress('loading images');
    await cluster.load(images);
  });
  await step('wait for nodes, DNS and storage', () => startAddons(cluster));
  if (withS3) await step('start the S3 server', () => startS3(cluster));
  writeState(name, { ...cluster.state, complete: true });
  return cluster;
}

async function createNetwork(name: ClusterName): Promise<ClusterState> {
  const range = await freeRange(Number.parseInt(clusterId(name), 16));
  const switchPid = holdNamespaces(name, 'switch');
  const controlPlanePid = holdNamespaces(name, 'control-plane');
  const state: ClusterState = {
    id: clusterId(name),
    range,
    controlPlane: [],
    switchPid,
    controlPlanePid,
    images: [],
    nodes: [],
    complete: false,
    s3: false,
  };
  writeState(name, state);
  for (const pid of [switchPid, controlPlanePid]) await namespacesMade(name, pid);
  await makeSwitch(switchPid, hostLink(clusterId(name)), range);
  await plugIn(switchPid, controlPlanePid, 'control', controlPlaneIp(range));
  return state;
}

/** The holder starts in this machine's namespaces and leaves them a moment later. */
export const namespacesMade = (name: ClusterName, pid: number): Promise<void> =>
  waitFor('a network namespace is made', async () => netns(pid) !== netns(process.pid), {
    timeoutMs: 10_000,
    daemon: { pid, log: logPath(name, 'switch') },
  });

const netns = (pid: number): string => readlinkSync(`/proc/${pid}/ns/net`);

/** Starts a node and adds the routes to its Pods everywhere else. */
export async function addNode(cluster: LocalCluster, index: number): Promise<NodeState> {
  const { name } = cluster;
  const { range, switchPid, controlPlanePid, nodes } = cluster.state;
  const { kubernetes } = await build(['kubernetes']);
  const ca = await savedCA(name);
  const node = await startNode({
    cluster: name,
    range,
    index,
    switchPid,
    ca,
    kubernetes,
    pauseImage: PAUSE_IMAGE,
  });
  for (const other of nodes) {
    await routePods(other.holderPid, range, index);
    await routePods(node.holderPid, range, other.index);
  }
  await routePods(controlPlanePid, range, index);
  if (index === 1) await routeServices(controlPlanePid, range);
  await loadInto(node, cluster.state.images);
  const all = [...nodes, node].sort((a, b) => a.index - b.index);
  writeState(name, { ...cluster.state, nodes: all });
  return node;
}

async function startAddons(cluster: LocalCluster): Promise<void> {
  await cluster.apply([...dns(dnsIp(cluster.state.range)), ...storage()]);
  await cluster.kubectl(['wait', '--for=create', '--timeout=60s', ...NODES.map((i) => `node/${nodeName(i)}`)]);
  await cluster.kubectl(['wait', '--for=condition=Ready', '--timeout=90s', 'nodes', '--all']);
  await cluster.kubectl(['-n', 'kube-system', 'rollout', 'status', '--timeout=90s', 'daemonset/coredns']);
  const provisioner = [
    '-n',
    'local-path-storage',
    'rollout',
    'status',
    '--timeout=90s',
    'deployment/local-path-provisioner',
  ];
  await cluster.kubectl(provisioner);
}

async function startS3(cluster: LocalCluster): Promise<void> {
  await cluster.load([await s3Image()]);
  await cluster.apply(s3());
  await cluster.kubectl(['-n', 's3', 'rollout', 'status', '--timeout=90s', 'deployment/s3']);
  writeState(cluster.name, { ...cluster.state, s3: true });
}

const exists = (name: ClusterName): boolean => cgroupExists(clusterCgroup(name)) || existsSync(clusterDir(name));

/** Removes clusters: the named one, or every one of this checkout. Works from whatever state a crash or a reboot left. */
export async function down(name?: ClusterName): Promise<void> {
  for (const each of name ? [name] : CLUSTER_NAMES)
    if (exists(each))
      await withLock(`${each} cluster`, () => step(`take the ${each} cluster down`, () => remove(each)));
}

async function remove(name: ClusterName): Promise<void> {
  for (const id of new Set([clusterId(name), readState(name)?.id ?? clusterId(name)])) {
    await killAll(cgroupOf(id)); // namespaces, links, routes, mounts and rules end with the processes that held them
    await removeCgroup(cgroupOf(id));
    if (existsSync(`/sys/class/net/${hostLink(id)}`)) await unplugHost(hostLink(id)).catch(() => {}); // the kernel may have removed it already
  }
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  if (mounts.includes(` ${clusterDir(name)}/`))
    throw new Failure(`Something is still mounted under ${clusterDir(name)}: unmount it, then run ./dev down again.`);
  rmSync(clusterDir(name), { recursive: true, force: true });
}
