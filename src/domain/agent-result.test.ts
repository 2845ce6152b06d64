import { expect, test } from 'vitest';
import {
  exitCodeOf,
  FAILURES,
  HOPELESS_EXIT,
  MAX_RESULT_BYTES,
  parseResult,
  type Result,
  resultText,
} from './agent-result.ts';

test.each([
  ['nothing', undefined],
  ['no JSON', 'snapshot uploaded: uri="s3://b/k"'],
  ['a list', '[]'],
  ['a reason that agents do not have', JSON.stringify({ ok: false, reason: 'Bored', message: '' })],
  ['a size below zero', JSON.stringify({ ok: true, task: 'snapshot', artifact: { uri: 's3://b/k', sizeBytes: -1 } })],
  [
    'more than Kubernetes keeps',
    JSON.stringify({ ok: false, reason: 'Internal', message: ' '.repeat(MAX_RESULT_BYTES) }),
  ],
])('%s is no result', (_what, text) => {
  expect(parseResult(text)).toBeUndefined();
});

test('what an agent writes is read as it was, however long its words are', () => {
  const failed: Result = { ok: false, reason: 'NoSpace', message: 'é'.repeat(10_000) };
  const text = resultText(failed);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_RESULT_BYTES);
  expect(parseResult(text)).toMatchObject({ reason: 'NoSpace', message: expect.stringMatching(/^é{500,}$/) });
  const pruned: Result = { ok: true, task: 'prune', kept: 3, removed: 1 };
  expect(parseResult(resultText(pruned))).toEqual(pruned);
});

test('nothing in its words moves a cursor or ends a line', () => {
  const said = parseResult(JSON.stringify({ ok: false, reason: 'Internal', message: 'a\u001b[2J\nb\u202ec' }));
  expect(said).toMatchObject({ message: 'a [2J b c' });
});

test('another attempt is made where it may help, and only there', () => {
  const ends = (reason: (typeof FAILURES)[number]): number => exitCodeOf({ ok: false, reason, message: '' });
  const again = FAILURES.filter((reason) => ends(reason) === 1);
  expect(again).toEqual([
    'NoMemberReachable',
    'LoginRefused', // a password may be on its way
    'StreamBroken',
    'DigestMismatch',
    'StoreUnreachable',
    'NoSpace', // others may make room
    'RestoreToolFailed',
    'TimedOut',
    'Internal',
  ]);
  expect(FAILURES.filter((reason) => !again.includes(reason)).map(ends)).toEqual(Array(12).fill(HOPELESS_EXIT));
  expect(exitCodeOf({ ok: true, task: 'install-tools' })).toBe(0);
});
