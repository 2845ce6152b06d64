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
  ['an unknown reason', JSON.stringify({ ok: false, reason: 'Bored', message: '' })],
  ['a negative size', JSON.stringify({ ok: true, task: 'snapshot', artifact: { uri: 's3://b/k', sizeBytes: -1 } })],
  [
    'more than a termination message holds',
    JSON.stringify({ ok: false, reason: 'Internal', message: ' '.repeat(MAX_RESULT_BYTES) }),
  ],
])('S13: %s is no result', (_what, text) => {
  expect(parseResult(text)).toBeUndefined();
});

test('a result is read back as the agent wrote it, and a long message is truncated', () => {
  const failed: Result = { ok: false, reason: 'NoSpace', message: 'é'.repeat(10_000) };
  const text = resultText(failed);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_RESULT_BYTES);
  expect(parseResult(text)).toMatchObject({ reason: 'NoSpace', message: expect.stringMatching(/^é{500,}$/) });
  const pruned: Result = { ok: true, task: 'prune', kept: 3, removed: 1 };
  expect(parseResult(resultText(pruned))).toEqual(pruned);
});

test('S13: control characters in the message of an agent are removed', () => {
  const result = parseResult(JSON.stringify({ ok: false, reason: 'Internal', message: 'a\u001b[2J\nb\u202ec' }));
  expect(result).toMatchObject({ message: 'a [2J b c' });
});

test('the Job retries transient failures only', () => {
  const exitCode = (reason: (typeof FAILURES)[number]): number => exitCodeOf({ ok: false, reason, message: '' });
  const transient = FAILURES.filter((reason) => exitCode(reason) === 1);
  expect(transient).toEqual([
    'NoMemberReachable',
    'LoginRefused', // a new password may not be applied yet
    'StreamBroken',
    'SourceGrowing', // the store may be faster later
    'DigestMismatch',
    'StoreUnreachable',
    'NoSpace', // space may be freed
    'RestoreToolFailed',
    'OutOfMemory', // the node may have lacked it, not the limit
    'TimedOut',
    'Internal',
  ]);
  const permanent = FAILURES.filter((reason) => !transient.includes(reason));
  expect(new Set(permanent.map(exitCode))).toEqual(new Set([HOPELESS_EXIT]));
  expect(exitCodeOf({ ok: true, task: 'install-tools' })).toBe(0);
});

test('a result of exactly the size of a termination message is read', () => {
  const text = JSON.stringify({ ok: false, reason: 'Internal', message: '' });
  expect(parseResult(text.padEnd(MAX_RESULT_BYTES))).toMatchObject({ reason: 'Internal' });
  expect(parseResult(text.padEnd(MAX_RESULT_BYTES + 1))).toBeUndefined();
});
