/** Evaluation of the Secrets of a managed CA: the findings, what is issued, and what is not replaced. */
import { beforeAll, describe, expect, test } from 'vitest';
import { aCluster, FORMED, NOW } from '../../../test/support/builders/builders.ts';
import {
  base64,
  ca,
  cluster,
  DAY,
  type Held,
  judged,
  leaf,
  makeCAs,
  next,
  recorded,
  secret,
  summaryOf,
} from '../../../test/support/builders/credentials.ts';
import type { Tls } from '../../api/tls.ts';
import type { Secret } from '../../gen/kube.ts';
import { CA_LIFETIME_MS, createCA } from '../../pki/issue.ts';
import { systemKeySource } from '../../pki/key-source.ts';

const managed: Tls = {
  client: { managed: { duration: '720h' } },
  peer: { managed: { duration: '720h', renewBefore: '5m' } },
};

beforeAll(makeCAs);

describe('a managed CA', () => {
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

  test('without any Secret everything is created', () => {
    expect(summaryOf(judged(cluster(managed), {}))).toEqual([
      'db-client-ca: createCA',
      'db-peer-ca: createCA',
      'server: issueCertificate',
      'operator: issueCertificate',
      'application: issueCertificate',
      'peer: issueCertificate',
    ]);
  });

  test('without mTLS there is no certificate for applications', () => {
    const tls: Tls = { client: { managed: { clientCertificates: 'None' } } };
    expect(summaryOf(judged(cluster(tls), {}))).toEqual(['db-client-ca: createCA', 'server: issueCertificate']);
  });

  test('with all Secrets nothing is written', async () => {
    const { view, material } = judged(cluster(managed, true), await all());
    expect(summaryOf({ view })).toEqual([...rest, 'server: -', 'operator: -', 'application: -', 'peer: -']);
    expect(material).toMatchObject({ ca: ca.cert, cert: expect.stringContaining('BEGIN CERTIFICATE') });
  });

  test('certificates are renewed after two thirds of their lifetime, and not before', async () => {
    const held = await all(NOW);
    const at = (days: number): readonly string[] =>
      summaryOf(judged(cluster(managed, true), held, NOW + days * DAY)).slice(2, 3);
    expect([at(19.9), at(20.1)]).toEqual([['server: -'], ['server: issueCertificate']]);
  });

  test('a certificate that is renewed in time is not reported as expiring soon', async () => {
    expect(summaryOf(judged(cluster(managed, true), await all(), NOW + 29 * DAY))[5]).toBe('peer: -');
  });

  test('damaged and deleted certificates are issued again', async () => {
    const held = await all();
    const { 'db-client-tls': _, ...without } = held;
    const damaged = { ...without, 'db-server-mounted': secret({ ...ca, cert: 'x' }, ca.cert, true) };
    expect(summaryOf(judged(cluster(managed, true), damaged)).slice(2, 5)).toEqual([
      'server: issueCertificate',
      'operator: -',
      'application: issueCertificate',
    ]);
  });

  test('a lost CA of a running cluster is not replaced: members would not trust another one', async () => {
    const { 'db-client-ca': _, ...without } = await all();
    expect(summaryOf(judged(cluster(managed, true), without))[0]).toBe('db-client-ca: - caLost');
    expect(summaryOf(judged(cluster(managed), without))[0]).toBe('db-client-ca: createCA');
    expect(summaryOf(judged(cluster(managed, true), {}))).toEqual([
      'db-client-ca: - caLost', // all Secrets were deleted at once, and members run
      'db-peer-ca: - caLost',
      'server: -',
      'operator: -',
      'application: -',
      'peer: -',
    ]);
    const late = summaryOf(judged(cluster(managed, true), without, NOW + 25 * DAY));
    expect(late[2]).toBe('server: - expiresSoon');
  });

  test('a CA near its expiry issues no certificate that would expire with it, and reports that', async () => {
    const old = await createCA('old', NOW - CA_LIFETIME_MS + 10 * DAY, systemKeySource);
    const last = secret(await leaf({}, old), old.cert, true);
    const held = { ...(await all()), 'db-peer-ca': secret(old, undefined, true), 'db-peer-mounted': last };
    const at = (days: number): readonly string[] => {
      const lines = summaryOf(judged(cluster(managed, true), held, NOW + days * DAY));
      return lines.filter((line) => line.includes('peer'));
    };
    expect(at(0)).toEqual(['db-peer-ca: createNextCA', 'peer: - expiresSoon']);
    expect(at(9)).toEqual(['db-peer-ca: createNextCA', 'peer: - expiresSoon expiresSoon']);
    expect(at(11)).toEqual(['db-peer-ca: createNextCA expired', 'peer: - expired expired']);
  });

  test('a CA whose key does not match counts as lost', async () => {
    const held = { ...(await all()), 'db-peer-ca': secret({ cert: ca.cert, key: next.key }, undefined, true) };
    expect(summaryOf(judged(cluster(managed, true), held))[1]).toBe('db-peer-ca: - caLost');
  });

  test('a CA of a user that cannot sign counts as lost: members must not trust it', async () => {
    const of = aCluster({ spec: { tls: managed }, status: { ...FORMED, trust: recorded() } });
    const held = { ...(await all()), 'db-peer-ca': secret(await leaf(), undefined, true) };
    const { view } = judged(of, held);
    expect(summaryOf({ view }).filter((line) => line.includes('peer'))).toEqual(['db-peer-ca: - caLost', 'peer: -']);
    expect(view.trusts.find(({ part }) => part === 'peer')?.target).toBeUndefined();
    const expired = judged(of, held, NOW + 40 * DAY).view;
    expect(summaryOf({ view: expired }).at(-1)).toBe('peer: - expired');
  });

  test('a CA that a user replaced signs nothing before members trust it', async () => {
    const held = { ...(await all()), 'db-peer-ca': secret(next, undefined, true) };
    expect(summaryOf(judged(cluster(managed, true), held))[5]).toBe('peer: -');
    expect(summaryOf(judged(cluster(managed), held))[5]).toBe('peer: issueCertificate');
  });

  test('with a recorded CA bundle no other CA signs for members, even when all certificates were deleted', async () => {
    const of = aCluster({ spec: { tls: managed }, status: { ...FORMED, trust: recorded() } });
    const held = { 'db-client-ca': secret(ca, undefined, true), 'db-peer-ca': secret(next, undefined, true) };
    const { view } = judged(of, held);
    expect(summaryOf({ view })).toEqual([
      'db-client-ca: -',
      'db-peer-ca: -',
      'server: issueCertificate',
      'operator: issueCertificate',
      'application: issueCertificate',
      'peer: -',
    ]);
    expect(view.certificates[3]?.usable).toBe(false);
    expect(view.bundles.flatMap(({ findings }) => findings.map(({ is }) => is))).toEqual(['caBundleLost']);
    const tampered = { ...(await all()), 'db-peer-mounted': secret(await leaf({}, next), next.cert, true) };
    expect(summaryOf(judged(of, tampered))[5]).toBe('peer: issueCertificate');
    const server = { ...(await all()), 'db-server-mounted': secret(await leaf({}, next), next.cert, true) };
    expect(summaryOf(judged(of, server))[2]).toBe('server: issueCertificate');
  });

  test('a foreign Secret is never used and never changed', async () => {
    const held: Held = {
      ...(await all()),
      'db-client-ca': secret(ca),
      'db-operator-client-tls': secret(await leaf(), ca.cert),
    };
    const { view, material } = judged(cluster(managed, true), held);
    expect(summaryOf({ view }).slice(0, 4)).toEqual([
      'db-client-ca: - secretForeign',
      'db-peer-ca: -',
      'server: -',
      'operator: - secretForeign',
    ]);
    expect(base64(material?.cert ?? '')).toBe(held['db-server-mounted']?.data?.['tls.crt']);
  });
});
