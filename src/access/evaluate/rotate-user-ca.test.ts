/** An authority is exchanged in the Secret of a user: which Secrets are written at which moment, by what members have started with. */
import { beforeAll, describe, expect, test } from 'vitest';
import { NOW } from '../../../test/support/builders/builders.ts';
import { DAY, GRACE } from '../../../test/support/builders/credentials.ts';
import {
  leaf as copy,
  digest,
  judged,
  LONG_AGO,
  leaves,
  makeAuthorities,
  type Name,
  next,
  outcome,
  secret,
  texts,
  type Was,
} from '../../../test/support/builders/rotation.ts';
import { trustName } from '../../api/names.ts';
import type { Tls } from '../../api/tls.ts';
import type { Secret } from '../../gen/kube.ts';
import { issue } from '../../pki/issue.ts';
import { systemKeySource } from '../../pki/key-source.ts';
import { digestOf } from './ca-bundle.ts';

beforeAll(makeAuthorities);

describe('by the Secret of a user', () => {
  const peer: Tls = { peer: { secretRef: { name: 'mine' } } };
  const given = (by: Name, trust: readonly Name[] = [by]): Secret =>
    secret({ 'tls.crt': leaves[by].cert, 'tls.key': leaves[by].key, 'ca.crt': texts(trust) }, false);
  const at = (source: Secret, mounted: Secret | undefined, more: Partial<Was>): Was => ({
    tls: peer,
    recorded: ['old'],
    secrets: { mine: source, 'db-peer-mounted': mounted },
    ...more,
  });

  test.each<[string, () => Was, readonly string[]]>([
    ['all is as it was', () => at(given('old'), copy('old', ['old']), {}), []],
    [
      'another authority with its certificate: trust is widened, and the certificate waits',
      () => at(given('next'), copy('old', ['old']), {}),
      ['widen to old+next'],
    ],
    [
      'widened, and nobody has started again: the certificate waits, those who come are told',
      () => at(given('next'), copy('old', ['old']), { recorded: ['old', 'next'], running: [['old']] }),
      ['publishCABundle peer'],
    ],
    [
      'widened, and one has not started again',
      () =>
        at(given('next'), copy('old', ['old', 'next']), {
          recorded: ['old', 'next'],
          running: [['old', 'next'], ['old']],
        }),
      [],
    ],
    [
      'widened, and one has no Pod: it may start with what was recorded before',
      () => at(given('next'), copy('old', ['old', 'next']), { recorded: ['old', 'next'], incomplete: true }),
      [],
    ],
    [
      'all trust both: the certificate is exchanged',
      () => at(given('next'), copy('old', ['old', 'next']), { recorded: ['old', 'next'] }),
      ['copyCertificate peer'],
    ],
    [
      'the certificate is exchanged: the old authority may go',
      () => at(given('next'), copy('next', ['old', 'next']), { recorded: ['old', 'next'] }),
      ['narrow to next'],
    ],
    [
      'narrowed',
      () => at(given('next'), copy('next', ['next']), { recorded: ['next'], running: [['old', 'next']] }),
      [],
    ],
    [
      'changed again before all trust the first change: nothing is taken from anybody',
      () => at(given('third'), copy('old', ['old', 'next']), { recorded: ['old', 'next'], running: [['old']] }),
      ['widen to old+next+third'],
    ],
    [
      'changed again while the first is being narrowed to: what is shown stays trusted',
      () => at(given('third'), copy('next', ['next']), { recorded: ['next'], running: [['old', 'next'], ['next']] }),
      ['widen to next+third'],
    ],
    [
      'taken back before the certificate was exchanged: the new authority goes',
      () => at(given('old'), copy('old', ['old', 'next']), { recorded: ['old', 'next'], running: [['old']] }),
      ['narrow to old'],
    ],
    [
      'only one more authority: it is trusted, and nothing else happens',
      () => at(given('old', ['old', 'next']), copy('old', ['old']), {}),
      ['widen to old+next'],
    ],
    [
      'one authority less, that vouches for nothing',
      () => at(given('old'), copy('old', ['old', 'next']), { recorded: ['old', 'next'] }),
      ['narrow to old'],
    ],
    [
      'the authority goes from the Secret while its certificate is shown',
      () =>
        at(given('next', ['next']), copy('old', ['old', 'next']), { recorded: ['old', 'next'], running: [['old']] }),
      [],
    ],
    [
      'a certificate that all take is renewed also while some do not trust the new authority yet',
      () =>
        at(given('old', ['old', 'next']), secret({ 'ca.crt': texts(['old', 'next']), 'tls.crt': '', 'tls.key': '' }), {
          recorded: ['old', 'next'],
          running: [['old']],
        }),
      ['copyCertificate peer'],
    ],
    [
      'the Secret is of no use: everything stays where it is',
      () =>
        at(secret({ 'ca.crt': texts(['next']) }, false), copy('old', ['old', 'next']), { recorded: ['old', 'next'] }),
      [],
    ],
    [
      'what members mount is gone, and the authority is another: nothing is put there that they do not take',
      () => at(given('next'), undefined, {}),
      ['widen to old+next'],
    ],
  ])('%s', (_, was, expected) => {
    expect(outcome(was())).toEqual(expected);
  });

  test('nothing is recorded before its Secret is there', () => {
    const was = { ...at(given('next'), copy('old', ['old']), {}), unwritten: true };
    expect(outcome(was)).toEqual([]);
    const todo = judged(was).view.bundles.filter((bundle) => bundle.todo === 'writeCABundle');
    expect(todo.map(({ secret: name }) => name)).toEqual([trustName('db', 'peer', digest('old', 'next'))]);
  });

  test('a certificate that waits to be exchanged is exchanged before anybody is trusted less', async () => {
    const hosts = ['*.db.ns.svc', '*.db.ns.svc.cluster.local'];
    const renewed = await issue(next, { name: 'y', hosts, usages: [], durationMs: 30 * DAY }, NOW, systemKeySource);
    const source = secret({ 'tls.crt': renewed.cert, 'tls.key': renewed.key, 'ca.crt': texts(['next']) }, false);
    expect(outcome(at(source, copy('next', ['old', 'next']), { recorded: ['old', 'next'] }))).toEqual([
      'copyCertificate peer',
    ]);
  });

  test('a Secret that has the name and says something else vouches for nothing', () => {
    const was = at(given('next'), copy('old', ['old', 'next']), {
      recorded: ['old', 'next'],
      running: [['old', 'third']],
    });
    const bundle = trustName('db', 'peer', digest('old', 'third'));
    expect(
      outcome({ ...was, secrets: { ...was.secrets, [bundle]: secret({ 'ca.crt': texts(['old', 'next']) }) } }),
    ).toEqual([]);
  });

  test('a damaged copy is made anew at once: nobody takes it', () => {
    const damaged = secret({ 'tls.crt': 'x', 'tls.key': 'x', 'ca.crt': texts(['old']) }, true, NOW);
    const was: Was = {
      tls: { client: { serverSecretRef: { name: 'mine' } } },
      recorded: ['old'],
      running: [],
      secrets: { mine: given('old'), 'db-server-mounted': damaged },
    };
    expect(outcome(was)).toEqual(['copyCertificate server']);
  });

  test('what a member has started with and nobody can read vouches for nothing', () => {
    const was = at(given('next'), copy('old', ['old', 'next']), {
      recorded: ['old', 'next'],
      running: [['old', 'third']],
    });
    const unread = {
      ...was,
      secrets: { ...was.secrets, [trustName('db', 'peer', digest('old', 'third'))]: undefined },
    };
    expect(outcome(unread)).toEqual([]);
  });

  test('members and the operator trust both while it lasts', () => {
    const client: Tls = { client: { serverSecretRef: { name: 'mine' }, operatorClientSecretRef: { name: 'op' } } };
    const was: Was = {
      tls: client,
      recorded: ['old', 'next'],
      running: [['old'], ['old', 'next']],
      secrets: {
        mine: given('next'),
        op: given('next'),
        'db-server-mounted': copy('old', ['old', 'next']),
        'db-operator-mounted': copy('old', ['old', 'next']),
      },
    };
    const { material } = judged(was);
    expect(digestOf(material?.ca ?? '')).toBe(digest('old', 'next'));
    expect(material?.cert).toBe(leaves.old.cert); // the new one is refused by a member that trusts the old one only
    const without = { ...was.secrets, 'db-operator-mounted': undefined };
    expect(judged({ ...was, secrets: without }).material?.cert).toBe(leaves.old.cert);
    const all = { ...was, running: [['old', 'next']] as const };
    expect(outcome(all)).toEqual(['copyCertificate server', 'copyCertificate operator']);
  });

  test('clients get the time to learn of an authority, and to get certificates of it', () => {
    const client: Tls = { client: { serverSecretRef: { name: 'mine' } } };
    const was = (by: Name, writtenAt: number, now: number): Was => ({
      tls: client,
      recorded: ['old', 'next'],
      running: [],
      secrets: { mine: given('next'), 'db-server-mounted': copy(by, ['old', 'next'], writtenAt) },
      now,
    });
    expect(outcome(was('old', NOW, NOW + GRACE - 1_000))).toEqual([]);
    expect(outcome(was('old', NOW, NOW + GRACE))).toEqual(['copyCertificate server']);
    expect(outcome(was('next', NOW, NOW + GRACE - 1_000))).toEqual([]);
    expect(outcome(was('next', NOW, NOW + GRACE))).toEqual(['narrow to next']);
    expect(judged(was('old', NOW, NOW)).view.trusts[0]?.reachedAt).toBe(NOW + GRACE);
  });

  test('clients get that time also when the old authority stays in the Secret next to the new one', () => {
    const was = (trust: readonly Name[], writtenAt: number): Was => ({
      tls: { client: { serverSecretRef: { name: 'mine' } } },
      recorded: ['old', 'next'],
      running: [],
      secrets: { mine: given('next', ['old', 'next']), 'db-server-mounted': copy('old', trust, writtenAt) },
    });
    expect(outcome(was(['old'], LONG_AGO))).toEqual(['publishCABundle server']);
    expect(outcome(was(['old', 'next'], NOW - GRACE + 1_000))).toEqual([]);
    expect(outcome(was(['old', 'next'], NOW - GRACE))).toEqual(['copyCertificate server']);
    const lookedAt = (writtenAt: number) => judged(was(['old', 'next'], writtenAt)).view.certificates[0]?.renewAt;
    expect([lookedAt(NOW - GRACE + 1_000), lookedAt(NOW - GRACE)]).toEqual([NOW + 1_000, undefined]);
  });

  test('the certificate of the operator must be of the new authority before the old one goes', () => {
    const client: Tls = { client: { serverSecretRef: { name: 'mine' }, operatorClientSecretRef: { name: 'op' } } };
    const was: Was = {
      tls: client,
      recorded: ['old', 'next'],
      secrets: {
        mine: given('next'),
        op: given('old'),
        'db-server-mounted': copy('next', ['old', 'next']),
        'db-operator-mounted': copy('old', ['old', 'next']),
      },
    };
    expect(outcome(was)).toEqual([]);
    expect(judged(was).view.trusts[0]?.notReissued).toEqual(['op']);
  });
});
