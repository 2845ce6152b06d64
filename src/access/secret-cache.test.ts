/** How often Secrets are read, and the access to members that follows from them. */
import { describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_UID, NOW } from '../../test/support/builders/builders.ts';
import { NOTHING_MOUNTED } from '../../test/support/builders/credentials.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { trustName } from '../api/names.ts';
import type { TlsMaterial } from '../etcd/transport.ts';
import type { Secret } from '../gen/kube.ts';
import { ApiError } from '../kube/errors.ts';
import type { KubeObject, Ref, Resource } from '../kube/object.ts';
import { createCA, issue } from '../pki/issue.ts';
import { systemKeySource } from '../pki/key-source.ts';
import { digestOf } from './evaluate/ca-bundle.ts';
import { SecretCache } from './secret-cache.ts';

/** Secrets by name, and a record of the reads. */
function vault(held: Map<string, Secret>) {
  const asked: string[] = [];
  /** By name, how a read of this Secret fails. */
  const faults = new Map<string, () => Promise<never>>();
  let now = NOW;
  const get = <T extends KubeObject>(_resource: Resource<T>, { name }: Ref): Promise<T | undefined> => {
    asked.push(name);
    const fault = faults.get(name);
    if (fault) return fault();
    return Promise.resolve(held.get(name) as unknown as T | undefined);
  };
  const handshakes: string[] = [];
  const look = (endpoint: string, { serverName = '' }: TlsMaterial): Promise<string> => {
    handshakes.push(`${endpoint} as ${serverName}`);
    return Promise.resolve('another');
  };
  const credentials = new SecretCache({
    client: { get },
    now: () => now,
    domain: 'cluster.local',
    look,
    mounted: () => NOTHING_MOUNTED,
    graceMs: 120_000,
    clockAheadMs: (withinMs) => withinMs / 2,
  });
  return { credentials, handshakes, asked, faults, advance: (ms: number) => (now += ms), held };
}

const cluster = (uid = CLUSTER_UID): EtcdCluster => {
  const made = aCluster({ spec: { tls: { client: { serverSecretRef: { name: 'mine' } } } } });
  return { ...made, metadata: { ...made.metadata, uid } };
};

function secret(text: Readonly<Record<string, string>>, ofCluster = false): Secret {
  const data = Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
  const owner = { apiVersion: 'x', kind: 'EtcdCluster', name: 'db', uid: CLUSTER_UID, controller: true };
  return { apiVersion: 'v1', kind: 'Secret', metadata: { ...(ofCluster && { ownerReferences: [owner] }) }, data };
}

async function good(): Promise<Map<string, Secret>> {
  const ca = await createCA('ca', NOW, systemKeySource);
  const hosts = ['*.db.ns.svc', 'db-client.ns.svc'];
  const leaf = { name: 'x', hosts, usages: ['server auth'], durationMs: 1e10 } as const;
  const { cert, key } = await issue(ca, leaf, NOW, systemKeySource);
  const text = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
  return new Map([
    ['mine', secret(text)],
    ['db-server-mounted', secret(text, true)],
  ]);
}

test('valid Secrets are read every five minutes, by name, however many callers there are', async () => {
  const { credentials, asked, advance } = vault(await good());
  await Promise.all([
    credentials.view(cluster()),
    credentials.access(cluster(), () => 'h'),
    credentials.view(cluster()),
  ]);
  expect(asked).toEqual(['mine', 'db-server-mounted']);
  advance(299_000);
  await credentials.view(cluster());
  expect(asked.length).toBe(2);
  advance(1_000);
  await credentials.view(cluster());
  expect(asked.length).toBe(4);
});

test('missing and invalid Secrets are read every ten seconds, and at once after a write', async () => {
  const { credentials, asked, advance } = vault(new Map());
  await credentials.view(cluster());
  advance(9_000);
  await credentials.view(cluster());
  expect(asked.length).toBe(2);
  advance(1_000);
  await credentials.view(cluster());
  expect(asked.length).toBe(4);
  credentials.forget('ns/db');
  await credentials.view(cluster());
  expect(asked.length).toBe(6);
});

test('a jump of the wall clock does not end the grace period in which clients receive a new CA', () => {
  expect(vault(new Map()).credentials.around(cluster(), NOW).graceMs).toBe(180_000);
});

test('Secrets are read again at once after an edit of the spec', async () => {
  const { credentials, asked } = vault(await good());
  await credentials.view(cluster());
  const edited = cluster();
  await credentials.view({ ...edited, metadata: { ...edited.metadata, generation: 7 } });
  expect(asked.length).toBe(4);
});

