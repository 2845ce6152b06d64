/** CAs and certificates that have expired while members ran, or while the operator did not: what is written and recorded then. */
import { beforeAll, describe, expect, test } from 'vitest';
import { NOW } from '../../../test/support/builders/builders.ts';
import { DAY } from '../../../test/support/builders/credentials.ts';
import {
  leaf as copy,
  digest,
  judged,
  leaves,
  makeCAsSince,
  type Name,
  next,
  old,
  outcome,
  secret,
  texts,
  type Was,
} from '../../../test/support/builders/rotation.ts';
import { trustName } from '../../api/names.ts';
import type { Tls } from '../../api/tls.ts';
import type { Secret } from '../../gen/kube.ts';
import { CA_LIFETIME_MS, type KeyPair } from '../../pki/issue.ts';
import { NEXT_CERT, NEXT_KEY } from './ca.ts';

const peer: Tls = { peer: { secretRef: { name: 'mine' } } };
const given = (by: Name, trust: readonly Name[] = [by]): Secret =>
  secret({ 'tls.crt': leaves[by].cert, 'tls.key': leaves[by].key, 'ca.crt': texts(trust) }, false);
const at = (source: Secret, mounted: Secret, more: Partial<Was> = {}): Was => ({
  tls: peer,
  recorded: ['old'],
  secrets: { mine: source, 'db-peer-mounted': mounted },
  ...more,
});
const expiredIn = (was: Was): readonly string[] => judged(was).view.trusts.flatMap(({ expired = [] }) => expired);
const bundle = (...names: readonly Name[]): string => trustName('db', 'peer', digest(...names));

describe('an expired CA', () => {
  beforeAll(() => makeCAsSince(NOW - CA_LIFETIME_MS - 10 * DAY));

  test.each<[string, () => Was, readonly string[]]>([
    ['of a user who has not replaced it: nothing is written', () => at(given('old'), copy('old', ['old'])), []],
    [
      'that the user has replaced: the new bundle takes its place at once, because the old one protects no connection',
      () => at(given('next'), copy('old', ['old'])),
      ['replace to next'],
    ],
    [
      'that is replaced: the new certificate does not wait for members that refuse every certificate',
      () => at(given('next'), copy('old', ['old']), { recorded: ['next'], running: [['old'], ['old']] }),
      ['copyCertificate peer'],
    ],
    [
      'that was in a wider bundle when it expired: the new certificate does not wait either',
      () => at(given('next'), copy('old', ['old']), { recorded: ['old', 'next'], running: [['old']] }),
      ['copyCertificate peer'],
    ],
    [
      'beside one that is valid: a member has loaded it, and the certificate waits',
      () => at(given('next'), copy('old', ['old']), { recorded: ['next'], running: [['old'], ['third']] }),
      ['publishCABundle peer'],
    ],
  ])('%s', (_, was, expected) => {
    expect(outcome(was())).toEqual(expected);
  });

  test('members that have loaded it are reached by no new connection, and others are', () => {
    const was = at(given('next'), copy('next', ['next']), { recorded: ['next'], running: [['old'], ['next']] });
    expect(expiredIn(was)).toEqual([bundle('old')]);
  });

  describe('of the operator', () => {
    const managed: Tls = { peer: { managed: { duration: '720h' } } };
    const caSecret = (of: KeyPair, successor?: KeyPair): Secret =>
      secret({
        'tls.crt': of.cert,
        'tls.key': of.key,
        ...(successor && { [NEXT_CERT]: successor.cert, [NEXT_KEY]: successor.key }),
      });
    const of = (ca: Secret, recorded: readonly Name[]): Was => ({
      tls: managed,
      recorded,
      running: [['old']],
      secrets: { 'db-peer-ca': ca, 'db-peer-mounted': copy('old', ['old']) },
    });

    test.each<[string, () => Was, readonly string[]]>([
      ['the next CA is created', () => of(caSecret(old), ['old']), ['createNextCA db-peer-ca']],
      [
        'another one is created when the next CA has expired, too',
        () => of(caSecret(old, old), ['old']),
        ['createNextCA db-peer-ca'],
      ],
      ['its bundle takes the place', () => of(caSecret(old, next), ['old']), ['replace to next']],
      [
        'it becomes the CA',
        () => of(caSecret(old, next), ['next']),
        ['promoteNextCA db-peer-ca', 'publishCABundle peer'],
      ],
      ['it issues the certificates', () => of(caSecret(next), ['next']), ['issueCertificate peer']],
    ])('%s', (_, was, expected) => {
      expect(outcome(was())).toEqual(expected);
    });
  });
});

describe('an expired certificate of a CA that is valid', () => {
  beforeAll(() => makeCAsSince(NOW - 100 * DAY));

  test('and a renewed one of the same CA: members load it without a restart', () => {
    const renewed = { ...given('old'), data: { ...given('old').data } };
    expect(expiredIn(at(renewed, copy('next', ['old']), { recorded: ['old'] }))).toEqual([]);
  });

  test('and one of another CA: only a restart helps, with both CAs', () => {
    const was = at(given('next'), copy('old', ['old']));
    expect(outcome(was)).toEqual(['widen to old+next']);
    expect(expiredIn(was)).toEqual([bundle('old')]);
  });

  test('and nothing that replaces it: members are cut off, and the Secret has to be corrected', () => {
    const was = at(given('old'), copy('old', ['old']));
    expect(outcome(was)).toEqual([]);
    expect(expiredIn(was)).toEqual([bundle('old')]);
  });
});
