import { expect, test } from 'vitest';
import type { EtcdErrorKind } from '../../etcd/errors.ts';
import { sourceFailure } from './source.ts';

const FROM = { member: 'db-x', endpoint: 'http://10.0.0.1:2379', auth: true };
const asked: readonly (readonly [EtcdErrorKind, string, RegExp])[] = [
  ['unreachable', 'NoMemberReachable', /does not respond: words\. Check that it runs/],
  ['timeout', 'NoMemberReachable', /does not respond/],
  ['busy', 'NoMemberReachable', /does not respond/],
  ['tls', 'NoMemberReachable', /^TLS handshake with .* failed: words\. Check the certificates/],
  ['learnerRefused', 'NoMemberReachable', /is a learner/],
  ['corrupt', 'NoMemberReachable', /is corrupt/],
  ['authFailed', 'LoginRefused', /refuses the root password of the Secret/],
  ['permissionDenied', 'LoginRefused', /Check spec\.auth/],
];

test.each(asked)('a call that fails with %s is %s', (kind, reason, words) => {
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
])('a stream that fails with %s is %s', (kind, reason) => {
  expect(sourceFailure(FROM, { kind, message: 'words' }, 'streaming').reason).toBe(reason);
});

test('an agent without a password does not report a wrong one', () => {
  const { message } = sourceFailure({ ...FROM, auth: false }, { kind: 'authRequired', message: 'words' }, 'asked');
  expect(message).toContain('has auth enabled, and the agent has no root password');
});
