/** Secrets are written as a plan says, from what is there at that moment, through a model of the API server. */
import { X509Certificate } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { NOW } from '../../test/support/builders.ts';
import { hear, type ModelWorld, modelWorld } from '../../test/support/ports.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { API_VERSION, etcdClusters } from '../api/names.ts';
import type { Tls } from '../api/tls.ts';
import { textOf } from '../credentials/judge.ts';
import type { Todo } from '../credentials/view.ts';
import type { Secret } from '../gen/kube.ts';
import type { Resource } from '../kube/object.ts';
import { secrets } from '../kube/resources.ts';
import { doPaperwork, isPaperwork } from './paperwork.ts';

const resource: Resource<EtcdCluster> = etcdClusters;
const { signal } = new AbortController();

let world: ModelWorld;
let cluster: EtcdCluster;

async function aWorld(tls: Tls): Promise<void> {
  world = modelWorld();
  const object: EtcdCluster = {
    apiVersion: API_VERSION,
    kind: 'EtcdCluster',
    metadata: { name: 'db', namespace: 'ns' },
    spec: { version: '3.6.16', tls, additionalMetadata: { labels: { team: 'x' } } },
  };
  cluster = await world.client.create(resource, object);
  hear(world.clusters, cluster);
}
const write = (name: Todo, target: string): Promise<void> => {
  const call = { name, target, cluster: { namespace: 'ns', name: 'db', uid: cluster.metadata.uid ?? '' } };
  if (!isPaperwork(call)) throw new Error(`${name} is not known`);
  return doPaperwork(world, call, signal);
};
const said = (promise: Promise<void>): Promise<string> => promise.then(() => 'done', String);
const read = async (name: string): Promise<Secret> => {
  const found = await world.client.get(secrets, { namespace: 'ns', name });
  if (!found) throw new Error(`no Secret ${name}`);
  return found;
};
const certificateIn = async (name: string, key = 'tls.crt') => new X509Certificate(textOf(await read(name), key));
const give = (name: string, data: Readonly<Record<string, string>>): Promise<Secret> =>
  world.client.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'ns' },
    data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, Buffer.from(v).toString('base64')])),
  });

describe('an authority of the operator', () => {
  beforeEach(() => aWorld({ client: { managed: { duration: '48h' } }, peer: { managed: {} } }));

  test('signs what members, the operator and applications show', async () => {
    await write('found', 'db-client-ca');
    for (const name of ['db-server-mounted', 'db-operator-client-tls', 'db-client-tls']) await write('issue', name);
    const authority = await certificateIn('db-client-ca');
    for (const name of ['db-server-mounted', 'db-operator-client-tls', 'db-client-tls']) {
      expect((await certificateIn(name)).verify(authority.publicKey)).toBe(true);
      expect((await certificateIn(name, 'ca.crt')).fingerprint256).toBe(authority.fingerprint256);
    }
    const server = await certificateIn('db-server-mounted');
    expect(server.subjectAltName?.split(', ')).toEqual([
      'DNS:*.db.ns.svc',
      'DNS:*.db.ns.svc.cluster.local',
      'DNS:db.ns.svc',
      'DNS:db.ns.svc.cluster.local',
      'DNS:db-client.ns.svc',
      'DNS:db-client.ns.svc.cluster.local',
      'DNS:localhost',
      'IP Address:127.0.0.1',
    ]);
    expect(server.validToDate.getTime()).toBe(NOW + 48 * 60 * 60_000);
    expect((await certificateIn('db-client-tls')).keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(await read('db-client-tls')).toMatchObject({
      type: 'kubernetes.io/tls',
      metadata: { labels: { team: 'x' }, ownerReferences: [{ kind: 'EtcdCluster', uid: cluster.metadata.uid }] },
    });
  });

  test('renews in place', async () => {
    await write('found', 'db-peer-ca');
    await write('issue', 'db-peer-mounted');
    const [before, object] = [await certificateIn('db-peer-mounted'), await read('db-peer-mounted')];
    await write('issue', 'db-peer-mounted');
    expect((await certificateIn('db-peer-mounted')).serialNumber).not.toBe(before.serialNumber);
    expect((await read('db-peer-mounted')).metadata.uid).toBe(object.metadata.uid);
  });

  test('that is not there, not ours or not readable signs nothing, and says nothing of a key', async () => {
    expect(await said(write('issue', 'db-peer-mounted'))).toBe(
      'NotNow: Secret db-peer-ca with the authority is not there',
    );
    await give('db-client-ca', { 'tls.crt': 'x', 'tls.key': 'planted-secret' });
    expect(await said(write('issue', 'db-server-mounted'))).toContain(
      'Secret db-client-ca exists and belongs to nobody',
    );
    await write('found', 'db-peer-ca');
    const ref = { namespace: 'ns', name: 'db-peer-ca' };
    await world.client.patch(secrets, ref, { data: { 'tls.key': Buffer.from('planted-secret').toString('base64') } });
    const words = await said(write('issue', 'db-peer-mounted'));
    expect(words).toBe('NotNow: the authority in Secret db-peer-ca cannot be read');
  });

  test('a second authority is never put over the first', async () => {
    await give('db-client-ca', { 'tls.crt': 'theirs' });
    expect(await said(write('found', 'db-client-ca'))).toContain('belongs to nobody');
    expect(textOf(await read('db-client-ca'), 'tls.crt')).toBe('theirs');
  });
});

describe('a Secret of the user', () => {
  beforeEach(() => aWorld({ client: { serverSecretRef: { name: 'mine' } } }));
  const full = { 'tls.crt': 'cert', 'tls.key': 'key', 'ca.crt': 'ca', other: 'x' };
  const dataOf = async (name: string) => {
    const secret = await read(name);
    return Object.fromEntries(Object.keys(secret.data ?? {}).map((key) => [key, textOf(secret, key)]));
  };

  test('is copied, with what members need and no more; a renewal leaves what they trust', async () => {
    const mine = await give('mine', full);
    await write('copy', 'db-server-mounted');
    expect(await dataOf('db-server-mounted')).toEqual({ 'tls.crt': 'cert', 'tls.key': 'key', 'ca.crt': 'ca' });
    const data = { 'tls.crt': 'bmV3', 'tls.key': 'bmV3', 'ca.crt': 'bmV3' };
    await world.client.patch(secrets, { namespace: 'ns', name: mine.metadata.name ?? '' }, { data });
    await write('copyLeaf', 'db-server-mounted');
    expect(await dataOf('db-server-mounted')).toEqual({ 'tls.crt': 'new', 'tls.key': 'new', 'ca.crt': 'ca' });
  });

  test('that is incomplete by now, or whose copy belongs to somebody else, is left alone', async () => {
    expect(await said(write('copy', 'db-server-mounted'))).toBe('NotNow: Secret mine has no tls.crt any more');
    await give('mine', full);
    await give('db-server-mounted', { 'tls.crt': 'theirs' });
    expect(await said(write('copy', 'db-server-mounted'))).toContain('exists and belongs to nobody');
    expect(await dataOf('db-server-mounted')).toEqual({ 'tls.crt': 'theirs' });
  });

  test('of a cluster that was made anew meanwhile is not touched', async () => {
    await give('mine', full);
    const call = {
      name: 'copy',
      target: 'db-server-mounted',
      cluster: { namespace: 'ns', name: 'db', uid: 'old' },
    } as const;
    expect(await said(doPaperwork(world, call, signal))).toBe('NotNow: the cluster is gone');
  });
});
