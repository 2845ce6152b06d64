import { expect, test } from 'vitest';
import { watch } from './watch.ts';

/** Draws what the script says; Ctrl-C comes with `stop`. */
async function watched(script: readonly (string | Error)[], isTerminal: boolean): Promise<readonly string[]> {
  const printed: string[] = [];
  const ctrlC = new AbortController();
  let next = 0;
  const draw = async (): Promise<string> => {
    const step = script[next++] ?? 'stop';
    if (step instanceof Error) throw step;
    if (step === 'stop') ctrlC.abort();
    return step;
  };
  await watch({ print: (text) => void printed.push(text), signal: ctrlC.signal, isTerminal }, draw, 1);
  return printed;
}

test('in a pipe, one text follows the other without control codes, until Ctrl-C', async () => {
  expect(await watched(['one', 'two', 'stop'], false)).toEqual(['one\n', 'two\n']);
});

test('an error is shown, and the next drawing follows', async () => {
  expect(await watched([new Error('no route to host'), 'two', 'stop'], false)).toEqual([
    'error: no route to host\n',
    'two\n',
  ]);
});

test('on a terminal, each drawing starts at the top and clears what was there before', async () => {
  const [cleared, drawn] = await watched(['a\nb', 'stop'], true);
  expect(cleared).toBe('\u001B[H\u001B[J');
  expect(drawn).toBe('\u001B[Ha\u001B[K\nb\u001B[K\n\u001B[J');
});
