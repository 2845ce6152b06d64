/** What is made of Secrets that users and cert-manager give: what is wrong, what is copied, and how the operator connects. */
import { beforeAll, describe, expect, test } from 'vitest';
import { aCluster, FORMED, NOW } from '../../../test/support/builders/builders.ts';
import {
  base64,
  ca,
  cluster,
  DAY,
  GRACE,
  type Held,
  judged,
  leaf,
  makeAuthorities,
  next,
  recorded,
  secret,
  shown,
} from '../../../test/support/builders/credentials.ts';
import type { Tls } from '../../api/tls.ts';
import type { Secret } from '../../gen/kube.ts';
import { evaluate, secretNames } from './evaluate.ts';
import { NOTHING_MOUNTED } from './mounts.ts';

const own: Tls = {
  client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'op' } },
  peer: { secretRef: { name: 'peer' } },
};

beforeAll(makeAuthorities);

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
    expect(shown(judged(cluster(own), await all()))).toEqual(['server: copySecret', 'operator: copySecret', 'peer: copySecret']);
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
      ['server: - memberNameMissing', 'operator: -', 'peer: copySecret'],
    ],
    [
      'the operator has a certificate that members will not trust',
      async (held) => ({ ...held, op: secret(await leaf({ hosts: [] }, next)) }),
      ['server: copySecret', 'operator: - untrusted', 'peer: copySecret'],
    ],
    [
      'somebody else has the name of a copy: it is not touched',
      (held) => ({ ...held, 'db-peer-mounted': secret(ca) }),
      ['server: copySecret', 'operator: copySecret', 'peer: - secretForeign'],
    ],
    [
      'a copy from before an edit, and nothing runs yet: it is replaced with all that it has',
      async (held) => ({ ...mounted(held), server: secret(await leaf({}, next), next.cert) }),
      ['server: copySecret', 'operator: - untrusted', 'peer: -'],
    ],
  ])('before there is a cluster: %s', async (_, change, expected) => {
    expect(shown(judged(cluster(own), await all(change)))).toEqual(expected);
  });

  test.each<[string, (held: Held) => Held | Promise<Held>, readonly string[]]>([
    [
      'a renewed certificate of the same authority is taken over',
      async (held) => ({ ...mounted(held), server: secret(await leaf(), ca.cert) }),
      ['server: copyCertificate', 'operator: -', 'peer: -'],
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
      ['server: -', 'operator: -', 'peer: copyCertificate'],
    ],
    [
      'a cluster that an earlier operator made has no copies yet',
      (held) => held,
      ['server: copySecret', 'operator: copySecret', 'peer: copySecret'],
    ],
  ])('of a running cluster: %s', async (_, change, expected) => {
    expect(shown(judged(cluster(own, true), await all(change)))).toEqual(expected);
  });

  test.each<[string, (held: Held) => Held | Promise<Held>, string]>([
    [
      'its copy is gone: it is made again',
      (held) => ({ ...held, 'db-peer-mounted': undefined as unknown as Secret }),
      'peer: copySecret',
    ],
    [
      'its copy is gone, and its authority is another: members that run would not trust it',
      async (held) => ({
        ...held,
        peer: secret(await leaf({}, next), next.cert),
        'db-peer-mounted': undefined as unknown as Secret,
      }),
      'peer: - caChanged',
    ],
    [
      'somebody has changed whom its copy trusts: it is made again',
      async (held) => ({ ...held, 'db-peer-mounted': secret(await leaf({}, next), next.cert, true) }),
      'peer: copyCertificate',
    ],
    [
      'the same authorities in other words are the same',
      async (held) => ({ ...held, peer: secret(await leaf(), `# ours\n${ca.cert}\n${ca.cert}`) }),
      'peer: copyCertificate',
    ],
  ])('whom members trust was recorded: %s', async (_, change, expected) => {
    const of = aCluster({ spec: { tls: own }, status: { ...FORMED, trust: recorded() } });
    const held = await change(await all(mounted));
    expect(shown(judged(of, held))[2]).toBe(expected);
    const { usable } = judged(of, held).view.certificates[2] ?? {};
    expect(usable).toBe(!expected.includes('caChanged'));
    expect(judged(of, held).material?.ca).toBe(ca.cert);
  });

  test('before there is a cluster, but a member has started: it is not given what it does not take', async () => {
    const held = await all(async (good) => ({ ...mounted(good), peer: secret(await leaf({}, next), next.cert) }));
    const of = aCluster({ spec: { tls: own }, status: { trust: recorded() } });
    const about = (running: boolean) =>
      evaluate(of, new Map(Object.entries(held)), {
        now: NOW,
        domain: 'cluster.local',
        mounted: { ...NOTHING_MOUNTED, running },
        graceMs: GRACE,
      });
    expect([shown(about(false))[2], shown(about(true))[2]]).toEqual(['peer: copySecret', 'peer: -']);
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
      'server: copySecret',
      'operator: copySecret',
      'application: -',
      'peer: copySecret',
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
