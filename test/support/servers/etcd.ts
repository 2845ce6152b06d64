/** Real etcd processes, each on its own loopback address with the usual ports; ended by their pid, their folders removed. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, type Part } from '../../../local/binaries.ts';
import type { Ask } from '../../../src/etcd/client.ts';
import { UserClient } from '../etcd-client.ts';
import { Addresses } from './addresses.ts';
import { type Child, eventually, Processes } from './processes.ts';

export const ETCD_PARTS = {
  '3.5.10': 'etcd-3.5.10',
  '3.5.35': 'etcd-3.5',
  '3.6.16': 'etcd-3.6',
  '3.7.3': 'etcd-3.7',
} as const satisfies Record<string, Part>;
type BuiltVersion = keyof typeof ETCD_PARTS;
/** One of each minor: what everything is tested with. */
export const ETCD_VERSIONS = ['3.5.35', '3.6.16', '3.7.3'] as const satisfies readonly BuiltVersion[];
export type EtcdVersion = (typeof ETCD_VERSIONS)[number];

export interface Join {
  readonly initialCluster: string;
  readonly state: 'new' | 'existing';
  readonly token?: string;
}

export interface Node {
  readonly name: string;
  readonly address: string;
  /** For clients. */
  readonly endpoint: string;
  readonly peerURL: string;
  /** The data directory; it is kept when the process ends. */
  readonly folder: string;
  readonly process: Child | undefined;
  /**
   * Starts the process; without a data directory it joins as `join` says, with one it continues.
   * Another version and more flags can be given.
   */
  start(join: Join, version?: NodeOptions['version'], more?: readonly string[]): void;
  /** Resolves when it serves. */
  ready(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** As a machine that hangs: connections stay open, nothing responds. */
  freeze(): Promise<void>;
  thaw(): void;
}

export interface NodeOptions {
  readonly version: BuiltVersion;
  readonly flags?: readonly string[];
  /** Of the URLs; the flags must name the certificates. */
  readonly scheme?: 'http' | 'https';
  readonly peerScheme?: 'http' | 'https';
}

export interface EtcdLab {
  readonly folder: string;
  readonly client: UserClient;
  node(name: string, options: NodeOptions): Node;
  /** A cluster of one member that serves. */
  seed(options: NodeOptions): Promise<Node>;
  /** A cluster of several members that were started together and serve. */
  cluster(size: number, options: NodeOptions): Promise<readonly Node[]>;
  close(): Promise<void>;
}

const FLAGS = ['--unsafe-no-fsync', '--heartbeat-interval=50', '--election-timeout=500', '--log-level=warn'];

export const ask = (node: Pick<Node, 'endpoint'>, timeoutMs = 5_000): Ask => ({ endpoint: node.endpoint, timeoutMs });

export const initialCluster = (nodes: readonly Pick<Node, 'name' | 'peerURL'>[]): string =>
  nodes.map(({ name, peerURL }) => `${name}=${peerURL}`).join(',');

export async function startLab({
  parent = tmpdir(),
  versions = ETCD_VERSIONS,
}: {
  readonly parent?: string;
  readonly versions?: readonly BuiltVersion[];
} = {}): Promise<EtcdLab> {
  const binaries = await build(versions.map((version) => ETCD_PARTS[version]));
  const folder = mkdtempSync(join(parent, 'etcd-lab-'));
  const processes = new Processes(folder);
  const client = new UserClient(() => performance.now());
  const addresses = new Addresses();
  const base = await addresses.block();
  let count = 0;
  const node = (name: string, options: NodeOptions): Node => {
    const binary = (version: NodeOptions['version']): string => join(binaries[ETCD_PARTS[version]], 'etcd');
    return makeNode(processes, client, { name, address: `${base}.${++count}`, folder, binary, ...options });
  };
  const cluster = async (size: number, options: NodeOptions): Promise<readonly Node[]> => {
    const nodes = Array.from({ length: size }, (_, i) => node(`m${count}-${i}`, options));
    for (const each of nodes) each.start({ initialCluster: initialCluster(nodes), state: 'new' });
    await Promise.all(nodes.map((each) => each.ready()));
    return nodes;
  };
  return {
    folder,
    client,
    node,
    cluster,
    seed: async (options) => {
      const [only] = await cluster(1, options);
      if (!only) throw new Error('no member');
      return only;
    },
    close: async () => {
      client.close();
      await processes.stopAll();
      addresses.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Making extends NodeOptions {
  readonly name: string;
  readonly address: string;
  readonly folder: string;
  readonly binary: (version: NodeOptions['version']) => string;
}

function makeNode(processes: Processes, client: UserClient, making: Making): Node {
  const { name, address, scheme = 'http', peerScheme = 'http' } = making;
  const peerURL = `${peerScheme}://${address}:2380`;
  const endpoint = `${scheme}://${address}:2379`;
  const folder = join(making.folder, `data-${name}`);
  let child: Child | undefined;
  const signal = (which: NodeJS.Signals): void => {
    if (child) process.kill(child.pid, which);
  };
  return {
    name,
    address,
    endpoint,
    peerURL,
    folder,
    get process() {
      return child;
    },
    start: (join_, version = making.version, more = []) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      child = processes.start(name, making.binary(version), [
        ...argumentsOf(making, { folder, endpoint, peerURL }, join_),
        ...more,
      ]);
    },
    ready: async () => {
      // Over TLS only the test has the certificates; the metrics port is always plain.
      const page = making.version === '3.5.10' ? 'metrics' : 'livez'; // which 3.5.10 does not have
      const up = async (probe: string): Promise<true | undefined> =>
        (await fetch(`http://${address}:2381/${probe}`, { signal: AbortSignal.timeout(1_000) })).ok || undefined;
      await eventually(`${name} serves`, () => up(page), { seen: () => child?.log().slice(-2000) });
      // Its client port accepts connections at once, and responds only when there is a leader.
      if (scheme !== 'http')
        return void (await eventually(`${name} has a leader`, () => up('readyz'), {
          seen: () => child?.log().slice(-2000),
        }));
      await eventually(`${name} has a leader`, () => hasLeader(client, endpoint));
      await eventually(`${name} knows the version of its cluster`, () => hasVersion(endpoint));
    },
    stop: async (which) => {
      signal('SIGCONT');
      await child?.stop(which);
    },
    freeze: async () => {
      signal('SIGSTOP');
      const stands = (): true | undefined => isStopped(child?.pid ?? 0) || undefined;
      await eventually(`${name} is stopped`, stands, { everyMs: 5 }); // a running thread continues for a moment
    },
    thaw: () => signal('SIGCONT'),
  };
}

/** Linux reports the state of each thread after its name, which is in brackets. */
const isStopped = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).every((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').includes(') T '),
  );

/** Before that a joining member ends: the cluster reports no version that it could be compatible with. */
async function hasVersion(endpoint: string): Promise<true | undefined> {
  const answer = await fetch(`${endpoint}/version`, { signal: AbortSignal.timeout(1_000) });
  const { etcdcluster } = (await answer.json()) as { readonly etcdcluster: string };
  return etcdcluster === 'not_decided' ? undefined : true;
}

async function hasLeader(client: UserClient, endpoint: string): Promise<true | undefined> {
  const status = await client.status({ endpoint, timeoutMs: 1_000 });
  return status.ok && status.value.leader !== 0n ? true : undefined;
}

function argumentsOf(
  making: Making,
  { folder, endpoint, peerURL }: Pick<Node, 'folder' | 'endpoint' | 'peerURL'>,
  join_: Join,
): readonly string[] {
  return [
    `--name=${making.name}`,
    `--data-dir=${folder}`,
    `--listen-client-urls=${endpoint}`,
    `--advertise-client-urls=${endpoint}`,
    `--listen-peer-urls=${peerURL}`,
    `--initial-advertise-peer-urls=${peerURL}`,
    `--listen-metrics-urls=http://${making.address}:2381`,
    `--initial-cluster=${join_.initialCluster}`,
    `--initial-cluster-state=${join_.state}`,
    ...(join_.token === undefined ? [] : [`--initial-cluster-token=${join_.token}`]),
    ...FLAGS,
    ...(making.flags ?? []),
  ];
}
