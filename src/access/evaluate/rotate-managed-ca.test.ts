/** An authority of the operator is exchanged: which Secrets are written at which moment, by what members have started with. */
import { beforeAll, describe, expect, test } from 'vitest';
import { NOW } from '../../../test/support/builders/builders.ts';
import { DAY, GRACE } from '../../../test/support/builders/credentials.ts';
import {
  digest,
  judged,
  leaf,
  makeAuthorities,
  type Name,
  next,
  old,
  outcome,
  secret,
  type Was,
} from '../../../test/support/builders/rotation.ts';
import { trustName } from '../../api/names.ts';
import type { Tls } from '../../api/tls.ts';
import type { Secret } from '../../gen/kube.ts';
import { CA_LIFETIME_MS, type KeyPair } from '../../pki/issue.ts';
import { NEXT_CERT, NEXT_KEY } from './ca.ts';

beforeAll(makeAuthorities);

describe('of the operator', () => {
  const managed: Tls = { client: { managed: { duration: '720h' } } };
  const authority = (of: KeyPair | undefined, successor?: KeyPair): Secret =>
    secret({
      'tls.crt': of?.cert ?? '',
      'tls.key': of?.key ?? '',
      ...(successor && { [NEXT_CERT]: successor.cert, [NEXT_KEY]: successor.key }),
    });
  const at = (ca: Secret | undefined, by: Name, trust: readonly Name[], more: Partial<Was> = {}): Was => ({
    tls: managed,
    recorded: trust,
    secrets: {
      'db-client-ca': ca,
      'db-server-mounted': leaf(by, trust),
      'db-operator-client-tls': leaf(by, trust),
      'db-client-tls': leaf(by, trust),
    },
    ...more,
  });
  const all = ['server', 'operator', 'application'];

  test.each<[string, () => Was, readonly string[]]>([
    ['nobody has asked', () => at(authority(old), 'old', ['old']), []],
    ['somebody asks', () => at(authority(old), 'old', ['old'], { annotation: '1' }), ['createNextCA db-client-ca']],
    ['what was asked for was done', () => at(authority(old), 'old', ['old'], { annotation: '1', commanded: '1' }), []],
    [
      'somebody asks once more',
      () => at(authority(old), 'old', ['old'], { annotation: '2', commanded: '1' }),
      ['createNextCA db-client-ca'],
    ],
    [
      'one after the other: the one before is not over',
      () => at(authority(next), 'next', ['old', 'next'], { annotation: '2', commanded: '1' }),
      ['narrow to next'],
    ],
    [
      'there is a successor: members come to trust it, and nothing is signed by it',
      () => at(authority(old, next), 'old', ['old'], { annotation: '1' }),
      ['widen to old+next'],
    ],
    [
      'applications are told of it before anybody shows what it signs',
      () => at(authority(old, next), 'old', ['old'], { recorded: ['old', 'next'], running: [['old']], commanded: '1' }),
      all.map((role) => `publishCABundle ${role}`),
    ],
    [
      'all trust it, but applications were not told yet',
      () => at(authority(old, next), 'old', ['old'], { recorded: ['old', 'next'], commanded: '1' }),
      all.map((role) => `publishCABundle ${role}`),
    ],
    [
      'one member has not started again',
      () => at(authority(old, next), 'old', ['old', 'next'], { running: [['old', 'next'], ['old']], commanded: '1' }),
      [],
    ],
    [
      'all trust it, but the command is not recorded: it would be carried out twice',
      () => at(authority(old, next), 'old', ['old', 'next'], { annotation: '1' }),
      [],
    ],
    [
      'all trust it: it takes the place of the old one',
      () => at(authority(old, next), 'old', ['old', 'next'], { annotation: '1', commanded: '1' }),
      ['promoteNextCA db-client-ca'],
    ],
    [
      'it has: everything is signed anew',
      () => at(authority(next), 'old', ['old', 'next']),
      all.map((role) => `issueCertificate ${role}`),
    ],
    ['all is signed: the old one may go', () => at(authority(next), 'next', ['old', 'next']), ['narrow to next']],
    ['a lost one is not replaced unasked', () => at(undefined, 'old', ['old']), []],
    ['but when somebody asks', () => at(undefined, 'old', ['old'], { annotation: '1' }), ['createNextCA db-client-ca']],
    [
      'and the next one takes its place as any other',
      () => at(authority(undefined, next), 'old', ['old', 'next'], { annotation: '1', commanded: '1' }),
      ['promoteNextCA db-client-ca'],
    ],
  ])('%s', (_, was, expected) => {
    expect(outcome(was())).toEqual(expected);
  });

  test('its successor is made after two thirds of its life, earlier for long certificates, and not all the time', async () => {
    const due = (duration: string, share: number): readonly string[] =>
      outcome({
        ...at(authority(old), 'old', ['old']),
        tls: { client: { managed: { duration, renewBefore: '5m' } } },
        now: NOW - DAY + CA_LIFETIME_MS * share,
      }).filter((line) => line.startsWith('createNextCA'));
    expect([due('720h', 0.66), due('720h', 0.67)]).toEqual([[], ['createNextCA db-client-ca']]);
    expect([due('35040h', 0.59), due('35040h', 0.61)]).toEqual([[], ['createNextCA db-client-ca']]); // four years
    expect([due('876000h', 0.49), due('876000h', 0.51)]).toEqual([[], ['createNextCA db-client-ca']]); // a hundred
  });

  test('applications get the time to learn of it, and then to get what it has signed', () => {
    const was = (ca: Secret, by: Name, now: number): Was => {
      const made = at(ca, by, ['old', 'next'], { commanded: '1', now });
      return { ...made, secrets: { ...made.secrets, 'db-client-tls': leaf(by, ['old', 'next'], NOW) } };
    };
    expect(outcome(was(authority(old, next), 'old', NOW + GRACE - 1_000))).toEqual([]);
    expect(outcome(was(authority(old, next), 'old', NOW + GRACE))).toEqual(['promoteNextCA db-client-ca']);
    expect(outcome(was(authority(next), 'next', NOW + GRACE - 1_000))).toEqual([]);
    expect(outcome(was(authority(next), 'next', NOW + GRACE))).toEqual(['narrow to next']);
  });

  test.each<[string, Tls]>([
    ['and clients show none', { client: { managed: { clientCertificates: 'None' } } }],
    ['nor what says whom members trust', managed],
  ])('all that it has signed is deleted in the middle, %s: it is made again', (_, tls) => {
    const was = (recorded: readonly Name[]): Was => {
      const gone = { [trustName('db', 'client', digest(...recorded))]: undefined };
      return { tls, recorded, commanded: '1', secrets: { 'db-client-ca': authority(old, next), ...gone } };
    };
    expect(outcome(was(['old']))).toContain('issueCertificate server');
    expect(outcome(was(['old', 'next']))).toContain('issueCertificate server');
    expect(judged(was(['old', 'next'])).view.bundles.flatMap(({ findings }) => findings)).toEqual([]);
  });

  test('also of one that somebody has put there: members show what it signs when clients know it', () => {
    const was = (now: number): Was => {
      const made = at(authority(next), 'old', ['old', 'next'], { now });
      return { ...made, secrets: { ...made.secrets, 'db-server-mounted': leaf('old', ['old', 'next'], NOW) } };
    };
    expect(outcome(was(NOW + GRACE - 1_000))).toEqual(['issueCertificate operator', 'issueCertificate application']);
    expect(outcome(was(NOW + GRACE))).toEqual(all.map((role) => `issueCertificate ${role}`));
    const expired = { ...was(NOW + 31 * DAY), incomplete: true };
    expect(outcome(expired)).toEqual(all.map((role) => `issueCertificate ${role}`));
  });

  test('what was asked for is recorded when its successor is there', () => {
    const commanded = (was: Was) => judged(was).view.trusts[0]?.requestedRotation;
    expect(commanded(at(authority(old), 'old', ['old'], { annotation: '1' }))).toBeUndefined();
    expect(commanded(at(authority(old, next), 'old', ['old'], { annotation: '1' }))).toBe('1');
    expect(commanded(at(authority(old, next), 'old', ['old'], { annotation: '1', commanded: '1' }))).toBeUndefined();
  });
});
