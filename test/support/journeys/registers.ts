/** Clients that read and write a few keys all the time and record every operation, so that the history can be checked for linearizability. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Access } from '../../../src/etcd/client.ts';
import { UserClient } from '../etcd-client.ts';
import { notLinearizable, type Operation } from '../linearizability.ts';

/** How a client reaches the keys. Rejects when the outcome is unknown. */
export interface Registers {
  write(key: string, value: string): Promise<void>;
  read(key: string): Promise<string | undefined>;
  close(): void;
}

const TIMEOUT_MS = 10_000;

/** Directly, through the client Service. */
export function etcdRegisters(endpoint: string, access?: Access): Registers {
  const etcd = new UserClient(() => performance.now());
  const ask = { endpoint, timeoutMs: TIMEOUT_MS, ...(access && { access }) };
  return {
    write: async (key, value) => {
      const answer = await etcd.kv.put(ask, key, value);
      if (!answer.ok) throw new Error(answer.error.message);
    },
    read: async (key) => {
      const answer = await etcd.kv.range(ask, { key });
      if (!answer.ok) throw new Error(answer.error.message);
      const [found] = answer.value.kvs;
      return found && new TextDecoder().decode(found.value);
    },
    close: () => etcd.close(),
  };
}

interface Options {
  readonly name: string;
  readonly keys: readonly string[];
  /** Called again after every failure: a new connection may reach another member. */
  readonly open: () => Registers;
  readonly pauseMs: number;
}

/** Alternately writes a key, with a value that no other write has, and reads one. */
export class RegisterClient {
  readonly history: Operation[] = [];
  readonly failures: { readonly atMs: number; readonly message: string }[] = [];
  readonly #options: Options;
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;

  constructor(options: Options) {
    this.#options = options;
    this.#ended = this.#run();
  }

  async #run(): Promise<void> {
    const { name, keys, open, pauseMs } = this.#options;
    let registers = open();
    for (let number = 0; !this.#stopped.signal.aborted; number++) {
      const key = keys[Math.floor(number / 2) % keys.length] ?? '';
      const does = number % 2 === 0 ? 'write' : 'read';
      const startMs = performance.now();
      const started = { client: name, key, does, startMs } as const;
      const written = `${name}-${number}`;
      try {
        if (does === 'write') await registers.write(key, written);
        const value = does === 'write' ? written : await registers.read(key);
        this.history.push({ ...started, value, endMs: performance.now() });
      } catch (error) {
        this.history.push({ ...started, value: written, endMs: undefined });
        this.failures.push({ atMs: startMs, message: String(error) });
        registers.close();
        registers = open();
      }
      await sleep(pauseMs);
    }
    registers.close();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
  }
}

export interface Seen {
  readonly acknowledged: number;
  readonly failures: readonly string[];
  /** How long operations took that took longer than a second, failed ones included, in the order of time. */
  readonly lateMs: readonly number[];
  /** Why the history is not linearizable. */
  readonly wrong: string | undefined;
  /** Of all clients, in the order of time. */
  readonly history: readonly Operation[];
}

const LATE_MS = 1_000;

/** Stops the clients, and judges what all of them have seen. */
export async function whatTheySaw(clients: readonly RegisterClient[]): Promise<Seen> {
  await Promise.all(clients.map((client) => client.stop()));
  const history = clients.flatMap((client) => client.history);
  const ended = clients.flatMap(({ history: own }) => own.map((each, i) => ({ each, next: own[i + 1]?.startMs })));
  const lasted = ended.map(({ each, next }) => ({
    at: each.startMs,
    ms: (each.endMs ?? next ?? each.startMs) - each.startMs,
  }));
  return {
    acknowledged: history.filter(({ does, endMs }) => does === 'write' && endMs !== undefined).length,
    failures: clients.flatMap(({ failures }) => failures.map(({ message }) => message)),
    lateMs: lasted
      .filter(({ ms }) => ms > LATE_MS)
      .toSorted((a, b) => a.at - b.at)
      .map(({ ms }) => Math.round(ms)),
    wrong: notLinearizable(history),
    history: history.toSorted((a, b) => a.startMs - b.startMs),
  };
}
