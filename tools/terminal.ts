/** What `./dev` says to the person who typed it: steps with progress and times, and failures as one sentence. */

/** Something the user can act on. `./dev` prints the message without a stack; anything else is a bug and keeps its stack. */
export class Failure extends Error {
  override readonly name: string = 'Failure';
}

/** A mistake in what was typed; `./dev` exits with 2, so that scripts can tell it from work that failed. */
export class UsageFailure extends Failure {
  override readonly name: string = 'UsageFailure';
}

/** Whether lines may be redrawn. A CI log is not a terminal even where it pretends to be one. */
export const interactive: boolean = process.stderr.isTTY === true && !process.env['CI'];

const REDRAW_MS = 200;
const HEARTBEAT_MS = 10_000;
const CLEAR_LINE = '\r\x1b[2K';

let drawn = false;

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

/** Tells how far a running step is; on a terminal it redraws one line, in a log it speaks at most every ten seconds. */
export type Progress = (detail: string) => void;

/** Runs one named piece of work and says how far it is, how long it took and whether it worked. */
export async function step<T>(name: string, work: (progress: Progress) => Promise<T>): Promise<T> {
  const started = performance.now();
  const elapsed = (): string => seconds(performance.now() - started);
  let detail = '';
  const draw = (): void => (interactive ? redraw : say)(`  … ${name}${detail && `: ${detail}`} (${elapsed()})`);
  const timer = setInterval(draw, interactive ? REDRAW_MS : HEARTBEAT_MS);
  const finish = (mark: string): void => {
    clearInterval(timer);
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
