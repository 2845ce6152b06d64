/** What the membership suite needs of a world with etcd in it: real processes here, the model in `test/sim/model`. */
import { rmSync } from 'node:fs';
import type { Etcd } from '../../src/etcd/client.ts';
import { ModelEtcd } from '../sim/model/etcd.ts';
import { modelPorts } from '../sim/model/etcd-ports.ts';
import { type EtcdVersion, type Join, startLab } from '../support/etcd.ts';
import { eventually } from '../support/processes.ts';

export interface WorldNode {
  readonly name: string;
  readonly endpoint: string;
  readonly peerURL: string;
  start(join: Join): void;
  /** Resolves when it answers and knows a leader. */
  ready(): Promise<void>;
  stop(): Promise<void>;
  /** Empties the data directory. */
  wipe(): void;
  /** Resolves, when the process has ended by itself, to its last words. */
  ended(): Promise<string>;
}

/** The part of the client that the model has too. */
export interface WorldPorts {
  readonly members: Etcd['members'];
  readonly maintenance: Pick<Etcd['maintenance'], 'status' | 'moveLeader'>;
  readonly kv: Pick<Etcd['kv'], 'put' | 'range'>;
}

export interface EtcdWorld {
  readonly etcd: WorldPorts;
  readonly node: (name: string, options?: { readonly maxLearners?: number }) => WorldNode;
  /** Asks until there is an answer other than `undefined`. */
  readonly until: <T>(what: string, ask: () => Promise<T | undefined>) => Promise<T>;
  readonly close: () => Promise<void>;
}

export async function realWorld(version: EtcdVersion): Promise<EtcdWorld> {
  const lab = await startLab();
  return {
    etcd: lab.client,
    node: (name, { maxLearners } = {}) => {
      const flags = maxLearners === undefined ? [] : [`--max-learners=${maxLearners}`];
      const node = lab.node(name, { version, flags });
      return {
        ...node,
        stop: () => node.stop('SIGKILL'),
        wipe: () => rmSync(node.folder, { recursive: true, force: true }),
        ended: async () => {
          await node.process?.ended;
          return node.process?.log() ?? '';
        },
      };
    },
    until: (what, ask) => eventually(what, ask),
    close: () => lab.close(),
  };
}

const STEP_MS = 100;
const PATIENCE_MS = 30_000;

/** Time passes only while somebody waits. */
export function modelWorld(): Promise<EtcdWorld> {
  const model = new ModelEtcd();
  const until = async <T>(what: string, ask: () => Promise<T | undefined>): Promise<T> => {
    for (let waited = 0; waited <= PATIENCE_MS; waited += STEP_MS) {
      const answer = await ask();
      if (answer !== undefined) return answer;
      model.advance(STEP_MS);
    }
    throw new Error(`waited in vain for: ${what}`);
  };
  const etcd = modelPorts(model);
  return Promise.resolve({
    etcd,
    until,
    node: (name, options) => {
      const node = model.node(name, options);
      const hasLeader = async (): Promise<true | undefined> => {
        const status = await etcd.maintenance.status({ endpoint: node.endpoint, timeoutMs: 1_000 });
        return status.ok && status.value.leader !== 0n ? true : undefined;
      };
      return {
        name,
        endpoint: node.endpoint,
        peerURL: node.peerURL,
        start: (join) => model.start(node, join),
        ready: async () => void (await until(`${name} has a leader`, hasLeader)),
        stop: async () => model.stop(node),
        wipe: () => model.wipe(node),
        ended: () => until(`${name} ends`, async () => (node.running ? undefined : node.lastWords)),
      };
    },
    close: async () => {},
  });
}
