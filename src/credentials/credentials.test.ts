/** How often Secrets are read, and how members are reached with what is in them. */
import { expect, test } from 'vitest';
import { aCluster, CLUSTER_UID, NOW } from '../../test/support/builders.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { trustName } from '../api/names.ts';
import type { TlsMaterial } from '../etcd/transport.ts';
import type { Secret } from '../gen/kube.ts';
import type { KubeObject, Ref, Resource } from '../kube/object.ts';
import { systemChance } from '../pki/chance.ts';
import { createAuthority, issue } from '../pki/issue.ts';
import { Credentials } from './credentials.ts';
import { NOTHING_MOUNTED } from './mounted.ts';
import { digestOf } from './trust.ts';

/** Secrets by name, and a record of who was asked for. */
function vault(held: Map<string, Secret>) {
  const asked: string[] = [];
  let now = NOW;
  const get = <T extends KubeObject>(_resource: Resource<T>, { name }: Ref): Promise<T | undefined> => {
    asked.push(name);
    return Promise.resolve(held.get(name) as unknown as T | undefined);
  };
  const looked: string[] = [];
  const look = (endpoint: string, { serverName = '' }: TlsMaterial): Promise<string> => {
    looked.push(`${endpoint} as ${serverName}`);
    return Promise.resolve('another');
  };
  const credentials = new Credentials({
    client: { get },
    now: () => now,
    domain: 'cluster.local',
    look,
    mounted: () => NOTHING_MOUNTED,
    graceMs: 120_000,
  });
  return { credentials, looked, asked, pass: (ms: number) => (now += ms), held };
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
  const ca = await createAuthority('ca', NOW, systemChance);
  const hosts = ['*.db.ns.svc', 'db-client.ns.svc'];
  const leaf = { name: 'x', hosts, usages: ['server auth'], durationMs: 1e10 } as const;
  const { cert, key } = await issue(ca, leaf, NOW, systemChance);
  const text = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
  return new Map([
    ['mine', secret(text)],
    ['db-server-mounted', secret(text, true)],
  ]);
}

test('good ones are read every five minutes, by name, however many ask', async () => {
  const { credentials, asked, pass } = vault(await good());
  await Promise.all([
    credentials.view(cluster()),
    credentials.access(cluster(), () => 'h'),
    credentials.view(cluster()),
  ]);
  expect(asked).toEqual(['mine', 'db-server-mounted']);
  pass(299_000);
  await credentials.view(cluster());
  expect(asked.length).toBe(2);
  pass(1_000);
  await credentials.view(cluster());
  expect(asked.length).toBe(4);
});

test('missing and wrong ones are read every ten seconds, and at once after a write', async () => {
  const { credentials, asked, pass } = vault(new Map());
  await credentials.view(cluster());
  pass(9_000);
  await credentials.view(cluster());
  expect(asked.length).toBe(2);
  pass(1_000);
  await credentials.view(cluster());
  expect(asked.length).toBe(4);
  credentials.forget('ns/db');
  await credentials.view(cluster());
  expect(asked.length).toBe(6);
});

test('an edit of the spec has them read again at once', async () => {
  const { credentials, asked } = vault(await good());
  await credentials.view(cluster());
  const edited = cluster();
  await credentials.view({ ...edited, metadata: { ...edited.metadata, generation: 7 } });
  expect(asked.length).toBe(4);
});

test('they are read again when one of them is to be renewed', async () => {
  const ca = await createAuthority('ca', NOW, systemChance);
  const hosts = ['*.db.ns.svc', '*.db.ns.svc.cluster.local'];
  const leaf = await issue(ca, { name: 'x', hosts, usages: [], durationMs: 60 * 60_000 }, NOW, systemChance);
  const held = new Map([
    ['db-peer-ca', secret({ 'tls.crt': ca.cert, 'tls.key': ca.key }, true)],
    ['db-peer-mounted', secret({ 'tls.crt': leaf.cert, 'tls.key': leaf.key, 'ca.crt': ca.cert }, true)],
    [trustName('db', 'peer', digestOf(ca.cert) ?? ''), secret({ 'ca.crt': ca.cert }, true)],
  ]);
  const { credentials, asked, pass } = vault(held);
  const managed = aCluster({ spec: { tls: { peer: { managed: { duration: '1h', renewBefore: '58m' } } } } });
  const todo = async () => (await credentials.view(managed)).certificates.map((c) => c.todo);
  expect(await todo()).toEqual([undefined]);
  pass(119_000);
  expect([await todo(), asked.length]).toEqual([[undefined], 3]);
  pass(1_000);
  expect([await todo(), asked.length]).toEqual([['issue'], 6]);
});

test('a cluster that was made anew shares nothing with its predecessor', async () => {
  const { credentials, asked } = vault(await good());
  await credentials.view(cluster());
  await credentials.view(cluster('another'));
  expect(asked.length).toBe(4);
});

test('a plain cluster is reached plainly, and nothing is read for it', async () => {
  const { credentials, asked } = vault(new Map());
  expect(await credentials.access(aCluster(), () => 'h')).toEqual({ cluster: 'ns/db' });
  expect(asked).toEqual([]);
});

test('it is told when what was read last expires, and no longer when the cluster is gone', async () => {
  const { credentials } = vault(await good());
  expect([...credentials.expiries()]).toEqual([]);
  await credentials.view(cluster());
  const labels = { namespace: 'ns', cluster: 'db', role: 'server', secret: 'mine' };
  expect([...credentials.expiries()]).toEqual([{ ...labels, notAfter: NOW + 1e10 }]);
  credentials.forget('ns/db');
  expect([...credentials.expiries()]).toEqual([]);
});

test('members are looked at by name until they show what they have mounted; a plain cluster is not', async () => {
  const { credentials, looked } = vault(await good());
  const at = (port: number) => ({ [`https://10.0.0.1:${port}`]: 'a.db.ns.svc' });
  expect(await credentials.shown(cluster(), 'client', at(2379))).toEqual({ behind: ['a.db.ns.svc'], unseen: [] });
  expect(looked).toEqual(['https://10.0.0.1:2379 as a.db.ns.svc']);
  const nobody = { behind: [], unseen: [] };
  expect(await credentials.shown(cluster(), 'peer', at(2380))).toEqual(nobody);
  expect(await credentials.shown(aCluster(), 'client', at(2379))).toEqual(nobody);
  expect(looked.length).toBe(1);
});

test('they are judged anew when something else was recorded or asked for, or other Pods run', async () => {
  const { credentials, asked } = vault(await good());
  await credentials.view(cluster());
  const { length } = asked;
  const made = cluster();
  const annotations = { 'etcd-operator.cozystack.io/rotate-authority': '1' };
  await credentials.view({ ...made, metadata: { ...made.metadata, annotations } });
  expect(asked.length).toBeGreaterThan(length);
});
