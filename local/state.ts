/** What `./dev` records about a local cluster between commands. Losing it is harmless: `down` needs only the cluster's name. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, stateDir } from '../tools/paths.ts';
import type { Range } from './network.ts';

/** The demo's, the tests', and one that tests of `up` and `down` themselves bring up and break. */
export const CLUSTER_NAMES = ['demo', 'test', 'scratch'] as const;
export type ClusterName = (typeof CLUSTER_NAMES)[number];

export interface NodeState {
  readonly name: string;
  readonly index: number;
  readonly ip: string;
  /** Holds the node's network and mount namespaces. */
  readonly holderPid: number;
  readonly containerdPid: number;
  readonly kubeletPid: number;
  readonly proxyPid: number;
}

/** An image archive that every node has, also a node that joins later. */
export interface Archive {
  readonly reference: string;
  readonly path: string;
  /** Distinguishes two images of one name: a rebuilt operator has the same tag and another digest. */
  readonly digest: string;
}

export interface ClusterState {
  /** The id in the names of its cgroup and link: that of the checkout where it was started, which may have been moved since. */
  readonly id: string;
  readonly range: Range;
  readonly images: readonly Archive[];
  readonly switchPid: number;
  readonly controlPlanePid: number;
  /** etcd, API server, controller manager, scheduler. */
  readonly controlPlane: readonly number[];
  readonly nodes: readonly NodeState[];
  /** Set last: a cluster without it was interrupted during `up`, and is removed before another start. */
  readonly complete: boolean;
  readonly s3: boolean;
}

/** Eight hex digits of the checkout's path and the cluster's name: two checkouts, and two clusters of one, never share a name. */
export const clusterId = (name: ClusterName): string =>
  createHash('sha256').update(`${root}\0${name}`).digest('hex').slice(0, 8);

export const clusterDir = (name: ClusterName): string => join(stateDir, name);
export const cgroupOf = (id: string): string => `etcd-operator-${id}`;
export const clusterCgroup = (name: ClusterName): string => cgroupOf(clusterId(name));
/** The group of one machine's daemons (the switch, the control plane or a node); container shims inherit it. */
export const daemonGroup = (name: ClusterName, machine: string): readonly string[] => [
  clusterCgroup(name),
  'daemons',
  machine,
];
/** The end of the cluster's cable on this machine; link names have at most 15 characters. */
export const hostLink = (id: string): string => `eo-${id}`;
export const kubeconfigPath = (name: ClusterName): string => join(clusterDir(name), 'kubeconfig');
export const nodeDir = (name: ClusterName, node: string): string => join(clusterDir(name), node);
export const logPath = (name: ClusterName, daemon: string): string => join(clusterDir(name), 'logs', `${daemon}.log`);

const file = (name: ClusterName): string => join(clusterDir(name), 'state.json');

export const readState = (name: ClusterName): ClusterState | undefined =>
  existsSync(file(name)) ? (JSON.parse(readFileSync(file(name), 'utf8')) as ClusterState) : undefined;

export function writeState(name: ClusterName, state: ClusterState): void {
  mkdirSync(clusterDir(name), { recursive: true });
  writeFileSync(`${file(name)}.new`, JSON.stringify(state, undefined, 2));
  renameSync(`${file(name)}.new`, file(name));
}
