import { describe, expect, test } from 'vitest';
import { isAgreed } from './confirm.ts';

function aTerminal(answer: boolean | undefined) {
  const notes: string[] = [];
  const asked: string[] = [];
  return {
    notes,
    asked,
    isInteractive: answer !== undefined,
    note: (text: string) => void notes.push(text),
    confirm: (question: string) => {
      asked.push(question);
      return Promise.resolve(answer === true);
    },
  };
}

describe('a command that changes something', () => {
  test('does what the person answers, who is asked with the whole plan', async () => {
    const [yes, no] = [aTerminal(true), aTerminal(false)];
    expect(await isAgreed(yes, 'defragment a', {})).toBe(true);
    expect(await isAgreed(no, 'defragment a', {})).toBe(false);
    expect(yes.asked).toEqual(['This will defragment a. Go on? [y/N] ']);
  });
  test('does not ask with --yes, nor with -p, which scripts use', async () => {
    const terminal = aTerminal(false);
    expect(await isAgreed(terminal, 'x', { yes: true })).toBe(true);
    expect(await isAgreed(terminal, 'x', { pod: 'a' })).toBe(true);
    expect(terminal.asked).toEqual([]);
  });
  test('does nothing with --dry-run, whatever else is given', async () => {
    const terminal = aTerminal(true);
    expect(await isAgreed(terminal, 'x', { yes: true, pod: 'a', dryRun: true })).toBe(false);
    expect(terminal.notes).toEqual(['would x']);
  });
  test('fails without a terminal and without --yes', async () => {
    await expect(isAgreed(aTerminal(undefined), 'defragment a', {})).rejects.toThrow('pass --yes');
  });
});
