/** The Secrets from which an agent gets the credentials of the operator. */
import { beforeAll, describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_UID, FORMED, NOW } from '../../../test/support/builders/builders.ts';
import { NOTHING_MOUNTED } from '../../../test/support/builders/credentials.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { API_VERSION, trustName } from '../../api/names.ts';
import type { Tls } from '../../api/tls.ts';
import type { Secret } from '../../gen/kube.ts';
import { createCA, issue, type KeyPair } from '../../pki/issue.ts';
import { systemKeySource } from '../../pki/key-source.ts';
import { sourcesOf } from './agent-sources.ts';
import { digestOf } from './ca-bundle.ts';
import { evaluate } from './evaluate.ts';
import { rootPassword } from './root-password.ts';
import type { Sources } from './view.ts';

let old: KeyPair;
let next: KeyPair;
let leaf: KeyPair;
let later: KeyPair;
let own: KeyPair;

beforeAll(async () => {
  old = await createCA('old', NOW, systemKeySource);
  next = await createCA('next', NOW, systemKeySource);
  const wanted = {
    name: 'x',
    hosts: ['*.db.ns.svc', 'db-client.ns.svc'],
    usages: ['server auth', 'client auth'],
    durationMs: 1e10,
  } as const;
  leaf = await issue(old, wanted, NOW, systemKeySource);
  later = await issue(next, wanted, NOW, systemKeySource);
  own = await issue(old, { ...wanted, hosts: [] }, NOW, systemKeySource);
});

function secret(text: Readonly<Record<string, string>>, ofCluster = true): Secret {
  const data = Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
  const owner = { apiVersion: API_VERSION, kind: 'EtcdCluster', name: 'db', uid: CLUSTER_UID, controller: true };
  return { apiVersion: 'v1', kind: 'Secret', metadata: { ...(ofCluster && { ownerReferences: [owner] }) }, data };
}
const tlsSecret = ({ cert, key }: KeyPair, ca: string, ofCluster = true): Secret =>
  secret({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca }, ofCluster);

const mutual: Tls = { client: { serverSecretRef: { name: 'mine' }, operatorClientSecretRef: { name: 'op' } } };
const oneWay: Tls = { client: { serverSecretRef: { name: 'mine' } } };
const auth = { enabled: true, rootCredentialsSecretRef: { name: 'root' } };

/** Running members may have started with a previous CA bundle. */
function sources(
  tls: Tls | undefined,
  held: Readonly<Record<string, Secret>>,
  trust?: string,
  mounted: readonly string[] = [],
): Sources {
  const status = { ...FORMED, ...(trust !== undefined && { trust: { client: digestOf(trust) ?? '' } }) };
  const cluster: EtcdCluster = aCluster({ spec: { ...(tls && { tls, auth }) }, status });
  const secrets = new Map(Object.entries(held));
  const around = {
    now: NOW,
    domain: 'cluster.local',
    mounted: { ...NOTHING_MOUNTED, bundles: { client: mounted, peer: [] } },
    graceMs: 1,
  };
  return sourcesOf(cluster, secrets, evaluate(cluster, secrets, around).material, rootPassword(cluster, secrets));
}

describe('the CA bundle and the client certificate', () => {
  test('are absent without TLS', () => {
    expect(sources(undefined, {})).toEqual({});
  });

  test('are in managed Secrets, not in those that a user may delete', () => {
    const held = {
      mine: tlsSecret(leaf, old.cert, false),
      op: tlsSecret(own, old.cert, false),
      'db-server-mounted': tlsSecret(leaf, old.cert),
      'db-operator-mounted': tlsSecret(own, old.cert),
    };
    expect(sources(mutual, held, old.cert)).toEqual({ ca: 'db-server-mounted', pair: 'db-operator-mounted' });
    expect(sources(oneWay, held, old.cert)).toEqual({ ca: 'db-server-mounted' });
  });

  test('are in the Secret of the user for a cluster of an earlier operator', () => {
    expect(sources(oneWay, { mine: tlsSecret(leaf, old.cert, false) })).toMatchObject({ ca: 'mine' });
  });

  test('during a CA rotation are the first Secret with both CAs, and the certificate that all members accept', () => {
    const both = old.cert + next.cert;
    const held = {
      mine: tlsSecret(later, next.cert, false),
      op: tlsSecret(later, next.cert, false),
      'db-server-mounted': tlsSecret(leaf, old.cert),
      'db-operator-mounted': tlsSecret(own, old.cert),
      [trustName('db', 'client', digestOf(both) ?? '')]: secret({ 'ca.crt': both }),
    };
    expect(sources(mutual, held, both)).toMatchObject({ ca: trustName('db', 'client', digestOf(both) ?? '') });
    const published = { ...held, 'db-server-mounted': tlsSecret(leaf, both) };
    expect(sources(mutual, published, both)).toMatchObject({ ca: 'db-server-mounted', pair: 'db-operator-mounted' });
    const reissued = { ...published, 'db-operator-mounted': tlsSecret(later, both) };
    const half = trustName('db', 'client', digestOf(old.cert) ?? '');
    const running = { ...reissued, [half]: secret({ 'ca.crt': old.cert }) };
    expect(sources(mutual, running, both, [half]).pair).toBe('db-server-mounted');
  });

  test('are the previous CA bundle while no Secret has the recorded one', () => {
    const held = {
      'db-client-ca': secret({ 'tls.crt': next.cert, 'tls.key': next.key }),
      'db-server-mounted': tlsSecret(leaf, old.cert),
    };
    const managed: Tls = { client: { managed: { clientCertificates: 'None' } } };
    expect(sources(managed, held, next.cert).ca).toBe('db-server-mounted');
  });
});

describe('the root password', () => {
  test.each<[string, Readonly<Record<string, Secret>>, string | undefined]>([
    ['is in no Secret', {}, undefined],
    ['was given, and the operator has stored none', { root: secret({ password: 'a' }, false) }, 'root'],
    [
      'is the one that etcd accepted last, not one that was given later',
      { root: secret({ password: 'b' }, false), 'db-root-applied': secret({ password: 'a' }) },
      'db-root-applied',
    ],
    ['is not in a foreign Secret', { 'db-root-applied': secret({ password: 'a' }, false) }, undefined],
  ])('%s', (_what, held, found) => {
    expect(sources(oneWay, held).root).toBe(found);
  });
});
