/** An authority is exchanged: which Secrets are written at which moment, by what members have started with. */
import { beforeAll, describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_UID, FORMED, NOW } from '../../test/support/builders.ts';
import type { EtcdClusterStatus } from '../api/etcd-cluster-status.ts';
import { API_VERSION, ROTATE_ANNOTATION, trustName, WRITTEN_AT_ANNOTATION } from '../api/names.ts';
import type { Tls } from '../api/tls.ts';
import type { Secret } from '../gen/kube.ts';
import { systemChance } from '../pki/chance.ts';
import { AUTHORITY_MS, createAuthority, issue, type KeyPair } from '../pki/issue.ts';
import { NEXT_CERT, NEXT_KEY } from './authority.ts';
import { type Judged, judge } from './judge.ts';
import type { Mounted } from './mounted.ts';
import { digestOf } from './trust.ts';

const DAY = 24 * 60 * 60_000;
const GRACE = 120_000;
const LONG_AGO = NOW - DAY;

let old: KeyPair;
let next: KeyPair;
let third: KeyPair;
let leaves: Readonly<Record<'old' | 'next' | 'third', KeyPair>>;

beforeAll(async () => {
  [old, next, third] = (await Promise.all(
    ['old', 'next', 'third'].map((name) => createAuthority(name, NOW - DAY, systemChance)),
  )) as [KeyPair, KeyPair, KeyPair];
  const hosts = ['*.db.ns.svc', '*.db.ns.svc.cluster.local', 'db-client.ns.svc'];
  const by = (ca: KeyPair): Promise<KeyPair> =>
    issue(ca, { name: 'x', hosts, usages: ['server auth', 'client auth'], durationMs: 30 * DAY }, NOW, systemChance);
  leaves = { old: await by(old), next: await by(next), third: await by(third) };
});

type Name = 'old' | 'next' | 'third';
const certOf = (name: Name): string => ({ old, next, third })[name].cert;
/** Whom these together are. */
const texts = (names: readonly Name[]): string => names.map(certOf).join('');
const digest = (...names: readonly Name[]): string => digestOf(texts(names)) ?? '';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
function secret(data: Readonly<Record<string, string>>, ofCluster = true, writtenAt = LONG_AGO): Secret {
  const owner = { apiVersion: API_VERSION, kind: 'EtcdCluster', name: 'db', uid: CLUSTER_UID, controller: true };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...(ofCluster && { ownerReferences: [owner] }),
      annotations: { [WRITTEN_AT_ANNOTATION]: new Date(writtenAt).toISOString() },
    },
    data: Object.fromEntries(Object.entries(data).map(([name, text]) => [name, base64(text)])),
  };
}

interface Was {
  readonly tls: Tls;
  /** What is recorded, and what members have that run. */
  readonly recorded: readonly Name[];
  readonly running?: readonly (readonly Name[])[];
  readonly incomplete?: boolean;
  readonly secrets: Readonly<Record<string, Secret | undefined>>;
  readonly annotation?: string;
  readonly commanded?: string;
  readonly now?: number;
  /** The Secret for what is to be recorded next is not there yet. */
  readonly unwritten?: boolean;
}

function judged(was: Was): Judged {
  const { tls, recorded, running = [recorded], now = NOW } = was;
  const parts = [...(tls.client ? (['client'] as const) : []), ...(tls.peer ? (['peer'] as const) : [])];
  const of = <T>(value: T): Record<string, T> => Object.fromEntries(parts.map((part) => [part, value]));
  const status: EtcdClusterStatus = {
    ...FORMED,
    trust: { ...of(digest(...recorded)), ...(was.commanded !== undefined && { commanded: of(was.commanded) }) },
  };
  const made = aCluster({ spec: { tls }, status });
  const annotations = was.annotation === undefined ? {} : { [ROTATE_ANNOTATION]: was.annotation };
  const cluster = { ...made, metadata: { ...made.metadata, annotations } };
  const bundles = (part: 'client' | 'peer') => running.map((names) => trustName('db', part, digest(...names)));
  const mounted: Mounted = {
    running: true,
    complete: was.incomplete !== true,
    bundles: { client: bundles('client'), peer: bundles('peer') },
  };
  const there = (['client', 'peer'] as const).flatMap((part) =>
    [recorded, ...running].map(
      (names) => [trustName('db', part, digest(...names)), secret({ 'ca.crt': texts(names) })] as const,
    ),
  );
  const held = new Map([...there, ...Object.entries(was.secrets)]);
  const around = { now, domain: 'cluster.local', mounted, graceMs: GRACE };
  const first = judge(cluster, held, around);
  if (was.unwritten) return first;
  for (const [name, text] of first.bundles) if (!held.has(name)) held.set(name, secret({ 'ca.crt': text }));
  return judge(cluster, held, around);
}

