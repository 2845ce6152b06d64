/** One `./dev` at a time for one thing. A lock whose owner is gone is nobody's. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '../tools/paths.ts';
import { Failure } from '../tools/terminal.ts';
import { isAlive } from './daemon.ts';

/** Those who want the same lock in this process take turns: an interrupted `up` and the `down` that cleans up after it. */
const turns = new Map<string, Promise<unknown>>();

export function withLock<T>(what: string, work: () => Promise<T>): Promise<T> {
  const turn = (turns.get(what) ?? Promise.resolve()).then(() => locked(what, work));
  turns.set(
    what,
    turn.catch(() => {}),
  );
  return turn;
}

async function locked<T>(what: string, work: () => Promise<T>): Promise<T> {
  const path = join(cacheDir, 'locks', what.replaceAll(' ', '-'));
  mkdirSync(join(cacheDir, 'locks'), { recursive: true });
  acquire(path, what);
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

function acquire(path: string, what: string): void {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const owner = Number(readFileSync(path, 'utf8'));
    if (isAlive(owner))
      throw new Failure(`Another ./dev (process ${owner}) is working on the ${what}: wait for it to end.`);
    rmSync(path, { force: true });
    acquire(path, what);
  }
}
