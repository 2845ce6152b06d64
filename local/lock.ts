/**
 * One `./dev` at a time for one thing. A lock whose owner has ended is free; the owner is identified by its process id and its start time,
 * because process ids are reused. Locks are in memory, not on the disk: `down` must work when the disk is full, and a reboot frees them.
 */
import { createHash } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../tools/paths.ts';
import { Failure, say } from '../tools/terminal.ts';

export interface LockOptions {
  /** Wait for the other process to end, instead of refusing. */
  readonly wait?: boolean;
}

const LOCKS = existsSync('/run/lock') ? '/run/lock' : tmpdir();
const WAIT_MS = 200;

/** Callers of the same lock in this process take turns: an interrupted `up` and the `down` that cleans up after it. */
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
  for (let announced = false; !acquire(path); announced = true) {
    if (!wait)
      throw new Failure(`Another ./dev (process ${ownerOf(path)}) is working on the ${what}: wait for it to end.`);
    if (!announced) say(`Waiting for another ./dev (process ${ownerOf(path)}) that works on the ${what}.`);
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

/** The lock file appears with its content, in one step: another process never reads it without its owner. */
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

/** When a process started, in clock ticks of the kernel; equal for two processes only if they are the same. Without /proc: whether it runs. */
function startOf(pid: number): string {
  const stat = read(`/proc/${pid}/stat`);
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z') return 'ended'; // a zombie: it has ended, and its parent has not waited for it
  if (stat !== '') return fields[18] ?? '';
  if (existsSync('/proc/self')) return 'ended';
  try {
    process.kill(pid, 0);
    return 'running';
  } catch {
    return 'ended';
  }
}