/** What is to be written, and what is to be recorded. */
function outcome(was: Was): readonly string[] {
  const { view } = judged(was);
  const nameOf = (of: string): string => {
    const sets: readonly (readonly Name[])[] = [
      ['old'],
      ['next'],
      ['third'],
      ['old', 'next'],
      ['next', 'third'],
      ['old', 'third'],
      ['old', 'next', 'third'],
    ];
    return sets.find((names) => digest(...names) === of)?.join('+') ?? 'unknown';
  };
  return [
    ...view.authorities.flatMap(({ secret: name, todo }) => (todo ? [`${todo} ${name}`] : [])),
    ...view.certificates.flatMap(({ need, todo }) => (todo ? [`${todo} ${need.role}`] : [])),
    ...view.trusts.flatMap((t) => (t.next ? [`${t.next.step} to ${nameOf(t.next.digest)}`] : [])),
  ];
}

describe('by the Secret of a user', () => {
  const peer: Tls = { peer: { secretRef: { name: 'mine' } } };
  const given = (by: Name, trust: readonly Name[] = [by]): Secret =>
    secret({ 'tls.crt': leaves[by].cert, 'tls.key': leaves[by].key, 'ca.crt': texts(trust) }, false);
  const copy = (by: Name, trust: readonly Name[], writtenAt?: number): Secret =>
    secret({ 'tls.crt': leaves[by].cert, 'tls.key': leaves[by].key, 'ca.crt': texts(trust) }, true, writtenAt);
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
      ['publish peer'],
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
      ['copyLeaf peer'],
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
      ['copyLeaf peer'],
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
    const todo = judged(was).view.bundles.filter((bundle) => bundle.todo === 'bundle');
    expect(todo.map(({ secret: name }) => name)).toEqual([trustName('db', 'peer', digest('old', 'next'))]);
  });

  test('a certificate that waits to be exchanged is exchanged before anybody is trusted less', async () => {
    const hosts = ['*.db.ns.svc', '*.db.ns.svc.cluster.local'];
    const renewed = await issue(next, { name: 'y', hosts, usages: [], durationMs: 30 * DAY }, NOW, systemChance);
    const source = secret({ 'tls.crt': renewed.cert, 'tls.key': renewed.key, 'ca.crt': texts(['next']) }, false);
    expect(outcome(at(source, copy('next', ['old', 'next']), { recorded: ['old', 'next'] }))).toEqual([
      'copyLeaf peer',
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
    expect(outcome(was)).toEqual(['copyLeaf server']);
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
    expect(outcome(all)).toEqual(['copyLeaf server', 'copyLeaf operator']);
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
    expect(outcome(was('old', NOW, NOW + GRACE))).toEqual(['copyLeaf server']);
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
    expect(outcome(was(['old'], LONG_AGO))).toEqual(['publish server']);
    expect(outcome(was(['old', 'next'], NOW - GRACE + 1_000))).toEqual([]);
    expect(outcome(was(['old', 'next'], NOW - GRACE))).toEqual(['copyLeaf server']);
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
    expect(judged(was).view.trusts[0]?.unexchanged).toEqual(['op']);
  });
});

