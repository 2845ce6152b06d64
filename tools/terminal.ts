/** What `./dev` prints for the user: steps with progress and times, and failures as one sentence. */

/** An error that the user can fix. `./dev` prints the message without a stack; anything else is a bug and keeps its stack. */
export class Failure extends Error {
  override readonly name: string = 'Failure';
}

/** A mistake in the command line; `./dev` exits with 2, so that scripts can distinguish it from failed work. */
export class UsageFailure extends Failure {
  override readonly name: string = 'UsageFailure';
}

/** Whether lines may be redrawn. A CI log is not a terminal even where it pretends to be one. */
export const interactive: boolean = process.stderr.isTTY === true && !process.env['CI'];

const REDRAW_MS = 200;
const HEARTBEAT_MS = 10_000;
const CLEAR_LINE = '\r\x1b[2K';

let drawn = false;

/** What runs now: steps may run side by side, and a terminal shows them in one line. */
const running = new Set<() => string>();

export const say = (line: string): void => {
  process.stderr.write(`${drawn ? CLEAR_LINE : ''}${line}\n`);
  drawn = false;
};

/** A line longer than the terminal wraps, and redrawing then clears only its last part. */
const redraw = (line: string): void => {
  process.stderr.write(CLEAR_LINE + line.slice(0, (process.stderr.columns || 80) - 1));
  drawn = true;
};

export function seconds(ms: number): string {
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const whole = Math.round(ms / 1000);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** Reports the progress of a running step; on a terminal it redraws one line, in a log it prints at most every ten seconds. */
export type Progress = (detail: string) => void;

/** Runs one named piece of work and reports its progress, how long it took and whether it succeeded. */
export async function step<T>(name: string, work: (progress: Progress) => Promise<T>): Promise<T> {
  const started = performance.now();
  const elapsed = (): string => seconds(performance.now() - started);
  let detail = '';
  const state = (): string => `  … ${name}${detail && `: ${detail}`} (${elapsed()})`;
  const draw = (): void => (interactive ? redraw([...running].map((of) => of()).join('')) : say(state()));
  running.add(state);
  const timer = setInterval(draw, interactive ? REDRAW_MS : HEARTBEAT_MS);
  const finish = (mark: string): void => {
    clearInterval(timer);
    running.delete(state);
    say(`  ${mark} ${name} (${elapsed()})`);
  };
  try {
    const result = await work((text) => {
      detail = text;
    });
    finish('✓');
    return result;
  } catch (error) {
    finish('✗');
    throw error;
  }
}
