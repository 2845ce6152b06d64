/** Child processes of a test: their output goes to files, and every one of them is ended by its id. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

export interface Child {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when it has ended, whoever ended it. */
  readonly ended: Promise<number | null>;
  /** Sends the signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  log(): string;
}

const STOP_MS = 5_000;

/** Whoever is interrupted exits without stopping them one by one. */
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
    const process_ = spawn(command, args, { stdio: ['ignore', out, out], env });
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

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks until the answer is not `undefined`; fails with what was waited for, and what was seen last. */
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
  throw new Error(`waited in vain for: ${what}${seen}`, { cause: error });
}
