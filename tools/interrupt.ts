/** Ctrl-C and kill: running commands are stopped, what must not stay behind is undone, and then `./dev` exits with 130. */
import { killChildren, stopChildren, terminalIsLent } from './process.ts';
import { say } from './terminal.ts';
import { beInterrupted, undoAll, wasInterrupted } from './undo.ts';

export { refuseWhenInterrupted, wasInterrupted, withUndo } from './undo.ts';

const INTERRUPTED = 130;
const GRACE_MS = 3_000;

async function interrupt(message: string): Promise<void> {
  process.exitCode = INTERRUPTED;
  beInterrupted(() => stopChildren(GRACE_MS));
  say(`${message}: stopping. Once more stops at once.`);
  for (const failure of await undoAll()) say(failure instanceof Error ? failure.message : String(failure));
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
    void interrupt('Interrupted');
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
}

/** A closed terminal, or `./dev … | head`: no process reads the output any more, so the work is stopped and undone as after a signal. */
export function handleLostOutput(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', () => {
      stream.write = () => true;
      if (!wasInterrupted()) void interrupt('The output is closed');
    });
}
