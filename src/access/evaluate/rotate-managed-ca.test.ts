/** Rotation of a managed CA: which Secrets are written when, depending on the CA bundles that members have loaded. */
import { beforeAll, describe, expect, test } from 'vitest';
import { NOW } from '../../../test/support/builders/builders.ts';
import { DAY, GRACE } from '../../../test/support/builders/credentials.ts';
import {
  digest,
  judged,
  leaf,
  makeCAs,
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

beforeAll(makeCAs);

describe('a managed CA', () => {
  const managed: Tls = { client: { managed: { duration: '720h' } } };
  const caSecret = (of: KeyPair | undefined, successor?: KeyPair): Secret =>
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
    ['no rotation is requested', () => at(caSecret(old), 'old', ['old']), []],
    [
      'a rotation is requested',
      () => at(caSecret(old), 'old', ['old'], { annotation: '1' }),
      ['createNextCA db-client-ca'],
    ],
    [
      'the requested rotation is done',
      () => at(caSecret(old), 'old', ['old'], { annotation: '1', commanded: '1' }),
      [],
    ],
    [
      'another rotation is requested',
      () => at(caSecret(old), 'old', ['old'], { annotation: '2', commanded: '1' }),
      ['createNextCA db-client-ca'],
    ],
    [
      'another rotation is requested while the previous one is not over',
      () => at(caSecret(next), 'next', ['old', 'next'], { annotation: '2', commanded: '1' }),
      ['narrow to next'],
    ],
    [
      'there is a next CA: it is added to the CA bundle, and signs nothing',
      () => at(caSecret(old, next), 'old', ['old'], { annotation: '1' }),
      ['widen to old+next'],
    ],
    [
      'applications get the next CA before members serve what it signs',
      () => at(caSecret(old, next), 'old', ['old'], { recorded: ['old', 'next'], running: [['old']], commanded: '1' }),
      all.map((role) => `publishCABundle ${role}`),
    ],
    [
      'all members trust it, but applications do not have it yet',
      () => at(caSecret(old, next), 'old', ['old'], { recorded: ['old', 'next'], commanded: '1' }),
      all.map((role) => `publishCABundle ${role}`),
    ],
    [
      'one member has not restarted',
      () => at(caSecret(old, next), 'old', ['old', 'next'], { running: [['old', 'next'], ['old']], commanded: '1' }),
      [],
    ],
    [
      'all members trust it, but the request is not recorded: the CA would be rotated twice',
      () => at(caSecret(old, next), 'old', ['old', 'next'], { annotation: '1' }),
      [],
    ],
    [
      'all members trust it: it replaces the current CA',
      () => at(caSecret(old, next), 'old', ['old', 'next'], { annotation: '1', commanded: '1' }),
      ['promoteNextCA db-client-ca'],
    ],
    [
      'it has replaced the current CA: all certificates are reissued',
      () => at(caSecret(next), 'old', ['old', 'next']),
      all.map((role) => `issueCertificate ${role}`),
    ],
    [
      'all certificates are reissued: the old CA is removed',
      () => at(caSecret(next), 'next', ['old', 'next']),
      ['narrow to next'],
    ],
    [
      'the seed is deleted during the rotation: the next seed starts with the current CA',
      () => at(caSecret(old, next), 'old', ['old', 'next'], { unformed: true }),
      [...all.map((role) => `publishCABundle ${role}`), 'begin to old'],
    ],
    [
      'the seed is deleted during the rotation of a lost CA: the next CA replaces it at once',
      () => at(caSecret(undefined, next), 'old', ['old', 'next'], { unformed: true }),
      ['promoteNextCA db-client-ca', ...all.map((role) => `publishCABundle ${role}`), 'begin to next'],
    ],
    [
      'then the certificates of the next seed are issued by it',
      () => at(caSecret(next), 'old', ['next'], { unformed: true }),
      [...all.map((role) => `issueCertificate ${role}`), 'begin to next'],
    ],
    ['a lost CA is not replaced unasked', () => at(undefined, 'old', ['old']), []],
    [
      'a lost CA is replaced when a rotation is requested',
      () => at(undefined, 'old', ['old'], { annotation: '1' }),
      ['createNextCA db-client-ca'],
    ],
    [
      'the next CA replaces a lost one in the same way',
      () => at(caSecret(undefined, next), 'old', ['old', 'next'], { annotation: '1', commanded: '1' }),
      ['promoteNextCA db-client-ca'],
    ],
  ])('%s', (_, was, expected) => {
    expect(outcome(was())).toEqual(expected);
  });

  test('the next CA is created after two thirds of the lifetime, earlier for long certificates, and never in the first half', async () => {
    const due = (duration: string, share: number): readonly string[] =>
      outcome({
        ...at(caSecret(old), 'old', ['old']),
        tls: { client: { managed: { duration, renewBefore: '5m' } } },
        now: NOW - DAY + CA_LIFETIME_MS * share,
      }).filter((line) => line.startsWith('createNextCA'));
    expect([due('720h', 0.66), due('720h', 0.67)]).toEqual([[], ['createNextCA db-client-ca']]);
    expect([due('35040h', 0.59), due('35040h', 0.61)]).toEqual([[], ['createNextCA db-client-ca']]); // four years
    expect([due('876000h', 0.49), due('876000h', 0.51)]).toEqual([[], ['createNextCA db-client-ca']]); // a hundred
  });

  test('applications get the grace period for the CA bundle, and again for the certificates', () => {
    const was = (ca: Secret, by: Name, now: number): Was => {
      const made = at(ca, by, ['old', 'next'], { commanded: '1', now });
      return { ...made, secrets: { ...made.secrets, 'db-client-tls': leaf(by, ['old', 'next'], NOW) } };
    };
    expect(outcome(was(caSecret(old, next), 'old', NOW + GRACE - 1_000))).toEqual([]);
    expect(outcome(was(caSecret(old, next), 'old', NOW + GRACE))).toEqual(['promoteNextCA db-client-ca']);
    expect(outcome(was(caSecret(next), 'next', NOW + GRACE - 1_000))).toEqual([]);
    expect(outcome(was(caSecret(next), 'next', NOW + GRACE))).toEqual(['narrow to next']);
  });

  test.each<[string, Tls]>([
    ['without mTLS', { client: { managed: { clientCertificates: 'None' } } }],
    ['together with the CA bundle', managed],
  ])('all certificates are deleted during the rotation, %s: they are issued again', (_, tls) => {
    const was = (recorded: readonly Name[]): Was => {
      const deleted = { [trustName('db', 'client', digest(...recorded))]: undefined };
      return { tls, recorded, commanded: '1', secrets: { 'db-client-ca': caSecret(old, next), ...deleted } };
    };
    expect(outcome(was(['old']))).toContain('issueCertificate server');
    expect(outcome(was(['old', 'next']))).toContain('issueCertificate server');
    expect(judged(was(['old', 'next'])).view.bundles.flatMap(({ findings }) => findings)).toEqual([]);
  });

  test('the server certificate of a CA that a user replaced is issued after the grace period of clients', () => {
    const was = (now: number): Was => {
      const made = at(caSecret(next), 'old', ['old', 'next'], { now });
      return { ...made, secrets: { ...made.secrets, 'db-server-mounted': leaf('old', ['old', 'next'], NOW) } };
    };
    expect(outcome(was(NOW + GRACE - 1_000))).toEqual(['issueCertificate operator', 'issueCertificate application']);
    expect(outcome(was(NOW + GRACE))).toEqual(all.map((role) => `issueCertificate ${role}`));
    const expired = { ...was(NOW + 31 * DAY), incomplete: true };
    expect(outcome(expired)).toEqual(all.map((role) => `issueCertificate ${role}`));
  });

  test('the request is recorded once the next CA exists', () => {
    const commanded = (was: Was) => judged(was).view.trusts[0]?.requestedRotation;
    expect(commanded(at(caSecret(old), 'old', ['old'], { annotation: '1' }))).toBeUndefined();
    expect(commanded(at(caSecret(old, next), 'old', ['old'], { annotation: '1' }))).toBe('1');
    expect(commanded(at(caSecret(old, next), 'old', ['old'], { annotation: '1', commanded: '1' }))).toBeUndefined();
  });
});
