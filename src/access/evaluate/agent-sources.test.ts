/** Where an agent finds what the operator itself reaches members with. */
import { beforeAll, describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_UID, FORMED, NOW } from '../../../test/support/builders/builders.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { API_VERSION, trustName } from '../../api/names.ts';
import type { Tls } from '../../api/tls.ts';
import type { Secret } from '../../gen/kube.ts';
import { createCA, issue, type KeyPair } from '../../pki/issue.ts';
import { systemKeySource } from '../../pki/key-source.ts';
import { sourcesOf } from './agent-sources.ts';
import { digestOf } from './ca-bundle.ts';
import { evaluate } from './evaluate.ts';
import { NOTHING_MOUNTED } from './mounts.ts';
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
const paper = ({ cert, key }: KeyPair, ca: string, ofCluster = true): Secret =>
  secret({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca }, ofCluster);

const mutual: Tls = { client: { serverSecretRef: { name: 'mine' }, operatorClientSecretRef: { name: 'op' } } };
const oneWay: Tls = { client: { serverSecretRef: { name: 'mine' } } };
const auth = { enabled: true, rootCredentialsSecretRef: { name: 'root' } };

/** Members that run may have started with trust of before. */
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

describe('whom to trust, and what to show', () => {
  test('nothing where nothing is encrypted', () => {
    expect(sources(undefined, {})).toEqual({});
  });

  test('are in what the operator writes, not in what a user may take away', () => {
    const held = {
      mine: paper(leaf, old.cert, false),
      op: paper(own, old.cert, false),
      'db-server-mounted': paper(leaf, old.cert),
      'db-operator-mounted': paper(own, old.cert),
    };
    expect(sources(mutual, held, old.cert)).toEqual({ ca: 'db-server-mounted', pair: 'db-operator-mounted' });
    expect(sources(oneWay, held, old.cert)).toEqual({ ca: 'db-server-mounted' });
  });

  test('a cluster of an earlier operator has the Secret of its user only', () => {
    expect(sources(oneWay, { mine: paper(leaf, old.cert, false) })).toMatchObject({ ca: 'mine' });
  });

  test('while an authority is exchanged: both are trusted as soon as a Secret has both, and the pair is the one that members take', () => {
    const both = old.cert + next.cert;
    const held = {
      mine: paper(later, next.cert, false),
      op: paper(later, next.cert, false),
      'db-server-mounted': paper(leaf, old.cert),
      'db-operator-mounted': paper(own, old.cert),
      [trustName('db', 'client', digestOf(both) ?? '')]: secret({ 'ca.crt': both }),
    };
    expect(sources(mutual, held, both)).toMatchObject({ ca: trustName('db', 'client', digestOf(both) ?? '') });
    const published = { ...held, 'db-server-mounted': paper(leaf, both) };
    expect(sources(mutual, published, both)).toMatchObject({ ca: 'db-server-mounted', pair: 'db-operator-mounted' });
    const exchanged = { ...published, 'db-operator-mounted': paper(later, both) };
    const half = trustName('db', 'client', digestOf(old.cert) ?? '');
    const running = { ...exchanged, [half]: secret({ 'ca.crt': old.cert }) };
    expect(sources(mutual, running, both, [half]).pair).toBe('db-server-mounted');
  });

  test('as long as no Secret has it, what members show is vouched for by what was there before', () => {
    const held = {
      'db-client-ca': secret({ 'tls.crt': next.cert, 'tls.key': next.key }),
      'db-server-mounted': paper(leaf, old.cert),
    };
    const managed: Tls = { client: { managed: { clientCertificates: 'None' } } };
    expect(sources(managed, held, next.cert).ca).toBe('db-server-mounted');
  });
});

describe('the password of root', () => {
  test.each<[string, Readonly<Record<string, Secret>>, string | undefined]>([
    ['is nowhere', {}, undefined],
    ['was given, and the operator has kept none', { root: secret({ password: 'a' }, false) }, 'root'],
    [
      'is the one that etcd accepted last, not the one that was given since',
      { root: secret({ password: 'b' }, false), 'db-root-applied': secret({ password: 'a' }) },
      'db-root-applied',
    ],
    ['is not in a Secret of somebody else', { 'db-root-applied': secret({ password: 'a' }, false) }, undefined],
  ])('%s', (_what, held, found) => {
    expect(sources(oneWay, held).root).toBe(found);
  });
});
