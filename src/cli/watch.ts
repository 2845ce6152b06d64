/** `--watch`: draws again and again, until Ctrl-C. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from './context.ts';
import { explain } from './gather/access-error.ts';

const EVERY_MS = 2_000;
/** Moves the cursor to the top and clears what is below the new text: a screen that is cleared first would flicker. */
const HOME = '\u001B[H';
const CLEAR_LINE = '\u001B[K';
const CLEAR_REST = '\u001B[J';

/** An error is drawn like anything else: an API server that restarts must not end the watch. */
export async function watch(
  { print, signal, isTerminal }: Pick<Context, 'print' | 'signal' | 'isTerminal'>,
  draw: () => Promise<string>,
  everyMs = EVERY_MS,
): Promise<void> {
  if (isTerminal) print(`${HOME}${CLEAR_REST}`);
  while (!signal.aborted) {
    const text = await draw().catch((error: unknown) => `error: ${explain(error)}`);
    // What was asked while the user pressed Ctrl-C was cut off, and would be drawn as members that do not respond.
    if (signal.aborted) return;
    print(isTerminal ? redraw(text) : `${text}\n`);
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

const redraw = (text: string): string =>
  `${HOME}${text.replaceAll('\n', `${CLEAR_LINE}\n`)}${CLEAR_LINE}\n${CLEAR_REST}`;