describe('of the operator', () => {
  const managed: Tls = { client: { managed: { duration: '720h' } } };
  const authority = (of: KeyPair | undefined, successor?: KeyPair): Secret =>
    secret({
      'tls.crt': of?.cert ?? '',
      'tls.key': of?.key ?? '',
      ...(successor && { [NEXT_CERT]: successor.cert, [NEXT_KEY]: successor.key }),
    });
  const leaf = (by: Name, trust: readonly Name[], writtenAt?: number): Secret =>
    secret({ 'tls.crt': leaves[by].cert, 'tls.key': leaves[by].key, 'ca.crt': texts(trust) }, true, writtenAt);
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
    ['somebody asks', () => at(authority(old), 'old', ['old'], { annotation: '1' }), ['prepare db-client-ca']],
    ['what was asked for was done', () => at(authority(old), 'old', ['old'], { annotation: '1', commanded: '1' }), []],
    [
      'somebody asks once more',
      () => at(authority(old), 'old', ['old'], { annotation: '2', commanded: '1' }),
      ['prepare db-client-ca'],
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
      all.map((role) => `publish ${role}`),
    ],
    [
      'all trust it, but applications were not told yet',
      () => at(authority(old, next), 'old', ['old'], { recorded: ['old', 'next'], commanded: '1' }),
      all.map((role) => `publish ${role}`),
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
      ['succeed db-client-ca'],
    ],
    [
      'it has: everything is signed anew',
      () => at(authority(next), 'old', ['old', 'next']),
      all.map((role) => `issue ${role}`),
    ],
    ['all is signed: the old one may go', () => at(authority(next), 'next', ['old', 'next']), ['narrow to next']],
    ['a lost one is not replaced unasked', () => at(undefined, 'old', ['old']), []],
    ['but when somebody asks', () => at(undefined, 'old', ['old'], { annotation: '1' }), ['prepare db-client-ca']],
    [
      'and the next one takes its place as any other',
      () => at(authority(undefined, next), 'old', ['old', 'next'], { annotation: '1', commanded: '1' }),
      ['succeed db-client-ca'],
    ],
  ])('%s', (_, was, expected) => {
    expect(outcome(was())).toEqual(expected);
  });

  test('its successor is made after two thirds of its life, earlier for long certificates, and not all the time', async () => {
    const due = (duration: string, share: number): readonly string[] =>
      outcome({
        ...at(authority(old), 'old', ['old']),
        tls: { client: { managed: { duration, renewBefore: '5m' } } },
        now: NOW - DAY + AUTHORITY_MS * share,
      }).filter((line) => line.startsWith('prepare'));
    expect([due('720h', 0.66), due('720h', 0.67)]).toEqual([[], ['prepare db-client-ca']]);
    expect([due('35040h', 0.59), due('35040h', 0.61)]).toEqual([[], ['prepare db-client-ca']]); // four years
    expect([due('876000h', 0.49), due('876000h', 0.51)]).toEqual([[], ['prepare db-client-ca']]); // a hundred
  });

  test('applications get the time to learn of it, and then to get what it has signed', () => {
    const was = (ca: Secret, by: Name, now: number): Was => {
      const made = at(ca, by, ['old', 'next'], { commanded: '1', now });
      return { ...made, secrets: { ...made.secrets, 'db-client-tls': leaf(by, ['old', 'next'], NOW) } };
    };
    expect(outcome(was(authority(old, next), 'old', NOW + GRACE - 1_000))).toEqual([]);
    expect(outcome(was(authority(old, next), 'old', NOW + GRACE))).toEqual(['succeed db-client-ca']);
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
    expect(outcome(was(['old']))).toContain('issue server');
    expect(outcome(was(['old', 'next']))).toContain('issue server');
    expect(judged(was(['old', 'next'])).view.bundles.flatMap(({ findings }) => findings)).toEqual([]);
  });

  test('also of one that somebody has put there: members show what it signs when clients know it', () => {
    const was = (now: number): Was => {
      const made = at(authority(next), 'old', ['old', 'next'], { now });
      return { ...made, secrets: { ...made.secrets, 'db-server-mounted': leaf('old', ['old', 'next'], NOW) } };
    };
    expect(outcome(was(NOW + GRACE - 1_000))).toEqual(['issue operator', 'issue application']);
    expect(outcome(was(NOW + GRACE))).toEqual(all.map((role) => `issue ${role}`));
    const expired = { ...was(NOW + 31 * DAY), incomplete: true };
    expect(outcome(expired)).toEqual(all.map((role) => `issue ${role}`));
  });

  test('what was asked for is recorded when its successor is there', () => {
    const commanded = (was: Was) => judged(was).view.trusts[0]?.commanded;
    expect(commanded(at(authority(old), 'old', ['old'], { annotation: '1' }))).toBeUndefined();
    expect(commanded(at(authority(old, next), 'old', ['old'], { annotation: '1' }))).toBe('1');
    expect(commanded(at(authority(old, next), 'old', ['old'], { annotation: '1', commanded: '1' }))).toBeUndefined();
  });
});
