/** Ctrl-C and kill: what runs is stopped, what must not stay behind is undone, and then `./dev` exits with 130. */
import { killChildren, stopChildren, terminalIsLent } from './process.ts';
import { say } from './terminal.ts';
import { beInterrupted, undoAll, wasInterrupted } from './undo.ts';

export { refuseWhenInterrupted, wasInterrupted, withUndo } from './undo.ts';

const INTERRUPTED = 130;
const GRACE_MS = 3_000;

async function interrupt(): Promise<void> {
  process.exitCode = INTERRUPTED;
  say('Interrupted: stopping. Once more stops at once.');
  await stopChildren(GRACE_MS);
  for (const failure of await undoAll()) say(String(failure));
  process.exit(INTERRUPTED);
}

/** From here on, signals end `./dev` in an orderly way. */
export function handleSignals(): void {
  const onSignal = (signal: NodeJS.Signals): void => {
    if (terminalIsLent() && signal === 'SIGINT') return;
    if (wasInterrupted()) {
      killChildren();
      process.exit(INTERRUPTED);
    }
    beInterrupted();
    void interrupt();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
}
