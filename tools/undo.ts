/** What is undone when work ends, fails or is interrupted; after an interruption, only undoing may start anything. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Failure } from './terminal.ts';

const undoings = new Set<() => Promise<void>>();
const inUndo = new AsyncLocalStorage<true>();
let interrupted = false;
/** Undoing waits until the interrupted work has stopped: it may still hold what is to be undone. */
let stopped: Promise<void> = Promise.resolve();

/** Throws when the user has interrupted `./dev`, except inside an undo: code that starts or awaits something calls this first. */
export function refuseWhenInterrupted(): void {
  if (interrupted && !inUndo.getStore()) throw new Failure('interrupted');
}

/** Runs `work`, and `undo` after it exactly once: when it ends, when it fails and when the user interrupts it. */
export async function withUndo<T>(undo: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  refuseWhenInterrupted();
  let undone: Promise<void> | undefined;
  const once = (): Promise<void> => (undone ??= inUndo.run(true, () => stopped.then(undo)));
  undoings.add(once);
  try {
    return await work();
  } finally {
    await once();
    undoings.delete(once);
  }
}

/** After an interruption the work that was cut short fails, too; that is not reported. */
export const wasInterrupted = (): boolean => interrupted;

/** From here on only undoing may start anything, once `stop` has ended the running work. */
export const beInterrupted = (stop: () => Promise<void>): void => {
  interrupted = true;
  stopped = stop();
};

/** Undoes everything in progress, the latest first; reports what could not be undone. */
export async function undoAll(): Promise<readonly unknown[]> {
  await stopped;
  const failures: unknown[] = [];
  for (const undo of [...undoings].toReversed()) await undo().catch((error: unknown) => failures.push(error));
  return failures;
}
