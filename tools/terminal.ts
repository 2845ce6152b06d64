/** What `./dev` says to the person who typed it: steps with progress and times, and failures as one sentence. */

/** Something the user can act on. `./dev` prints the message without a stack; anything else is a bug and keeps its stack. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

const interactive = process.stderr.isTTY === true;
const HEARTBEAT_MS = 10_000;

export const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

export const seconds = (ms: number): string =>
  ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;

/** Tells how far a running step is; on a terminal it redraws one line, in a log it speaks at most every ten seconds. */
export type Progress = (detail: string) => void;

/** Runs one named piece of work and says that it started, how far it is, and how long it took. */
export async function step<T>(name: string, work: (progress: Progress) => Promise<T>): Promise<T> {
  const started = performance.now();
  const elapsed = (): string => seconds(performance.now() - started);
  let detail = '';
  const draw = (): void => {
    if (interactive) process.stderr.write(`\r\x1b[2K  … ${name}${detail && `: ${detail}`} (${elapsed()})`);
    else say(`  … ${name}${detail && `: ${detail}`} (${elapsed()})`);
  };
  const timer = setInterval(draw, interactive ? 200 : HEARTBEAT_MS);
  const finish = (mark: string): void => {
    clearInterval(timer);
    if (interactive) process.stderr.write('\r\x1b[2K');
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
