/** Child processes of a test: their output goes to files, and every one of them is ended by its pid. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { LESS_GC } from '../../../local/daemon.ts';

export interface Child {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when it has ended for any reason. */
  readonly ended: Promise<number | null>;
  /** Sends the signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  log(): string;
}

const STOP_MS = 5_000;

/** An interrupted test process exits without stopping them one by one. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export class Processes {
  readonly #folder: string;
  readonly #running = new Set<Child>();
  #count = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  start(name: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Child {
    const logFile = join(this.#folder, `${name}-${++this.#count}.log`);
    const out = openSync(logFile, 'a');
    const process_ = spawn(command, args, { stdio: ['ignore', out, out], env: { ...LESS_GC, ...env } });
    closeSync(out);
    const child = follow(name, process_, logFile);
    this.#running.add(child);
    void child.ended.then(() => this.#running.delete(child));
    return child;
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map((child) => child.stop('SIGKILL')));
  }
}

function follow(name: string, child: ChildProcess, logFile: string): Child {
  alive.add(child);
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => resolve(code));
    child.once('error', () => resolve(null));
  });
  void ended.then(() => alive.delete(child));
  return {
    name,
    pid: child.pid ?? 0,
    logFile,
    ended,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      const hard = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(hard);
    },
    log: () => readFileSync(logFile, 'utf8'),
  };
}

/** Below the kernel's ephemeral ports: the kernel could assign such a port before its program listens. */
const PORTS = { first: 11_000, count: 5_000 };
/** Listening on a port here reserves it on 127.0.0.1: two test files that start servers at the same time never share one. */
const CLAIMS = '127.255.255.254';

const listen = (host: string, port: number): Promise<Server | undefined> =>
  new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', () => resolve(undefined));
    server.listen(port, host, () => resolve(server));
  });

/** A port of 127.0.0.1 that is reserved as long as this process runs. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < 100; tried++) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    const claim = await listen(CLAIMS, port);
    const server = claim && (await listen('127.0.0.1', port));
    if (server) {
      await new Promise((resolve) => server.close(resolve));
      return port;
    }
    claim?.close();
  }
  throw new Error('no port is free');
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Polls until the result is not `undefined`; fails with what it waited for, and what it last observed. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
  options: { readonly timeoutMs?: number; readonly everyMs?: number; readonly seen?: () => unknown } = {},
): Promise<T> {
  const until = performance.now() + (options.timeoutMs ?? 30_000);
  let error: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (e) {
      error = e;
    }
    if (performance.now() > until) break;
    await pause(options.everyMs ?? 50);
  }
  const seen = options.seen ? `\nlast seen: ${JSON.stringify(await options.seen(), null, 2)}` : '';
  throw new Error(`timed out waiting for: ${what}${seen}`, { cause: error });
}

/** Polls until the result has been the same for this long, so that late changes are included. */
export async function stands<T extends object>(what: string, ask: () => Promise<T> | T, forMs: number): Promise<T> {
  let last = await ask();
  return eventually(what, async () => {
    const before = last;
    await pause(forMs);
    last = await ask();
    return isDeepStrictEqual(last, before) ? last : undefined;
  });
}
