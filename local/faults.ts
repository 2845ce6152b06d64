/** How tests break a running local cluster on purpose, and mend it again. Everything is aimed by recorded process ids. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../tools/terminal.ts';
import { build } from './binaries.ts';
import { cgroupPath, killAll, processesIn } from './cgroup.ts';
import { addNode, type LocalCluster } from './cluster.ts';
import { isAlive, waitFor } from './daemon.ts';
import { setPort } from './network.ts';
import { inNode, nodeName, startKubelet, VOLUMES } from './node.ts';
import { clusterCgroup, daemonGroup, nodeDir, writeState } from './state.ts';

/** Pulls the node's cable: it keeps running, and nobody reaches it. */
export const cutNetwork = async (cluster: LocalCluster, node: string): Promise<void> => {
  await setPort(cluster.state.switchPid, cluster.node(node).name, 'down');
};
export const healNetwork = async (cluster: LocalCluster, node: string): Promise<void> => {
  await setPort(cluster.state.switchPid, cluster.node(node).name, 'up');
};

/** Stops the kubelet alone: Pods go on, and the node becomes NotReady. */
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
      // it ended with its parent
    }
}

/** Empties the node through the eviction API, as an administrator does before maintenance. */
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

/** Destroys the node with its disk, and removes its Node object: a machine that is gone for good. */
export async function deleteNode(cluster: LocalCluster, name: string): Promise<void> {
  const node = cluster.node(name);
  await stopKubelet(cluster, name);
  await killAll(...daemonGroup(cluster.name, node.name));
  await killAll(clusterCgroup(cluster.name), node.name);
  rmSync(nodeDir(cluster.name, name), { recursive: true, force: true });
  writeState(cluster.name, { ...cluster.state, nodes: cluster.state.nodes.filter((each) => each.name !== name) });
  await cluster.kubectl(['delete', 'node', name, '--ignore-not-found']);
}

/** Adds a fresh node (the fourth, or one in place of a deleted one) and waits until it is Ready. */
export async function addFreshNode(cluster: LocalCluster, index: number): Promise<string> {
  if (cluster.state.nodes.some((node) => node.index === index)) throw new Failure(`${nodeName(index)} exists already.`);
  const node = await addNode(cluster, index);
  await cluster.kubectl(['wait', '--for=create', '--timeout=60s', `node/${node.name}`]);
  await cluster.kubectl(['wait', '--for=condition=Ready', '--timeout=60s', `node/${node.name}`]);
  return node.name;
}

/** The node that has a claim's volume, and the volume's path there. */
async function volumeOf(
  cluster: LocalCluster,
  namespace: string,
  claim: string,
): Promise<{ readonly holderPid: number; readonly path: string }> {
  const pv = await cluster.kubectl(['-n', namespace, 'get', 'pvc', claim, '-o', 'jsonpath={.spec.volumeName}']);
  for (const node of cluster.state.nodes) {
    const path = `${VOLUMES}/${pv}_${namespace}_${claim}`;
    if (pv && (await inNode(node.holderPid, ['test', '-d', path])) === 0) return { holderPid: node.holderPid, path };
  }
  throw new Failure(`Claim ${namespace}/${claim} has no volume on any node.`);
}

const BALLAST = '.ballast';

/** Fills a volume to its last byte with a file of ours; `freeVolume` takes the file away. */
export async function fillVolume(cluster: LocalCluster, namespace: string, claim: string): Promise<void> {
  const { holderPid, path } = await volumeOf(cluster, namespace, claim);
  const append = (block: string): string => `dd if=/dev/zero bs=${block} of="$0" oflag=append conv=notrunc`;
  // each ends with "no space left", which is the point; the second fills what is left of the last large block
  await inNode(holderPid, ['sh', '-c', `${append('64k')}; ${append('1k')}`, `${path}/${BALLAST}`]);
}

export async function freeVolume(cluster: LocalCluster, namespace: string, claim: string): Promise<void> {
  const { holderPid, path } = await volumeOf(cluster, namespace, claim);
  await inNode(holderPid, ['rm', '-f', `${path}/${BALLAST}`]);
}

/** Makes every DNS answer late by up to `delayMs`, by freezing the servers and thawing them for a moment in turn. Call the result to end it. */
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
    .filter((pid) => existsSync(`/proc/${pid}/comm`) && readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'coredns');
