/** What is made of the Secrets of a cluster: what is wrong, what is to be written, and how the operator connects. */
import { beforeAll, describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_UID, FORMED, NOW } from '../../test/support/builders.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { API_VERSION } from '../api/names.ts';
import type { Tls } from '../api/tls.ts';
import type { Secret } from '../gen/kube.ts';
import { systemChance } from '../pki/chance.ts';
import { AUTHORITY_MS, createAuthority, issue, type KeyPair, type Leaf } from '../pki/issue.ts';
import { type Judged, judge, secretNames } from './judge.ts';
import { NOTHING_MOUNTED } from './mounted.ts';
import { digestOf } from './trust.ts';

const DAY = 24 * 60 * 60_000;
const GRACE = 120_000;
const NAMES = ['*.db.ns.svc', '*.db.ns.svc.cluster.local', 'db-client.ns.svc'];

const own: Tls = {
  client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'op' } },
  peer: { secretRef: { name: 'peer' } },
};
const managed: Tls = {
  client: { managed: { duration: '720h' } },
  peer: { managed: { duration: '720h', renewBefore: '5m' } },
};

let ca: KeyPair;
let next: KeyPair;

beforeAll(async () => {
  ca = await createAuthority('ca', NOW - DAY, systemChance);
  next = await createAuthority('next', NOW - DAY, systemChance);
});

const leaf = (change: Partial<Leaf> = {}, by = ca, now = NOW): Promise<KeyPair> =>
  issue(
    by,
    { name: 'x', hosts: NAMES, usages: ['server auth', 'client auth'], durationMs: 30 * DAY, ...change },
    now,
    systemChance,
  );

const base64 = (text: string): string => Buffer.from(text).toString('base64');
function secret({ cert, key }: KeyPair, trust?: string, ofCluster = false): Secret {
  const data = { 'tls.crt': cert, 'tls.key': key, ...(trust !== undefined && { 'ca.crt': trust }) };
  const owner = { apiVersion: API_VERSION, kind: 'EtcdCluster', name: 'db', uid: CLUSTER_UID, controller: true };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...(ofCluster && { ownerReferences: [owner] }) },
    data: Object.fromEntries(Object.entries(data).map(([name, text]) => [name, base64(text)])),
  };
}

const recorded = () => ({ client: digestOf(ca.cert) ?? '', peer: digestOf(ca.cert) ?? '' });

type Held = Readonly<Record<string, Secret>>;
const cluster = (tls: Tls, formed = false): EtcdCluster =>
  aCluster({ spec: { tls }, ...(formed && { status: FORMED }) });
const judged = (of: EtcdCluster, held: Held, now = NOW): Judged =>
  judge(of, new Map(Object.entries(held)), {
    now,
    domain: 'cluster.local',
    mounted: NOTHING_MOUNTED,
    graceMs: GRACE,
  });

/** `role: what is to be done; what was found` */
function shown({ view: { authorities, certificates } }: Pick<Judged, 'view'>): readonly string[] {
  const line = (name: string, todo: string | undefined, findings: readonly { readonly is: string }[]): string =>
    [`${name}:`, todo ?? '-', ...findings.map(({ is }) => is)].join(' ');
  return [
    ...authorities.map((a) => line(a.secret, a.todo, a.findings)),
    ...certificates.map((c) => line(c.need.role, c.todo, c.findings)),
  ];
}

