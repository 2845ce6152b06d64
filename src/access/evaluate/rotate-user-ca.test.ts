/** Rotation of the CA in a user's Secret: which Secrets are written when, depending on the CA bundles that members have loaded. */
import { beforeAll, describe, expect, test } from 'vitest';
import { NOW } from '../../../test/support/builders/builders.ts';
import { DAY, GRACE } from '../../../test/support/builders/credentials.ts';
import {
  leaf as copy,
  digest,
  judged,
  LONG_AGO,
  leaves,
  makeCAs,
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

beforeAll(makeCAs);

describe('a CA in the Secret of a user', () => {
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
    ['nothing has changed', () => at(given('old'), copy('old', ['old']), {}), []],
    [
      'another CA with its certificate: the CA bundle is widened, and the certificate waits',
      () => at(given('next'), copy('old', ['old']), {}),
      ['widen to old+next'],
    ],
    [
      'widened, and no member has restarted: the certificate waits, clients get the CA bundle',
      () => at(given('next'), copy('old', ['old']), { recorded: ['old', 'next'], running: [['old']] }),
      ['publishCABundle peer'],
    ],
    [
      'widened, and one member has not restarted',
      () =>
        at(given('next'), copy('old', ['old', 'next']), {
          recorded: ['old', 'next'],
          running: [['old', 'next'], ['old']],
        }),
      [],
    ],
    [
      'widened, and one member has no Pod: it may start with the previous CA bundle',
      () => at(given('next'), copy('old', ['old', 'next']), { recorded: ['old', 'next'], incomplete: true }),
      [],
    ],
    [
      'all members trust both CAs: the certificate is copied',
      () => at(given('next'), copy('old', ['old', 'next']), { recorded: ['old', 'next'] }),
      ['copyCertificate peer'],
    ],
    [
      'the certificate is copied: the old CA is removed',
      () => at(given('next'), copy('next', ['old', 'next']), { recorded: ['old', 'next'] }),
      ['narrow to next'],
    ],
    [
      'narrowed',
      () => at(given('next'), copy('next', ['next']), { recorded: ['next'], running: [['old', 'next']] }),
      [],
    ],
    [
      'changed again before all members trust the first change: no CA is removed',
      () => at(given('third'), copy('old', ['old', 'next']), { recorded: ['old', 'next'], running: [['old']] }),
      ['widen to old+next+third'],
    ],
    [
      'changed again during the narrowing: the CA of the served certificates stays trusted',
      () => at(given('third'), copy('next', ['next']), { recorded: ['next'], running: [['old', 'next'], ['next']] }),
      ['widen to next+third'],
    ],
    [
      'changed back before the certificate was copied: the new CA is removed',
      () => at(given('old'), copy('old', ['old', 'next']), { recorded: ['old', 'next'], running: [['old']] }),
      ['narrow to old'],
    ],
    [
      'one more CA only: it is trusted, and nothing else happens',
      () => at(given('old', ['old', 'next']), copy('old', ['old']), {}),
      ['widen to old+next'],
    ],
    [
      'one CA less, which has signed nothing',
      () => at(given('old'), copy('old', ['old', 'next']), { recorded: ['old', 'next'] }),
      ['narrow to old'],
    ],
    [
      'the CA is removed from the Secret while its certificate is served',
      () =>
        at(given('next', ['next']), copy('old', ['old', 'next']), { recorded: ['old', 'next'], running: [['old']] }),
      [],
    ],
    [
      'a certificate that all members accept is renewed, also while some do not trust the new CA yet',
      () =>
        at(given('old', ['old', 'next']), secret({ 'ca.crt': texts(['old', 'next']), 'tls.crt': '', 'tls.key': '' }), {
          recorded: ['old', 'next'],
          running: [['old']],
        }),
      ['copyCertificate peer'],
    ],
    [
      'the Secret is invalid: nothing is written',
      () =>
        at(secret({ 'ca.crt': texts(['next']) }, false), copy('old', ['old', 'next']), { recorded: ['old', 'next'] }),
      [],
    ],
    [
      'the mounted Secret was deleted, and the CA is another: no certificate is copied that members reject',
      () => at(given('next'), undefined, {}),
      ['widen to old+next'],
    ],
  ])('%s', (_, was, expected) => {
    expect(outcome(was())).toEqual(expected);
  });

  test('no digest is recorded before its Secret exists', () => {
    const was = { ...at(given('next'), copy('old', ['old']), {}), unwritten: true };
    expect(outcome(was)).toEqual([]);
    const todo = judged(was).view.bundles.filter((bundle) => bundle.todo === 'writeCABundle');
    expect(todo.map(({ secret: name }) => name)).toEqual([trustName('db', 'peer', digest('old', 'next'))]);
  });

  test('a waiting certificate is copied before the CA bundle is narrowed', async () => {
    const hosts = ['*.db.ns.svc', '*.db.ns.svc.cluster.local'];
    const renewed = await issue(next, { name: 'y', hosts, usages: [], durationMs: 30 * DAY }, NOW, systemKeySource);
    const source = secret({ 'tls.crt': renewed.cert, 'tls.key': renewed.key, 'ca.crt': texts(['next']) }, false);
    expect(outcome(at(source, copy('next', ['old', 'next']), { recorded: ['old', 'next'] }))).toEqual([
      'copyCertificate peer',
    ]);
  });

  test('a CA bundle Secret with other contents than its name counts as unreadable', () => {
    const was = at(given('next'), copy('old', ['old', 'next']), {
      recorded: ['old', 'next'],
      running: [['old', 'third']],
    });
    const bundle = trustName('db', 'peer', digest('old', 'third'));
    expect(
      outcome({ ...was, secrets: { ...was.secrets, [bundle]: secret({ 'ca.crt': texts(['old', 'next']) }) } }),
    ).toEqual([]);
  });

  test('a damaged copy is written again at once: no client accepts it', () => {
    const damaged = secret({ 'tls.crt': 'x', 'tls.key': 'x', 'ca.crt': texts(['old']) }, true, NOW);
    const was: Was = {
      tls: { client: { serverSecretRef: { name: 'mine' } } },
      recorded: ['old'],
      running: [],
      secrets: { mine: given('old'), 'db-server-mounted': damaged },
    };
    expect(outcome(was)).toEqual(['copyCertificate server']);
  });

  test('a member with a missing CA bundle Secret accepts nothing', () => {
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

  test('members and the operator trust both CAs during the rotation', () => {
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
    expect(material?.cert).toBe(leaves.old.cert); // a member that trusts only the old CA rejects the new certificate
    const without = { ...was.secrets, 'db-operator-mounted': undefined };
    expect(judged({ ...was, secrets: without }).material?.cert).toBe(leaves.old.cert);
    const all = { ...was, running: [['old', 'next']] as const };
    expect(outcome(all)).toEqual(['copyCertificate server', 'copyCertificate operator']);
  });

  test('a member whose CA bundle Secret was deleted does not leave the operator without a certificate', () => {
    const deleted = trustName('db', 'client', digest('old'));
    const was: Was = {
      tls: { client: { serverSecretRef: { name: 'mine' }, operatorClientSecretRef: { name: 'op' } } },
      recorded: ['old', 'next'],
      running: [['old'], ['old', 'next']],
      secrets: {
        mine: given('next'),
        op: given('next'),
        'db-server-mounted': copy('old', ['old', 'next']),
        'db-operator-mounted': copy('old', ['old', 'next']),
        [deleted]: undefined,
      },
    };
    expect(judged(was).material?.cert).toBe(leaves.old.cert);
    expect(outcome(was)).toEqual([]); // whether that member accepts another certificate is not known
  });

  describe('without mTLS, where no Secret has the CA bundle until it is published', () => {
    const was = (source: Name): Was => ({
      tls: { client: { serverSecretRef: { name: 'mine' } } },
      recorded: ['old', 'next'],
      running: [],
      secrets: {
        mine: given(source),
        'db-server-mounted': copy('old', ['old']),
        [trustName('db', 'client', digest('old', 'next'))]: undefined,
      },
    });

    test('the operator trusts both CAs, and publishes them', () => {
      expect(outcome(was('next'))).toEqual(['publishCABundle server']);
      expect(digestOf(judged(was('next')).material?.ca ?? '')).toBe(digest('old', 'next'));
    });

    test('the operator still trusts the CA that clients have when a user changes the CA again before that', () => {
      expect(outcome(was('third'))).toEqual(['widen to old+third']);
      expect(digestOf(judged(was('third')).material?.ca ?? '')).toBe(digest('old', 'third'));
    });
  });

  test('clients get the grace period for the CA bundle, and again for the certificates', () => {
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

  test('clients get the grace period also when the old CA stays in the Secret next to the new one', () => {
    const was = (trust: readonly Name[], writtenAt: number): Was => ({
      tls: { client: { serverSecretRef: { name: 'mine' } } },
      recorded: ['old', 'next'],
      running: [],
      secrets: { mine: given('next', ['old', 'next']), 'db-server-mounted': copy('old', trust, writtenAt) },
    });
    expect(outcome(was(['old'], LONG_AGO))).toEqual(['publishCABundle server']);
    expect(outcome(was(['old', 'next'], NOW - GRACE + 1_000))).toEqual([]);
    expect(outcome(was(['old', 'next'], NOW - GRACE))).toEqual(['copyCertificate server']);
    const renewAt = (writtenAt: number) => judged(was(['old', 'next'], writtenAt)).view.certificates[0]?.renewAt;
    expect([renewAt(NOW - GRACE + 1_000), renewAt(NOW - GRACE)]).toEqual([NOW + 1_000, undefined]);
  });

  test('the operator certificate must be of the new CA before the old one is removed', () => {
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
