/** How tests break a running local cluster on purpose, and repair it again. Every process is addressed by its recorded id. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../tools/terminal.ts';
import { build } from './binaries.ts';
import { cgroupPath, killAll, processesIn, processesOfPod } from './cgroup.ts';
import { addNode, type LocalCluster } from './cluster.ts';
import { isAlive, waitFor } from './daemon.ts';
import { setPort } from './network.ts';
import { inNode, nodeName, startKubelet, VOLUMES } from './node.ts';
import { clusterCgroup, daemonGroup, nodeDir, writeState } from './state.ts';

/** Disconnects the node from the network: it keeps running and is unreachable. */
export const cutNetwork = async (cluster: LocalCluster, node: string): Promise<void> => {
  await setPort(cluster.state.switchPid, cluster.node(node).name, 'down');
};
export const healNetwork = async (cluster: LocalCluster, node: string): Promise<void> => {
  await setPort(cluster.state.switchPid, cluster.node(node).name, 'up');
};

/** Stops the kubelet alone: Pods keep running, and the node becomes NotReady. */
export async function stopKubelet(cluster: LocalCluster, node: string): Promise<void> {
  const { kubeletPid } = cluster.node(node);
  if (!processesIn(clusterCgroup(cluster.name)).includes(kubeletPid)) return; // stopped already
  process.kill(kubeletPid, 'SIGKILL');
  await waitFor(`the kubelet of ${node} ends`, async () => !isAlive(kubeletPid), { timeoutMs: 10_000 });
}

export async function startKubeletAgain(cluster: LocalCluster, node: string): Promise<void> {
  const { kubernetes } = await build(['kubernetes']);
  const kubeletPid = startKubelet(cluster.name, cluster.node(node), kubernetes);
  const nodes = cluster.state.nodes.map((each) => (each.name === node ? { ...each, kubeletPid } : each));
  writeState(cluster.name, { ...cluster.state, nodes });
}

/** Kills every container process on the node once, sandboxes included: a crash of all that ran there, which kubelet then restarts. */
export function killContainers(cluster: LocalCluster, node: string): void {
  for (const pid of processesIn(clusterCgroup(cluster.name), cluster.node(node).name))
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // it has ended with its parent
    }
}

/** The processes in the containers of one Pod, without its sandbox. */
export async function podProcesses(cluster: LocalCluster, namespace: string, pod: string): Promise<readonly number[]> {
  const uid = await cluster.kubectl(['-n', namespace, 'get', 'pod', pod, '-o', 'jsonpath={.metadata.uid}']);
  const inPod = cluster.state.nodes.flatMap((node) => processesOfPod(clusterCgroup(cluster.name), node.name, uid));
  return inPod.filter((pid) => programOf(pid) !== 'pause');
}

/** SIGSTOP freezes, SIGCONT resumes. */
export function signalAll(pids: readonly number[], signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
  for (const pid of pids)
    try {
      process.kill(pid, signal);
    } catch {
      // it has ended by itself
    }
}

/** Kills the processes in the containers of one Pod, as a crash would, and keeps its sandbox: kubelet restarts them. */
export async function crash(cluster: LocalCluster, namespace: string, pod: string): Promise<void> {
  signalAll(await podProcesses(cluster, namespace, pod), 'SIGKILL');
}

const programOf = (pid: number): string =>
  existsSync(`/proc/${pid}/comm`) ? readFileSync(`/proc/${pid}/comm`, 'utf8').trim() : '';

/** Drains the node through the eviction API, as an administrator does before maintenance. */
export const drain = (cluster: LocalCluster, node: string, timeoutSeconds = 60): Promise<string> =>
  cluster.kubectl([
    'drain',
    node,
    '--ignore-daemonsets',
    '--delete-emptydir-data',
    '--force',
    `--timeout=${timeoutSeconds}s`,
  ]);
export const uncordon = (cluster: LocalCluster, node: string): Promise<string> => cluster.kubectl(['uncordon', node]);

/** Destroys the node with its disk. The Node object stays: to Kubernetes, the node only becomes unreachable. */
export async function destroyNode(cluster: LocalCluster, name: string): Promise<void> {
  const node = cluster.node(name);
  await stopKubelet(cluster, name);
  await killAll(...daemonGroup(cluster.name, node.name));
  await killAll(clusterCgroup(cluster.name), node.name);
  rmSync(nodeDir(cluster.name, name), { recursive: true, force: true });
  writeState(cluster.name, { ...cluster.state, nodes: cluster.state.nodes.filter((each) => each.name !== name) });
}

/** Destroys the node and deletes its Node object: a machine that is known to be lost for good. */
export async function deleteNode(cluster: LocalCluster, name: string): Promise<void> {
  await destroyNode(cluster, name);
  await cluster.kubectl(['delete', 'node', name, '--ignore-not-found']);
}

