/** Ctrl-C and kill: what runs is stopped, what must not stay behind is undone, and then `./dev` exits with 130. */
import { killChildren, stopChildren, terminalIsLent } from './process.ts';
import { say } from './terminal.ts';

const INTERRUPTED = 130;
const GRACE_MS = 3_000;

const undoings = new Set<() => Promise<void>>();
let interrupted = false;

/** Runs `work`, and `undo` after it exactly once: when it ends, when it fails and when the user interrupts it. */
export async function withUndo<T>(undo: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  let undone: Promise<void> | undefined;
  const once = (): Promise<void> => (undone ??= undo());
  undoings.add(once);
  try {
    return await work();
  } finally {
    await once();
    undoings.delete(once);
  }
}

async function interrupt(): Promise<void> {
  process.exitCode = INTERRUPTED;
  say('Interrupted: stopping. Once more stops at once.');
  await stopChildren(GRACE_MS);
  const results = await Promise.allSettled([...undoings].map((undo) => undo()));
  for (const result of results) if (result.status === 'rejected') say(String(result.reason));
  process.exit(INTERRUPTED);
}

/** From here on, signals end `./dev` in an orderly way. */
export function handleSignals(): void {
  const onSignal = (signal: NodeJS.Signals): void => {
    if (terminalIsLent() && signal === 'SIGINT') return;
    if (interrupted) {
      killChildren();
      process.exit(INTERRUPTED);
    }
    interrupted = true;
    void interrupt();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
}

/** After an interruption the work that was cut short fails in passing; that is no news. */
export const wasInterrupted = (): boolean => interrupted;
