/** A world with etcd for the suites: real processes here, the model in `test/sim/model`. */
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'vitest';
import type { Ask } from '../../src/etcd/client.ts';
import type { Result } from '../../src/etcd/errors.ts';
import { ModelEtcd } from '../sim/model/etcd.ts';
import { modelPorts } from '../sim/model/etcd-ports.ts';
import type { UserEtcd } from '../support/etcd-client.ts';
import { ETCD_VERSIONS, type EtcdVersion, initialCluster, type Join, startLab } from '../support/servers/etcd.ts';
import { eventually, pause } from '../support/servers/processes.ts';

export interface WorldNode {
  readonly name: string;
  readonly endpoint: string;
  readonly peerURL: string;
  /** With another version than before, if one is given. */
  start(join: Join, version?: EtcdVersion): void;
  /** Starts it without data, and kills it after its WAL was created and before anything was written to it. */
  startAndKill(join: Join): Promise<void>;
  /** Resolves when it responds and knows a leader. */
  ready(): Promise<void>;
  /** Kills it, unless it may end gracefully: what it has acknowledged may reach the disk a moment later. */
  stop(how?: 'gently'): Promise<void>;
  /** Deletes the data directory. */
  wipe(): void;
  /** Resolves to its last log lines when the process has ended by itself. */
  ended(): Promise<string>;
}

export interface WorldNodeOptions {
  readonly maxLearners?: number;
  readonly quotaBytes?: number;
  readonly tokenSeconds?: number;
}

export interface EtcdWorld {
  readonly etcd: UserEtcd;
  readonly node: (name: string, options?: WorldNodeOptions) => WorldNode;
  /** Several members that were started together and serve. */
  readonly together: (size: number, options?: WorldNodeOptions) => Promise<[WorldNode, WorldNode, WorldNode]>;
  /** A cluster of one member that serves. */
  readonly seed: (options?: WorldNodeOptions) => Promise<WorldNode>;
  /** Makes a database so large that its defragmentation takes a noticeable time. */
  readonly enlarge: (node: WorldNode) => Promise<void>;
  /** Polls until the result is not `undefined`. */
  readonly until: <T>(what: string, ask: () => Promise<T | undefined>) => Promise<T>;
  /** Lets time pass. Only for timing behaviour: everything else polls with `until`. */
  readonly pass: (ms: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface Implementation {
  readonly name: string;
  readonly version: EtcdVersion;
  readonly start: () => Promise<EtcdWorld>;
}

export const IMPLEMENTATIONS: readonly Implementation[] = ETCD_VERSIONS.flatMap((version) => [
  { name: version, version, start: () => realWorld(version) },
  { name: `${version} in the model`, version, start: () => Promise.resolve(modelWorld(version)) },
]);

/** Gives each test a world of its own. */
export const inWorld = (start: () => Promise<EtcdWorld>) =>
  test.extend<{ world: EtcdWorld }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
    world: async ({}, use) => {
      const world = await start();
      await use(world);
      await world.close();
    },
  });

export const ask = ({ endpoint }: Pick<WorldNode, 'endpoint'>, timeoutMs = 5_000): Ask => ({ endpoint, timeoutMs });

export function must<T>(answer: Result<T>): T {
  if (!answer.ok) throw new Error(`${answer.error.kind}: ${answer.error.message}`);
  return answer.value;
}

export const kindOf = (answer: Result<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);

/** `cluster` and `seed` of a world, from its nodes. */
function groupsOf(node: EtcdWorld['node']): Pick<EtcdWorld, 'together' | 'seed'> {
  let count = 0;
  const together: EtcdWorld['together'] = async (size, options) => {
    const nodes = Array.from({ length: size }, () => node('abcdefghijklmnop'.charAt(count++), options));
    for (const each of nodes) each.start({ initialCluster: initialCluster(nodes), state: 'new' });
    await Promise.all(nodes.map((each) => each.ready()));
    return nodes as [WorldNode, WorldNode, WorldNode];
  };
  return { together, seed: async (options) => (await together(1, options))[0] };
}

