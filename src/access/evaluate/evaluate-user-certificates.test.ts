/** Evaluation of the Secrets of users and of cert-manager: the findings, what is copied, and how the operator connects. */
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
  makeCAs,
  NOTHING_MOUNTED,
  next,
  recorded,
  secret,
  summaryOf,
} from '../../../test/support/builders/credentials.ts';
import type { Tls } from '../../api/tls.ts';
import type { Secret } from '../../gen/kube.ts';
import { isFatal } from '../../pki/findings.ts';
import { evaluate, secretNames } from './evaluate.ts';

const own: Tls = {
  client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'op' } },
  peer: { secretRef: { name: 'peer' } },
};

beforeAll(makeCAs);

describe('Secrets of a user', () => {
  /** Three valid Secrets, and their copies. */
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

  test('only the Secrets in the spec and their copies are read', () => {
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

  test('are copied into the Secrets that members mount', async () => {
    expect(summaryOf(judged(cluster(own), await all()))).toEqual([
      'server: copySecret',
      'operator: copySecret',
      'peer: copySecret',
    ]);
    expect(summaryOf(judged(cluster(own), await all(mounted)))).toEqual(['server: -', 'operator: -', 'peer: -']);
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
      'none of them exists',
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
      'a foreign Secret has the name of a copy: it is not written',
      (held) => ({ ...held, 'db-peer-mounted': secret(ca) }),
      ['server: copySecret', 'operator: copySecret', 'peer: - secretForeign'],
    ],
    [
      'a copy of an earlier version, and no member runs yet: it is replaced as a whole',
      async (held) => ({ ...mounted(held), server: secret(await leaf({}, next), next.cert) }),
      ['server: copySecret', 'operator: - untrusted', 'peer: -'],
    ],
  ])('before there is a cluster: %s', async (_, change, expected) => {
    expect(summaryOf(judged(cluster(own), await all(change)))).toEqual(expected);
  });

  test.each<[string, (held: Held) => Held | Promise<Held>, readonly string[]]>([
    [
      'a renewed certificate of the same CA is copied',
      async (held) => ({ ...mounted(held), server: secret(await leaf(), ca.cert) }),
      ['server: copyCertificate', 'operator: -', 'peer: -'],
    ],
    [
      'one that expired is reported, and members keep what they have',
      async (held) => ({ ...mounted(held), server: secret(await leaf({}, ca, NOW - 40 * DAY), ca.cert) }),
      ['server: - expired', 'operator: -', 'peer: -'],
    ],
    [
      'members keep a certificate that expires soon: that is reported as well',
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
      'another CA: its certificate is not copied while members do not trust it',
      async (held) => ({ ...mounted(held), peer: secret(await leaf({}, next), next.cert) }),
      ['server: -', 'operator: -', 'peer: -'],
    ],
    [
      'one more CA, and a certificate that members accept already',
      async (held) => ({ ...mounted(held), peer: secret(await leaf(), `${ca.cert}\n${next.cert}`) }),
      ['server: -', 'operator: -', 'peer: copyCertificate'],
    ],
    [
      'a cluster of an earlier operator has no copies yet',
      (held) => held,
      ['server: copySecret', 'operator: copySecret', 'peer: copySecret'],
    ],
  ])('of a running cluster: %s', async (_, change, expected) => {
    expect(summaryOf(judged(cluster(own, true), await all(change)))).toEqual(expected);
  });

  test.each<[string, (held: Held) => Held | Promise<Held>, string]>([
    [
      'its copy was deleted: it is created again',
      (held) => ({ ...held, 'db-peer-mounted': undefined as unknown as Secret }),
      'peer: copySecret',
    ],
    [
      'its copy was deleted, and its CA is another: running members would not trust it',
      async (held) => ({
        ...held,
        peer: secret(await leaf({}, next), next.cert),
        'db-peer-mounted': undefined as unknown as Secret,
      }),
      'peer: - caChanged',
    ],
    [
      'a user has changed the CA bundle of its copy: it is written again',
      async (held) => ({ ...held, 'db-peer-mounted': secret(await leaf({}, next), next.cert, true) }),
      'peer: copyCertificate',
    ],
    [
      'the same CAs with other text around them are the same',
      async (held) => ({ ...held, peer: secret(await leaf(), `# ours\n${ca.cert}\n${ca.cert}`) }),
      'peer: copyCertificate',
    ],
  ])('with a recorded CA bundle: %s', async (_, change, expected) => {
    const of = aCluster({ spec: { tls: own }, status: { ...FORMED, trust: recorded() } });
    const held = await change(await all(mounted));
    expect(summaryOf(judged(of, held))[2]).toBe(expected);
    const { usable } = judged(of, held).view.certificates[2] ?? {};
    expect(usable).toBe(!expected.includes('caChanged'));
    expect(judged(of, held).material?.ca).toBe(ca.cert);
  });

  test('before there is a cluster, but a member has started: it does not get a certificate that it rejects', async () => {
    const held = await all(async (good) => ({ ...mounted(good), peer: secret(await leaf({}, next), next.cert) }));
    const of = aCluster({ spec: { tls: own }, status: { trust: recorded() } });
    const about = (running: boolean) =>
      evaluate(of, new Map(Object.entries(held)), {
        now: NOW,
        domain: 'cluster.local',
        mounted: { ...NOTHING_MOUNTED, running },
        graceMs: GRACE,
      });
    expect([summaryOf(about(false))[2], summaryOf(about(true))[2]]).toEqual(['peer: copySecret', 'peer: -']);
  });

  test('with deleted Secrets the operator still connects, with its copy or with the server certificate', async () => {
    const { server: _s, op: _o, ...rest } = await all(mounted);
    const certWith = (held: Held) => base64(judged(cluster(own, true), held).material?.cert ?? '');
    expect(judged(cluster(own, true), rest).material?.ca).toBe(ca.cert);
    expect(certWith(rest)).toBe(rest['db-operator-mounted']?.data?.['tls.crt']);
    const wrong: Held = { ...rest, op: secret(await leaf({ hosts: [] }, next)) };
    expect(certWith(wrong)).toBe(certWith(rest));
    const { 'db-operator-mounted': _c, ...without } = wrong;
    expect(certWith(without)).toBe(rest['db-server-mounted']?.data?.['tls.crt']);
  });

  test('the reported expiry is that of the served certificates', async () => {
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

  test('are read, also the one for applications, and copied into the Secrets that members mount', async () => {
    expect(secretNames(cluster(tls), NOTHING_MOUNTED)).toEqual([
      'db-server-tls',
      'db-server-mounted',
      'db-operator-client-tls',
      'db-operator-mounted',
      'db-client-tls',
      'db-peer-tls',
      'db-peer-mounted',
    ]);
    expect(summaryOf(judged(cluster(tls), await all()))).toEqual([
      'server: copySecret',
      'operator: copySecret',
      'application: -',
      'peer: copySecret',
    ]);
  });

  test.each<[string, string | undefined, string]>([
    ['no owner', undefined, 'no controller: this operator did not create it'],
    ['another Certificate', 'mine', 'Certificate mine'],
  ])('one that belongs to %s is not used, and reported', async (_, certificate, owner) => {
    const held = { ...(await all()), 'db-peer-tls': await issued(certificate) };
    const { certificates } = judged(cluster(tls), held).view;
    expect(summaryOf(judged(cluster(tls), held))[3]).toBe('peer: - secretForeign');
    expect(certificates[3]?.findings).toEqual([{ is: 'secretForeign', secret: 'db-peer-tls', owner }]);
    expect(certificates[3]?.usable).toBe(false);
    const server = { ...(await all()), 'db-server-tls': await issued(certificate) };
    expect(judged(cluster(tls), server).material).toBeUndefined();
  });

  test('that of applications belongs to another owner: it is reported, and keeps nothing back', async () => {
    const held = { ...(await all()), 'db-client-tls': await issued(undefined) };
    const { view } = judged(cluster(tls), held);
    expect(summaryOf({ view })[2]).toBe('application: - applicationForeign');
    expect(view.certificates[2]?.findings.some(isFatal)).toBe(false);
    expect(view.trusts.flatMap(({ notReissued }) => notReissued)).not.toContain('db-client-tls');
  });

  test('a client certificate that members would not trust is reported', async () => {
    const held = { ...(await all()), 'db-client-tls': await issued('db-client', next) };
    expect(summaryOf(judged(cluster(tls), held))[2]).toBe('application: - untrusted');
  });
});