describe('Secrets of the user', () => {
  /** All good: three Secrets, and what members mount. */
  async function all(change: (held: Held) => Held | Promise<Held> = (held) => held): Promise<Held> {
    const [server, peer] = [secret(await leaf(), ca.cert), secret(await leaf(), ca.cert)];
    const op = secret(await leaf({ hosts: [], usages: ['client auth'] }));
    const held: Held = { server, peer, op };
    return change(held);
  }
  const mounted = (held: Held): Held => {
    const copy = (of: Secret | undefined): Secret =>
      ({ ...of, metadata: secret(ca, '', true).metadata }) as unknown as Secret;
    const op = copy(held['op']);
    return {
      ...held,
      'db-server-mounted': copy(held['server']),
      'db-peer-mounted': copy(held['peer']),
      'db-operator-mounted': { ...op, data: { ...op.data, 'ca.crt': base64(ca.cert) } },
    };
  };

  test('only what is named is looked at, and what was made for it', () => {
    expect(secretNames(cluster(own), NOTHING_MOUNTED)).toEqual([
      'server',
      'db-server-mounted',
      'op',
      'db-operator-mounted',
      'peer',
      'db-peer-mounted',
    ]);
    expect(secretNames(aCluster(), NOTHING_MOUNTED)).toEqual([]);
  });

  test('are copied to where members mount them', async () => {
    expect(shown(judged(cluster(own), await all()))).toEqual(['server: copy', 'operator: copy', 'peer: copy']);
    expect(shown(judged(cluster(own), await all(mounted)))).toEqual(['server: -', 'operator: -', 'peer: -']);
  });

  test('are what the operator connects with', async () => {
    const held = await all(mounted);
    const { material } = judged(cluster(own, true), held);
    expect(material?.ca).toBe(ca.cert);
    expect(base64(material?.cert ?? '')).toBe(held['op']?.data?.['tls.crt']);
    const alone: Tls = { client: { serverSecretRef: { name: 'server' } } };
    expect(judged(cluster(alone), held).material).toEqual({ ca: ca.cert });
    expect(judged(cluster(alone), {}).material).toBeUndefined();
  });

  test.each<[string, (held: Held) => Held | Promise<Held>, readonly string[]]>([
    [
      'none of them is there',
      () => ({}),
      ['server: - secretMissing', 'operator: - secretMissing', 'peer: - secretMissing'],
    ],
    [
      'one lacks a name: it is not copied, the other is',
      async (held) => ({ ...held, server: secret(await leaf({ hosts: ['db-client.ns.svc'] }), ca.cert) }),
      ['server: - memberNameMissing', 'operator: -', 'peer: copy'],
    ],
    [
      'the operator has a certificate that members will not trust',
      async (held) => ({ ...held, op: secret(await leaf({ hosts: [] }, next)) }),
      ['server: copy', 'operator: - untrusted', 'peer: copy'],
    ],
    [
      'somebody else has the name of a copy: it is not touched',
      (held) => ({ ...held, 'db-peer-mounted': secret(ca) }),
      ['server: copy', 'operator: copy', 'peer: - secretForeign'],
    ],
    [
      'a copy from before an edit, and nothing runs yet: it is replaced with all that it has',
      async (held) => ({ ...mounted(held), server: secret(await leaf({}, next), next.cert) }),
      ['server: copy', 'operator: - untrusted', 'peer: -'],
    ],
  ])('before there is a cluster: %s', async (_, change, expected) => {
    expect(shown(judged(cluster(own), await all(change)))).toEqual(expected);
  });

  test.each<[string, (held: Held) => Held | Promise<Held>, readonly string[]]>([
    [
      'a renewed certificate of the same authority is taken over',
      async (held) => ({ ...mounted(held), server: secret(await leaf(), ca.cert) }),
      ['server: copyLeaf', 'operator: -', 'peer: -'],
    ],
    [
      'one that expired is reported, and members keep what they have',
      async (held) => ({ ...mounted(held), server: secret(await leaf({}, ca, NOW - 40 * DAY), ca.cert) }),
      ['server: - expired', 'operator: -', 'peer: -'],
    ],
    [
      'members are left with one that ends: that is said as well',
      async (held) => {
        const soon = secret(await leaf({}, ca, NOW - 25 * DAY), ca.cert);
        return { ...mounted({ ...held, server: soon }), server: secret(await leaf({}, next), next.cert) };
      },
      ['server: - expiresSoon', 'operator: -', 'peer: -'],
    ],
    [
      'a Secret that was deleted is reported, and members keep what they have',
      (held) => {
        const { server: _, ...rest } = mounted(held);
        return rest;
      },
      ['server: - secretMissing', 'operator: -', 'peer: -'],
    ],
    [
      'another authority: nothing reaches members that would not trust it',
      async (held) => ({ ...mounted(held), peer: secret(await leaf({}, next), next.cert) }),
      ['server: -', 'operator: -', 'peer: -'],
    ],
    [
      'more trust than before, and a certificate that members take already',
      async (held) => ({ ...mounted(held), peer: secret(await leaf(), `${ca.cert}\n${next.cert}`) }),
      ['server: -', 'operator: -', 'peer: copyLeaf'],
    ],
    [
      'a cluster that an earlier operator made has no copies yet',
      (held) => held,
      ['server: copy', 'operator: copy', 'peer: copy'],
    ],
  ])('of a running cluster: %s', async (_, change, expected) => {
    expect(shown(judged(cluster(own, true), await all(change)))).toEqual(expected);
  });

  test.each<[string, (held: Held) => Held | Promise<Held>, string]>([
    [
      'its copy is gone: it is made again',
      (held) => ({ ...held, 'db-peer-mounted': undefined as unknown as Secret }),
      'peer: copy',
    ],
    [
      'its copy is gone, and its authority is another: members that run would not trust it',
      async (held) => ({
        ...held,
        peer: secret(await leaf({}, next), next.cert),
        'db-peer-mounted': undefined as unknown as Secret,
      }),
      'peer: - authorityChanged',
    ],
    [
      'somebody has changed whom its copy trusts: it is made again',
      async (held) => ({ ...held, 'db-peer-mounted': secret(await leaf({}, next), next.cert, true) }),
      'peer: copyLeaf',
    ],
    [
      'the same authorities in other words are the same',
      async (held) => ({ ...held, peer: secret(await leaf(), `# ours\n${ca.cert}\n${ca.cert}`) }),
      'peer: copyLeaf',
    ],
  ])('whom members trust was recorded: %s', async (_, change, expected) => {
    const of = aCluster({ spec: { tls: own }, status: { ...FORMED, trust: recorded() } });
    const held = await change(await all(mounted));
    expect(shown(judged(of, held))[2]).toBe(expected);
    const { usable } = judged(of, held).view.certificates[2] ?? {};
    expect(usable).toBe(!expected.includes('authorityChanged'));
    expect(judged(of, held).material?.ca).toBe(ca.cert);
  });

  test('before there is a cluster, but a member has started: it is not given what it does not take', async () => {
    const held = await all(async (good) => ({ ...mounted(good), peer: secret(await leaf({}, next), next.cert) }));
    const of = aCluster({ spec: { tls: own }, status: { trust: recorded() } });
    const about = (running: boolean) =>
      judge(of, new Map(Object.entries(held)), {
        now: NOW,
        domain: 'cluster.local',
        mounted: { ...NOTHING_MOUNTED, running },
        graceMs: GRACE,
      });
    expect([shown(about(false))[2], shown(about(true))[2]]).toEqual(['peer: copy', 'peer: -']);
  });

  test('deleted Secrets do not take the connection away: the operator shows its copy, or what members show', async () => {
    const { server: _s, op: _o, ...rest } = await all(mounted);
    const shownWith = (held: Held) => base64(judged(cluster(own, true), held).material?.cert ?? '');
    expect(judged(cluster(own, true), rest).material?.ca).toBe(ca.cert);
    expect(shownWith(rest)).toBe(rest['db-operator-mounted']?.data?.['tls.crt']);
    const wrong: Held = { ...rest, op: secret(await leaf({ hosts: [] }, next)) };
    expect(shownWith(wrong)).toBe(shownWith(rest));
    const { 'db-operator-mounted': _c, ...without } = wrong;
    expect(shownWith(without)).toBe(rest['db-server-mounted']?.data?.['tls.crt']);
  });

  test('the end that is told is that of what members show', async () => {
    const held = await all(mounted);
    const ends = (h: Held) => judged(cluster(own, true), h).view.certificates.map(({ notAfter }) => notAfter);
    const { server: _s, ...deleted } = held;
    expect(ends(deleted)).toEqual(ends(held));
  });
});

