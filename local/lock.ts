/**
 * One `./dev` at a time for one thing. A lock whose owner is gone is nobody's; the owner is known by its id and its start time,
 * because ids are used again. Locks are in memory, not on the disk: `down` must work when the disk is full, and a reboot frees them.
 */
import { createHash } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../tools/paths.ts';
import { Failure, say } from '../tools/terminal.ts';

export interface LockOptions {
  /** Wait for the other one to end, instead of refusing. */
  readonly wait?: boolean;
}

const LOCKS = existsSync('/run/lock') ? '/run/lock' : tmpdir();
const WAIT_MS = 200;

/** Those who want the same lock in this process take turns: an interrupted `up` and the `down` that cleans up after it. */
const turns = new Map<string, Promise<unknown>>();

export function withLock<T>(what: string, work: () => Promise<T>, options: LockOptions = {}): Promise<T> {
  const turn = (turns.get(what) ?? Promise.resolve()).then(() => locked(what, work, options));
  turns.set(
    what,
    turn.catch(() => {}),
  );
  return turn;
}

async function locked<T>(what: string, work: () => Promise<T>, { wait = false }: LockOptions): Promise<T> {
  const checkout = createHash('sha256').update(root).digest('hex').slice(0, 8);
  const path = join(LOCKS, `etcd-operator-${checkout}-${what.replaceAll(' ', '-')}`);
  for (let told = false; !acquire(path); told = true) {
    if (!wait)
      throw new Failure(`Another ./dev (process ${ownerOf(path)}) is working on the ${what}: wait for it to end.`);
    if (!told) say(`Waiting for another ./dev (process ${ownerOf(path)}) that works on the ${what}.`);
    await sleep(WAIT_MS);
  }
  const release = (): void => rmSync(path, { force: true });
  process.once('exit', release); // an interruption ends the process before its work does
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

/** The lock appears whole or not at all: nobody sees it without its owner. */
function acquire(path: string): boolean {
  const mine = `${path}.${process.pid}`;
  writeFileSync(mine, `${process.pid} ${startOf(process.pid)}`);
  try {
    if (existsSync(path) && !isHeld(path)) rmSync(path, { force: true });
    linkSync(mine, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(mine, { force: true });
  }
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // released meanwhile
  }
};
const ownerOf = (path: string): string => read(path).split(' ')[0] ?? '';
const isHeld = (path: string): boolean => {
  const [pid = '', start] = read(path).split(' ');
  return pid !== '' && startOf(Number(pid)) === start;
};

/** When a process started, in the kernel's own count; the same for two processes only if they are one. Without /proc: whether it runs. */
function startOf(pid: number): string {
  const stat = read(`/proc/${pid}/stat`);
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z') return 'gone'; // it has ended, and nobody has asked how
  if (stat !== '') return fields[18] ?? '';
  if (existsSync('/proc/self')) return 'gone';
  try {
    process.kill(pid, 0);
    return 'running';
  } catch {
    return 'gone';
  }
}