test('Secrets are read again when a certificate is due for renewal', async () => {
  const ca = await createCA('ca', NOW, systemKeySource);
  const hosts = ['*.db.ns.svc', '*.db.ns.svc.cluster.local'];
  const leaf = await issue(ca, { name: 'x', hosts, usages: [], durationMs: 60 * 60_000 }, NOW, systemKeySource);
  const held = new Map([
    ['db-peer-ca', secret({ 'tls.crt': ca.cert, 'tls.key': ca.key }, true)],
    ['db-peer-mounted', secret({ 'tls.crt': leaf.cert, 'tls.key': leaf.key, 'ca.crt': ca.cert }, true)],
    [trustName('db', 'peer', digestOf(ca.cert) ?? ''), secret({ 'ca.crt': ca.cert }, true)],
  ]);
  const { credentials, asked, advance } = vault(held);
  const managed = aCluster({ spec: { tls: { peer: { managed: { duration: '1h', renewBefore: '58m' } } } } });
  const todo = async () => (await credentials.view(managed)).certificates.map((c) => c.todo);
  expect(await todo()).toEqual([undefined]);
  advance(119_000);
  expect([await todo(), asked.length]).toEqual([[undefined], 3]);
  advance(1_000);
  expect([await todo(), asked.length]).toEqual([['issueCertificate'], 6]);
});

test('a cluster that was deleted and created again shares nothing with its predecessor', async () => {
  const { credentials, asked } = vault(await good());
  await credentials.view(cluster());
  await credentials.view(cluster('another'));
  expect(asked.length).toBe(4);
});

test('a cluster without TLS is accessed without TLS, and no Secret is read for it', async () => {
  const { credentials, asked } = vault(new Map());
  expect(await credentials.access(aCluster(), () => 'h')).toEqual({ cluster: 'ns/db' });
  expect(asked).toEqual([]);
});

test('the expiry of cached certificates is reported, and no longer after the cluster was deleted', async () => {
  const { credentials } = vault(await good());
  expect([...credentials.expiries()]).toEqual([]);
  await credentials.view(cluster());
  const labels = { namespace: 'ns', cluster: 'db', role: 'server', secret: 'mine' };
  expect([...credentials.expiries()]).toEqual([{ ...labels, at: NOW + 1e10 }]);
  credentials.drop('ns/db');
  expect([...credentials.expiries()]).toEqual([]);
});

test('the served certificates of members are read until they are the mounted ones; not without TLS', async () => {
  const { credentials, handshakes } = vault(await good());
  const at = (port: number) => ({ [`https://10.0.0.1:${port}`]: 'a.db.ns.svc' });
  expect(await credentials.served(cluster(), 'client', at(2379))).toEqual({ behind: ['a.db.ns.svc'], unseen: [] });
  expect(handshakes).toEqual(['https://10.0.0.1:2379 as a.db.ns.svc']);
  const none = { behind: [], unseen: [] };
  expect(await credentials.served(cluster(), 'peer', at(2380))).toEqual(none);
  expect(await credentials.served(aCluster(), 'client', at(2379))).toEqual(none);
  expect(handshakes.length).toBe(1);
});

test('Secrets are evaluated again when the status, the requested rotation or the Pods change', async () => {
  const { credentials, asked } = vault(await good());
  await credentials.view(cluster());
  const { length } = asked;
  const made = cluster();
  const annotations = { 'etcd-operator.cozystack.io/rotate-ca': '1' };
  await credentials.view({ ...made, metadata: { ...made.metadata, annotations } });
  expect(asked.length).toBeGreaterThan(length);
});