describe('Secrets of cert-manager', () => {
  const issuer = { name: 'i' };
  const tls: Tls = {
    client: { certManager: { serverIssuerRef: issuer, operatorClientIssuerRef: issuer } },
    peer: { certManager: { issuerRef: issuer } },
  };
  const issued = async (certificate: string | undefined, by = ca): Promise<Secret> => {
    const made = secret(await leaf({}, by), by.cert);
    const annotations = { ...(certificate && { 'cert-manager.io/certificate-name': certificate }) };
    return { ...made, metadata: { annotations } };
  };
  const all = async (): Promise<Held> => ({
    'db-server-tls': await issued('db-server'),
    'db-operator-client-tls': await issued('db-operator-client'),
    'db-client-tls': await issued('db-client'),
    'db-peer-tls': await issued('db-peer'),
  });

  test('are found where it puts them, one for applications among them, and copied to where members mount them', async () => {
    expect(secretNames(cluster(tls), NOTHING_MOUNTED)).toEqual([
      'db-server-tls',
      'db-server-mounted',
      'db-operator-client-tls',
      'db-operator-mounted',
      'db-client-tls',
      'db-peer-tls',
      'db-peer-mounted',
    ]);
    expect(shown(judged(cluster(tls), await all()))).toEqual([
      'server: copy',
      'operator: copy',
      'application: -',
      'peer: copy',
    ]);
  });

  test.each<[string, string | undefined, string]>([
    ['nobody', undefined, 'nobody: it was not made by this operator'],
    ['another Certificate', 'mine', 'Certificate mine'],
  ])('one that belongs to %s is not used, and named', async (_, certificate, owner) => {
    const held = { ...(await all()), 'db-peer-tls': await issued(certificate) };
    const { certificates } = judged(cluster(tls), held).view;
    expect(shown(judged(cluster(tls), held))[3]).toBe('peer: - secretForeign');
    expect(certificates[3]?.findings).toEqual([{ is: 'secretForeign', secret: 'db-peer-tls', owner }]);
    expect(certificates[3]?.usable).toBe(false);
    const server = { ...(await all()), 'db-server-tls': await issued(certificate) };
    expect(judged(cluster(tls), server).material).toBeUndefined();
  });

  test('applications get nothing that members would not trust', async () => {
    const held = { ...(await all()), 'db-client-tls': await issued('db-client', next) };
    expect(shown(judged(cluster(tls), held))[2]).toBe('application: - untrusted');
  });
});