/** Adds a new node (the fourth, or one in place of a deleted one) and waits until it is Ready. */
export async function addFreshNode(cluster: LocalCluster, index: number): Promise<string> {
  if (cluster.state.nodes.some((node) => node.index === index)) throw new Failure(`${nodeName(index)} exists already.`);
  const node = await addNode(cluster, index);
  await cluster.kubectl(['wait', '--for=create', '--timeout=60s', `node/${node.name}`]);
  await cluster.kubectl(['wait', '--for=condition=Ready', '--timeout=60s', `node/${node.name}`]);
  return node.name;
}

interface VolumePlace {
  readonly holderPid: number;
  readonly path: string;
}

/** The node that has a PVC's volume, and the volume's path there. */
async function volumeOf(cluster: LocalCluster, namespace: string, claim: string): Promise<VolumePlace> {
  const pv = await cluster.kubectl(['-n', namespace, 'get', 'pvc', claim, '-o', 'jsonpath={.spec.volumeName}']);
  for (const node of cluster.state.nodes) {
    const path = `${VOLUMES}/${pv}_${namespace}_${claim}`;
    if (pv && (await inNode(node.holderPid, ['test', '-d', path])) === 0) return { holderPid: node.holderPid, path };
  }
  throw new Failure(`PVC ${namespace}/${claim} has no volume on any node.`);
}

/** A PVC's volume as a folder of this machine. */
export async function volumeFolder(cluster: LocalCluster, namespace: string, claim: string): Promise<string> {
  const { holderPid, path } = await volumeOf(cluster, namespace, claim);
  return `/proc/${holderPid}/root${path}`;
}

/** The node that has a Pod's volume in memory, and the volume's path there. */
async function memoryOf(cluster: LocalCluster, namespace: string, pod: string): Promise<VolumePlace> {
  const fields = 'jsonpath={.spec.nodeName} {.metadata.uid}';
  const [node = '', uid] = (await cluster.kubectl(['-n', namespace, 'get', 'pod', pod, '-o', fields])).split(' ');
  const path = `/run/node/kubelet/pods/${uid}/volumes/kubernetes.io~empty-dir/data`;
  return { holderPid: cluster.node(node).holderPid, path };
}

const BALLAST = '.ballast';

/** Fills a volume to its last byte with a file of ours; `freeVolume` removes the file. */
export const fillVolume = async (cluster: LocalCluster, namespace: string, claim: string): Promise<void> =>
  fill(await volumeOf(cluster, namespace, claim));

/** The same for the volume that a Pod has in memory. */
export const fillMemory = async (cluster: LocalCluster, namespace: string, pod: string): Promise<void> =>
  fill(await memoryOf(cluster, namespace, pod));

async function fill({ holderPid, path }: VolumePlace): Promise<void> {
  const append = (block: string): string => `dd if=/dev/zero bs=${block} of="$0" oflag=append conv=notrunc`;
  // each ends with "no space left", as intended; the second fills what is left of the last large block
  await inNode(holderPid, ['sh', '-c', `${append('64k')}; ${append('1k')}`, `${path}/${BALLAST}`]);
}

export async function freeVolume(cluster: LocalCluster, namespace: string, claim: string): Promise<void> {
  const { holderPid, path } = await volumeOf(cluster, namespace, claim);
  await inNode(holderPid, ['rm', '-f', `${path}/${BALLAST}`]);
}

/** Removes everything from a volume while it is in use. */
export async function emptyVolume(cluster: LocalCluster, namespace: string, claim: string): Promise<void> {
  const { holderPid, path } = await volumeOf(cluster, namespace, claim);
  await inNode(holderPid, ['find', path, '-mindepth', '1', '-delete']);
}

/**
 * Overwrites the beginning of a member's database, where its two root pages are, and ends etcd. etcd is frozen meanwhile: a running
 * one writes new root pages over the damage, and may never read what is left of it.
 */
export async function corruptDatabase(cluster: LocalCluster, namespace: string, pod: string): Promise<void> {
  const { holderPid, path } = await volumeOf(cluster, namespace, `data-${pod}`);
  const etcd = await podProcesses(cluster, namespace, pod);
  signalAll(etcd, 'SIGSTOP');
  await inNode(holderPid, ['dd', 'if=/dev/urandom', `of=${path}/member/snap/db`, 'bs=4k', 'count=4', 'conv=notrunc']);
  signalAll(etcd, 'SIGKILL');
}

/** Delays every DNS response by up to `delayMs`, by freezing the servers and thawing them for a moment in turn. Call the result to end it. */
export function slowDns(cluster: LocalCluster, delayMs: number): () => Promise<void> {
  let slow = true;
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => {
    for (const pid of dnsServers(cluster)) process.kill(pid, name);
  };
  const loop = (async () => {
    while (slow) {
      signal('SIGSTOP');
      await sleep(delayMs);
      signal('SIGCONT');
      await sleep(20);
    }
  })();
  return async () => {
    slow = false;
    await loop;
  };
}

const dnsServers = (cluster: LocalCluster): readonly number[] =>
  cluster.state.nodes
    .filter((node) => existsSync(cgroupPath(clusterCgroup(cluster.name), node.name)))
    .flatMap((node) => processesIn(clusterCgroup(cluster.name), node.name))
    .filter((pid) => programOf(pid) === 'coredns');
