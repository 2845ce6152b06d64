import { expect, test } from 'vitest';
import type { EtcdErrorKind } from '../../etcd/errors.ts';
import { sourceFailure } from './source.ts';

const FROM = { member: 'db-x', endpoint: 'http://10.0.0.1:2379', login: true };
const asked: readonly (readonly [EtcdErrorKind, string, RegExp])[] = [
  ['unreachable', 'NoMemberReachable', /does not answer: words\. See that it runs/],
  ['timeout', 'NoMemberReachable', /does not answer/],
  ['busy', 'NoMemberReachable', /does not answer/],
  ['tls', 'NoMemberReachable', /do not trust each other: words\. Check the certificates/],
  ['learnerRefused', 'NoMemberReachable', /is a learner/],
  ['corrupt', 'NoMemberReachable', /is corrupt/],
  ['authFailed', 'LoginRefused', /does not let root in with the password of the Secret/],
  ['permissionDenied', 'LoginRefused', /Check spec\.auth/],
];

test.each(asked)('a question that ends in %s is %s', (kind, reason, words) => {
  const failure = sourceFailure(FROM, { kind, message: 'words' }, 'asked');
  expect(failure.reason).toBe(reason);
  expect(failure.message).toMatch(words);
  expect(failure.message).toContain('member db-x at http://10.0.0.1:2379');
});

test.each<[EtcdErrorKind, string]>([
  ['disconnected', 'StreamBroken'],
  ['timeout', 'StreamBroken'],
  ['badDigest', 'DigestMismatch'],
  ['invalidToken', 'LoginRefused'],
])('a stream that ends in %s is %s', (kind, reason) => {
  expect(sourceFailure(FROM, { kind, message: 'words' }, 'streaming').reason).toBe(reason);
});

test('who has no password is not told that it is wrong', () => {
  const { message } = sourceFailure({ ...FROM, login: false }, { kind: 'authRequired', message: 'words' }, 'asked');
  expect(message).toContain('wants a log-in, and the agent has none');
});