describe('an authority of the operator', () => {
  async function all(now = NOW): Promise<Held> {
    const made = async (): Promise<Secret> => secret(await leaf({}, ca, now), ca.cert, true);
    return {
      'db-client-ca': secret(ca, undefined, true),
      'db-peer-ca': secret(ca, undefined, true),
      'db-server-mounted': await made(),
      'db-operator-client-tls': await made(),
      'db-client-tls': await made(),
      'db-peer-mounted': await made(),
    };
  }
  const rest = ['db-client-ca: -', 'db-peer-ca: -'];

  test('from nothing: everything is made', () => {
    expect(shown(judged(cluster(managed), {}))).toEqual([
      'db-client-ca: found',
      'db-peer-ca: found',
      'server: issue',
      'operator: issue',
      'application: issue',
      'peer: issue',
    ]);
  });

  test('without certificates of clients there is none for applications', () => {
    const tls: Tls = { client: { managed: { clientCertificates: 'None' } } };
    expect(shown(judged(cluster(tls), {}))).toEqual(['db-client-ca: found', 'server: issue']);
  });

  test('all is there', async () => {
    const { view, material } = judged(cluster(managed, true), await all());
    expect(shown({ view })).toEqual([...rest, 'server: -', 'operator: -', 'application: -', 'peer: -']);
    expect(material).toMatchObject({ ca: ca.cert, cert: expect.stringContaining('BEGIN CERTIFICATE') });
  });

  test('certificates are renewed after two thirds of their life, and not before', async () => {
    const held = await all(NOW);
    const at = (days: number): readonly string[] =>
      shown(judged(cluster(managed, true), held, NOW + days * DAY)).slice(2, 3);
    expect([at(19.9), at(20.1)]).toEqual([['server: -'], ['server: issue']]);
  });

  test('that a certificate ends soon is not said of one that is renewed in time', async () => {
    expect(shown(judged(cluster(managed, true), await all(), NOW + 29 * DAY))[5]).toBe('peer: -');
  });

  test('what was damaged or deleted is made again, a name that came later included', async () => {
    const held = await all();
    const { 'db-client-tls': _, ...without } = held;
    const damaged = { ...without, 'db-server-mounted': secret({ ...ca, cert: 'x' }, ca.cert, true) };
    expect(shown(judged(cluster(managed, true), damaged)).slice(2, 5)).toEqual([
      'server: issue',
      'operator: -',
      'application: issue',
    ]);
  });

  test('a lost authority of a running cluster is not replaced: nobody would trust the next one', async () => {
    const { 'db-client-ca': _, ...without } = await all();
    expect(shown(judged(cluster(managed, true), without))[0]).toBe('db-client-ca: - authorityLost');
    expect(shown(judged(cluster(managed), without))[0]).toBe('db-client-ca: found');
    expect(shown(judged(cluster(managed, true), {}))).toEqual([
      'db-client-ca: - authorityLost', // all Secrets are gone at once, and members run
      'db-peer-ca: - authorityLost',
      'server: -',
      'operator: -',
      'application: -',
      'peer: -',
    ]);
    const late = shown(judged(cluster(managed, true), without, NOW + 25 * DAY));
    expect(late[2]).toBe('server: - expiresSoon');
  });

  test('at its end it signs nothing more, which would end with it, and that is said', async () => {
    const old = await createAuthority('old', NOW - AUTHORITY_MS + 10 * DAY, systemChance);
    const last = secret(await leaf({}, old), old.cert, true);
    const held = { ...(await all()), 'db-peer-ca': secret(old, undefined, true), 'db-peer-mounted': last };
    const at = (days: number): readonly string[] => {
      const lines = shown(judged(cluster(managed, true), held, NOW + days * DAY));
      return lines.filter((line) => line.includes('peer'));
    };
    expect(at(0)).toEqual(['db-peer-ca: prepare', 'peer: - expiresSoon']);
    expect(at(9)).toEqual(['db-peer-ca: prepare', 'peer: - expiresSoon expiresSoon']);
    expect(at(11)).toEqual(['db-peer-ca: prepare expired', 'peer: - expired expired']);
  });

  test('whose key is that of another counts as lost', async () => {
    const held = { ...(await all()), 'db-peer-ca': secret({ cert: ca.cert, key: next.key }, undefined, true) };
    expect(shown(judged(cluster(managed, true), held))[1]).toBe('db-peer-ca: - authorityLost');
  });

  test('one that somebody has put there and nothing can be signed with counts as lost: members are not to trust it', async () => {
    const of = aCluster({ spec: { tls: managed }, status: { ...FORMED, trust: recorded() } });
    const held = { ...(await all()), 'db-peer-ca': secret(await leaf(), undefined, true) };
    const { view } = judged(of, held);
    expect(shown({ view }).filter((line) => line.includes('peer'))).toEqual(['db-peer-ca: - authorityLost', 'peer: -']);
    expect(view.trusts.find(({ part }) => part === 'peer')?.target).toBeUndefined();
    const expired = judged(of, held, NOW + 40 * DAY).view;
    expect(shown({ view: expired }).at(-1)).toBe('peer: - expired');
  });

  test('one that somebody exchanged signs nothing before members trust it', async () => {
    const held = { ...(await all()), 'db-peer-ca': secret(next, undefined, true) };
    expect(shown(judged(cluster(managed, true), held))[5]).toBe('peer: -');
    expect(shown(judged(cluster(managed), held))[5]).toBe('peer: issue');
  });

  test('whom members trust was recorded: nobody else signs for them, even when all that was signed is gone', async () => {
    const of = aCluster({ spec: { tls: managed }, status: { ...FORMED, trust: recorded() } });
    const held = { 'db-client-ca': secret(ca, undefined, true), 'db-peer-ca': secret(next, undefined, true) };
    const { view } = judged(of, held);
    expect(shown({ view })).toEqual([
      'db-client-ca: -',
      'db-peer-ca: -',
      'server: issue',
      'operator: issue',
      'application: issue',
      'peer: -',
    ]);
    expect(view.certificates[3]?.usable).toBe(false);
    expect(view.bundles.flatMap(({ findings }) => findings.map(({ is }) => is))).toEqual(['trustLost']);
    const tampered = { ...(await all()), 'db-peer-mounted': secret(await leaf({}, next), next.cert, true) };
    expect(shown(judged(of, tampered))[5]).toBe('peer: issue');
    const server = { ...(await all()), 'db-server-mounted': secret(await leaf({}, next), next.cert, true) };
    expect(shown(judged(of, server))[2]).toBe('server: issue');
  });

  test('a Secret of somebody else is never used and never changed', async () => {
    const held: Held = {
      ...(await all()),
      'db-client-ca': secret(ca),
      'db-operator-client-tls': secret(await leaf(), ca.cert),
    };
    const { view, material } = judged(cluster(managed, true), held);
    expect(shown({ view }).slice(0, 4)).toEqual([
      'db-client-ca: - secretForeign',
      'db-peer-ca: -',
      'server: -',
      'operator: - secretForeign',
    ]);
    expect(base64(material?.cert ?? '')).toBe(held['db-server-mounted']?.data?.['tls.crt']);
  });
});