/** Between the creation of its WAL and the first write to it etcd reads its token keys: here that read blocks for ever. */
function keptWaiting(folder: string): readonly string[] {
  const key = join(dirname(folder), `key-of-${basename(folder)}`);
  if (!existsSync(key)) execFileSync('mkfifo', [key]);
  return [`--auth-token=jwt,sign-method=RS256,pub-key=${key}`];
}

function flagsOf({ maxLearners, quotaBytes, tokenSeconds }: WorldNodeOptions) {
  return [
    '--bcrypt-cost=4',
    ...(maxLearners === undefined ? [] : [`--max-learners=${maxLearners}`]),
    ...(quotaBytes === undefined ? [] : [`--quota-backend-bytes=${quotaBytes}`]),
    ...(tokenSeconds === undefined ? [] : [`--auth-token-ttl=${tokenSeconds}`]),
  ];
}

const LARGE_MIB = 256;
const MIB = new Uint8Array(1024 ** 2).fill(7);

async function realWorld(version: EtcdVersion): Promise<EtcdWorld> {
  const lab = await startLab();
  const makeNode: EtcdWorld['node'] = (name, options = {}) => {
    const node = lab.node(name, { version, flags: flagsOf(options) });
    return {
      name,
      endpoint: node.endpoint,
      peerURL: node.peerURL,
      start: (join_, other) => node.start(join_, other),
      startAndKill: async (join_) => {
        node.start(join_, version, keptWaiting(node.folder));
        const log = join(node.folder, 'member', 'wal');
        await eventually(`${name} creates its WAL`, () => existsSync(log) || undefined);
        await node.stop('SIGKILL');
      },
      ready: () => node.ready(),
      stop: (how) => node.stop(how ? 'SIGTERM' : 'SIGKILL'),
      wipe: () => rmSync(node.folder, { recursive: true, force: true }),
      ended: async () => {
        await node.process?.ended;
        return node.process?.log() ?? '';
      },
    };
  };
  return {
    etcd: lab.client,
    node: makeNode,
    ...groupsOf(makeNode),
    enlarge: async (node) => {
      for (let i = 0; i < LARGE_MIB; i++) must(await lab.client.kv.put(ask(node, 30_000), `large/${i}`, MIB));
    },
    until: (what, question) => eventually(what, question),
    pass: pause,
    close: () => lab.close(),
  };
}

/** As a real database of `LARGE_MIB`. */
const LARGE_MS = 1_000;
const STEP_MS = 100;
const PATIENCE_MS = 30_000;

/** Time passes only while a test waits. */
function modelWorld(version: EtcdVersion): EtcdWorld {
  const model = new ModelEtcd();
  const etcd = modelPorts(model);
  const until: EtcdWorld['until'] = async (what, question) => {
    for (let waited = 0; waited <= PATIENCE_MS; waited += STEP_MS) {
      const answer = await question();
      if (answer !== undefined) return answer;
      model.advance(STEP_MS);
    }
    throw new Error(`timed out waiting for: ${what}`);
  };
  const makeNode: EtcdWorld['node'] = (name, options = {}) => {
    const node = model.node(name, { ...options, version });
    const hasLeader = async (): Promise<true | undefined> => {
      const status = await etcd.status(ask(node));
      return status.ok && status.value.leader !== 0n ? true : undefined;
    };
    return {
      name,
      endpoint: node.endpoint,
      peerURL: node.peerURL,
      start: (join_, other = version) => {
        node.version = other;
        model.start(node, join_);
      },
      startAndKill: async (join_) => model.startAndKill(node, join_),
      ready: async () => void (await until(`${name} has a leader`, hasLeader)),
      stop: async () => model.stop(node),
      wipe: () => model.wipe(node),
      ended: () => until(`${name} ends`, async () => (node.running ? undefined : node.lastWords)),
    };
  };
  return {
    etcd,
    node: makeNode,
    ...groupsOf(makeNode),
    enlarge: async () => {
      model.defragmentMs = () => LARGE_MS;
    },
    until,
    pass: async (ms) => model.advance(ms),
    close: async () => {},
  };
}
