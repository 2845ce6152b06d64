import { expect, test } from 'vitest';
import type { EtcdErrorKind } from '../../etcd/errors.ts';
import { grownTooMuch, isHashed, sourceFailure } from './source.ts';

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

const MIB = 2 ** 20;
test.each<[string, { dbSize: number; leader: bigint; memberId: bigint }, boolean]>([
  ['a small database of a leader', { dbSize: 64 * MIB, leader: 1n, memberId: 1n }, true],
  [
    'a larger one of a leader, or of an only member: all writes would wait',
    { dbSize: 65 * MIB, leader: 1n, memberId: 1n },
    false,
  ],
  ['a large one of a follower', { dbSize: 8192 * MIB, leader: 2n, memberId: 1n }, true],
  ['a larger one without a leader', { dbSize: 65 * MIB, leader: 0n, memberId: 1n }, false],
])('the hash of %s: %s', (_what, status, hashed) => {
  expect(isHashed(status)).toBe(hashed);
});

test.each<[string, number, { dbSize: number; dbSizeQuota?: number }, string | undefined]>([
  ['it has not grown', 1000, { dbSize: 1000 * MIB }, undefined],
  ['it has grown by 7 %', 1000, { dbSize: 1070 * MIB }, undefined],
  ['it has grown by 9 %', 1000, { dbSize: 1090 * MIB }, 'SourceGrowing'],
  ['a small one has grown by some MiB', 10, { dbSize: 20 * MIB }, undefined],
  [
    'it has grown into the last tenth of its quota',
    1000,
    { dbSize: 1001 * MIB, dbSizeQuota: 1100 * MIB },
    'SourceGrowing',
  ],
  ['it was there before', 1000, { dbSize: 1000 * MIB, dbSizeQuota: 1100 * MIB }, undefined],
])('a member whose stream is held up: %s', (_what, before, status, reason) => {
  expect(grownTooMuch({ member: 'db-1' }, before * MIB, status)?.reason).toBe(reason);
});