describe('a Secret that cannot be read', () => {
  const answers = (code: number, message: string) => () =>
    Promise.reject(new ApiError('GET /api/v1/namespaces/ns/secrets/mine', code, { reason: 'X', message }));
  const kms = answers(500, 'Internal error occurred: unable to transform key');

  test.each([
    ['500', kms, '500 Internal error occurred: unable to transform key'],
    ['403', answers(403, 'secrets "mine" is forbidden'), '403 secrets "mine" is forbidden'],
  ])('%s: the last evaluation is kept, with the Secret and the error', async (_what, fault, message) => {
    const { credentials, faults, advance } = vault(await good());
    const before = await credentials.view(cluster());
    const way = await credentials.access(cluster(), () => 'h');
    const sources = await credentials.sources(cluster());
    faults.set('mine', fault);
    advance(300_000);
    const { unreadable: unread, ...view } = await credentials.view(cluster());
    expect(view).toEqual(before);
    expect(unread).toEqual({ secrets: ['mine'], message, password: false, judged: true, retryAt: NOW + 301_000 });
    expect((await credentials.access(cluster(), () => 'h')).tls?.('e')).toEqual(way.tls?.('e'));
    expect(await credentials.sources(cluster())).toEqual(sources);
  });

  test('without an earlier evaluation there is no access, and never one without TLS', async () => {
    const { credentials, asked, faults } = vault(await good());
    faults.set('mine', kms);
    const view = await credentials.view(cluster());
    expect(view).toMatchObject({ certificates: [], unreadable: { secrets: ['mine'], judged: false } });
    expect(await credentials.access(cluster(), () => 'h')).toEqual({ cluster: 'ns/db' });
    expect(await credentials.sources(cluster())).toEqual({});
    const { length } = asked;
    const another = await credentials.view(cluster('another'));
    expect(another.unreadable?.judged).toBe(false);
    expect(asked.length, 'a cluster of the same name does not wait for the retry of its predecessor').toBe(length + 2);
  });

  test('a CA bundle Secret that cannot be read does not count as missing', async () => {
    const ca = await createCA('ca', NOW, systemKeySource);
    const bundle = trustName('db', 'peer', digestOf(ca.cert) ?? '');
    const { credentials, faults } = vault(
      new Map([['db-peer-ca', secret({ 'tls.crt': ca.cert, 'tls.key': ca.key }, true)]]),
    );
    faults.set(bundle, kms);
    const managed = aCluster({ spec: { tls: { peer: { managed: {} } } } });
    expect(await credentials.view(managed)).toMatchObject({ bundles: [], unreadable: { secrets: [bundle] } });
  });

  test('stays unreadable until it is read, also when all else is as at the last successful read', async () => {
    const { credentials, faults, advance } = vault(await good());
    await credentials.view(cluster());
    faults.set('mine', kms);
    const made = cluster();
    const annotations = { 'etcd-operator.cozystack.io/rotate-ca': '1' };
    await credentials.view({ ...made, metadata: { ...made.metadata, annotations } });
    expect((await credentials.view(made)).unreadable).toBeDefined();
    advance(1_000);
    expect((await credentials.view(made)).unreadable).toMatchObject({ retryAt: NOW + 3_000 });
  });

  test('the evaluation of a deleted cluster is not used for a new one of the same name', async () => {
    const { credentials, faults } = vault(await good());
    await credentials.view(cluster());
    faults.set('mine', kms);
    expect(await credentials.view(cluster('another'))).toMatchObject({
      certificates: [],
      unreadable: { judged: false },
    });
    expect(await credentials.access(cluster('another'), () => 'h')).toEqual({ cluster: 'ns/db' });
  });

  test('reads back off from 1 s to 5 min, also when the cache is invalidated, and start over after a success', async () => {
    const { credentials, asked, faults, advance } = vault(await good());
    faults.set('mine', kms);
    const retries: number[] = [];
    let now = NOW;
    for (let i = 0; i < 11; i++) {
      const { unreadable: unread } = await credentials.view(cluster());
      const { length } = asked;
      credentials.forget('ns/db');
      advance((unread?.retryAt ?? 0) - now - 1);
      await credentials.view(cluster());
      expect(asked.length).toBe(length);
      advance(1);
      retries.push((unread?.retryAt ?? 0) - now);
      now = unread?.retryAt ?? 0;
    }
    expect(retries).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((s) => s * 1_000));
    faults.clear();
    expect((await credentials.view(cluster())).unreadable).toBeUndefined();
    faults.set('mine', kms);
    advance(300_000);
    const { unreadable: unread } = await credentials.view(cluster());
    expect((unread?.retryAt ?? 0) - now).toBe(301_000);
  });

  test('a failed read counts once, however many callers there are', async () => {
    const { credentials, asked, faults } = vault(await good());
    faults.set('mine', kms);
    const views = await Promise.all([credentials.view(cluster()), credentials.view(cluster())]);
    expect(views.map(({ unreadable: unread }) => unread?.retryAt)).toEqual([NOW + 1_000, NOW + 1_000]);
    expect(asked.length).toBe(2);
  });

  test('it is read again at once after an edit of the spec', async () => {
    const { credentials, asked, faults } = vault(await good());
    faults.set('mine', kms);
    await credentials.view(cluster());
    const edited = cluster();
    await credentials.view({ ...edited, metadata: { ...edited.metadata, generation: 7 } });
    expect(asked.length).toBe(4);
  });

  test('a failed read after a write does not drop the cached evaluation', async () => {
    const { credentials, faults } = vault(await good());
    const before = await credentials.view(cluster());
    credentials.forget('ns/db');
    faults.set('db-server-mounted', kms);
    expect(await credentials.view(cluster())).toMatchObject({ ...before, unreadable: { judged: true } });
    expect([...credentials.expiries()].length).toBe(1);
  });

  test('it is reported when the root password is among the unreadable Secrets', async () => {
    const held = await good();
    const { credentials, faults } = vault(held);
    const spec = { tls: cluster().spec.tls ?? {}, auth: { enabled: true, rootCredentialsSecretRef: { name: 'root' } } };
    const withAuth = aCluster({ spec });
    held.set('root', secret({ password: 'x' }));
    expect(await credentials.password(withAuth)).toMatchObject({ kept: 'nothing' });
    credentials.forget('ns/db');
    for (const name of ['root', 'db-root-applied']) faults.set(name, kms);
    expect((await credentials.view(withAuth)).unreadable).toMatchObject({
      secrets: ['root', 'db-root-applied'],
      password: true,
    });
    expect(await credentials.password(withAuth)).toMatchObject({ kept: 'nothing' });
  });
});
