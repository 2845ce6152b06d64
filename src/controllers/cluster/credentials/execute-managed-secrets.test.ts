/** Secret calls of a plan, evaluated again with the Secrets at that moment, against a model of the API server. */
import { X509Certificate } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { FORMED, NOW } from '../../../../test/support/builders/builders.ts';
import { type ModelWorld, modelWorld, putInCache } from '../../../../test/support/builders/ports.ts';
import { digestOf } from '../../../access/evaluate/ca-bundle.ts';
import { textOf } from '../../../access/evaluate/secret-set.ts';
import type { SecretAction } from '../../../access/evaluate/view.ts';
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import {
  API_VERSION,
  etcdClusters,
  ROTATE_CA_ANNOTATION,
  trustName,
  WRITTEN_AT_ANNOTATION,
} from '../../../api/names.ts';
import type { Tls } from '../../../api/tls.ts';
import type { Secret } from '../../../gen/kube.ts';
import type { Resource } from '../../../kube/object.ts';
import { secrets } from '../../../kube/resources.ts';
import { iso } from '../../../lib/time.ts';
import { createCA, issue, type KeyPair } from '../../../pki/issue.ts';
import { systemKeySource } from '../../../pki/key-source.ts';
import { executeSecretCall } from './execute-managed-secrets.ts';

const resource: Resource<EtcdCluster> = etcdClusters;
const { signal } = new AbortController();
const DAY = 24 * 60 * 60_000;

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
  putInCache(world.clusters, cluster);
}
const write = (name: SecretAction, target: string, now = NOW): Promise<void> => {
  const of = { namespace: 'ns', name: 'db', uid: cluster.metadata.uid ?? '' };
  return executeSecretCall({ ...world, now: () => now }, { is: 'secret', name, target, cluster: of }, signal);
};
const resultOf = (promise: Promise<void>): Promise<string> => promise.then(() => 'done', String);
const read = async (name: string): Promise<Secret> => {
  const found = await world.client.get(secrets, { namespace: 'ns', name });
  if (!found) throw new Error(`no Secret ${name}`);
  return found;
};
const change = (name: string, text: Readonly<Record<string, string>>): Promise<Secret> => {
  const data = Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
  return world.client.patch(secrets, { namespace: 'ns', name }, { data });
};
const certificateIn = async (name: string, key = 'tls.crt') => new X509Certificate(textOf(await read(name), key));
const give = (name: string, data: Readonly<Record<string, string>>): Promise<Secret> =>
  world.client.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'ns' },
    data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, Buffer.from(v).toString('base64')])),
  });

describe('a managed CA', () => {
  beforeEach(() => aWorld({ client: { managed: { duration: '48h' } }, peer: { managed: {} } }));

  test('signs the certificates of members, of the operator and of applications', async () => {
    await write('createCA', 'db-client-ca');
    for (const name of ['db-server-mounted', 'db-operator-client-tls', 'db-client-tls'])
      await write('issueCertificate', name);
    const issuer = await certificateIn('db-client-ca');
    for (const name of ['db-server-mounted', 'db-operator-client-tls', 'db-client-tls']) {
      expect((await certificateIn(name)).verify(issuer.publicKey)).toBe(true);
      expect((await certificateIn(name, 'ca.crt')).fingerprint256).toBe(issuer.fingerprint256);
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

  test('renews in place, and not before it is due', async () => {
    await write('createCA', 'db-peer-ca');
    await write('issueCertificate', 'db-peer-mounted');
    const [before, object] = [await certificateIn('db-peer-mounted'), await read('db-peer-mounted')];
    expect(await resultOf(write('issueCertificate', 'db-peer-mounted'))).toContain('has changed since it was read');
    await write('issueCertificate', 'db-peer-mounted', NOW + 61 * DAY);
    expect((await certificateIn('db-peer-mounted')).serialNumber).not.toBe(before.serialNumber);
    expect((await read('db-peer-mounted')).metadata.uid).toBe(object.metadata.uid);
  });

  test('that is missing, foreign or malformed signs nothing, and no error contains its key', async () => {
    expect(await resultOf(write('issueCertificate', 'db-peer-mounted'))).toBe(
      'RetryLater: the CA in Secret db-peer-ca cannot sign certificates',
    );
    await give('db-client-ca', { 'tls.crt': 'x', 'tls.key': 'planted-secret' });
    expect(await resultOf(write('issueCertificate', 'db-server-mounted'))).not.toContain('planted');
    await write('createCA', 'db-peer-ca');
    await change('db-peer-ca', { 'tls.key': 'planted-secret' });
    expect(await resultOf(write('issueCertificate', 'db-peer-mounted'))).not.toContain('planted');
    for (const name of ['db-server-mounted', 'db-peer-mounted']) await expect(read(name)).rejects.toThrow('no Secret');
  });

  test('whose certificate and key do not match signs nothing: the certificate would be reissued for ever', async () => {
    await write('createCA', 'db-peer-ca');
    await write('createCA', 'db-client-ca');
    await change('db-peer-ca', { 'tls.crt': textOf(await read('db-client-ca'), 'tls.crt') });
    expect(await resultOf(write('issueCertificate', 'db-peer-mounted'))).toContain('RetryLater: ');
    const { cert, key } = await createCA('written, in another way', NOW, systemKeySource);
    await change('db-peer-ca', { 'tls.crt': cert, 'tls.key': key });
    expect(await resultOf(write('issueCertificate', 'db-peer-mounted'))).toContain(
      'would not be valid after this write',
    );
    await expect(read('db-peer-mounted')).rejects.toThrow('no Secret');
  });

  test('is never overwritten by a second CA', async () => {
    await give('db-client-ca', { 'tls.crt': 'theirs' });
    expect(await resultOf(write('createCA', 'db-client-ca'))).toContain('has changed since it was read');
    expect(textOf(await read('db-client-ca'), 'tls.crt')).toBe('theirs');
  });
});

describe("a user's Secret", () => {
  let ca: KeyPair;
  beforeEach(async () => {
    await aWorld({ client: { serverSecretRef: { name: 'mine' } } });
    ca = await createCA('ca', NOW, systemKeySource);
  });
  const good = async (by = ca): Promise<Readonly<Record<string, string>>> => {
    const leaf = { name: 'x', hosts: ['*.db.ns.svc'], usages: [], durationMs: 30 * DAY };
    const { cert, key } = await issue(by, leaf, NOW, systemKeySource);
    return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': by.cert };
  };
  const dataOf = async (name: string) => {
    const secret = await read(name);
    return Object.fromEntries(Object.keys(secret.data ?? {}).map((key) => [key, textOf(secret, key)]));
  };
  /** Members run now. */
  const form = (): void => putInCache(world.clusters, { ...cluster, status: FORMED });

  test('is copied with the keys that members need only; a renewal does not change the CA bundle', async () => {
    const [first, renewed] = [await good(), await good()];
    await give('mine', { ...first, other: 'x' });
    await write('copySecret', 'db-server-mounted');
    expect(await dataOf('db-server-mounted')).toEqual(first);
    form();
    await change('mine', { ...renewed, 'ca.crt': `${ca.cert}\n${ca.cert}` });
    await write('copyCertificate', 'db-server-mounted');
    expect(await dataOf('db-server-mounted')).toEqual({ ...renewed, 'ca.crt': ca.cert });
  });

  test.each<[string, () => Promise<Readonly<Record<string, string>>>]>([
    ['half of it was written', async () => ({ 'tls.crt': (await good())['tls.crt'] ?? '' })],
    ['another CA has signed it', async () => good(await createCA('ca', NOW, systemKeySource))],
    ['it was emptied', async () => ({ 'tls.key': '' })],
  ])('that became invalid after the decision is not copied: %s', async (_, bad) => {
    const first = await good();
    await give('mine', first);
    await write('copySecret', 'db-server-mounted');
    form();
    await change('mine', await bad());
    expect(await resultOf(write('copyCertificate', 'db-server-mounted'))).toContain('has changed since it was read');
    expect(await dataOf('db-server-mounted')).toEqual(first);
  });

  test('that is missing, or whose copy is a foreign Secret, is not written', async () => {
    expect(await resultOf(write('copySecret', 'db-server-mounted'))).toContain('has changed since it was read');
    await give('mine', await good());
    await give('db-server-mounted', { 'tls.crt': 'theirs' });
    expect(await resultOf(write('copySecret', 'db-server-mounted'))).toContain('has changed since it was read');
    expect(await dataOf('db-server-mounted')).toEqual({ 'tls.crt': 'theirs' });
  });

  test('of a cluster that was deleted and created again is not written', async () => {
    await give('mine', await good());
    const call = {
      is: 'secret',
      name: 'copySecret',
      target: 'db-server-mounted',
      cluster: { namespace: 'ns', name: 'db', uid: 'old' },
    } as const;
    expect(await resultOf(executeSecretCall(world, call, signal))).toBe('RetryLater: the cluster was deleted');
  });
});

describe('a CA bundle', () => {
  beforeEach(() => aWorld({ peer: { managed: { duration: '48h' } } }));
  const deleteBundle = (target: string): Promise<void> =>
    executeSecretCall(
      world,
      {
        is: 'secret',
        name: 'deleteCABundle',
        target,
        cluster: { namespace: 'ns', name: 'db', uid: cluster.metadata.uid ?? '' },
      },
      signal,
    );
  const certOf = async (name: string, key = 'tls.crt'): Promise<string> => textOf(await read(name), key);
  const become = (trust: NonNullable<EtcdCluster['status']>['trust']): void => {
    const annotations = { [ROTATE_CA_ANNOTATION]: '1' };
    putInCache(world.clusters, {
      ...cluster,
      metadata: { ...cluster.metadata, annotations },
      status: { ...FORMED, ...(trust && { trust }) },
    });
  };

  test('is in an immutable Secret with no other key', async () => {
    await write('createCA', 'db-peer-ca');
    await write('issueCertificate', 'db-peer-mounted');
    const name = trustName('db', 'peer', digestOf(await certOf('db-peer-ca')) ?? '');
    await write('writeCABundle', name);
    expect(await read(name)).toMatchObject({ immutable: true, type: 'Opaque' });
    expect(Object.keys((await read(name)).data ?? {})).toEqual(['ca.crt']);
    expect((await read('db-peer-mounted')).metadata.annotations).toEqual({ [WRITTEN_AT_ANNOTATION]: iso(NOW) });
    await give('theirs', { 'ca.crt': 'x' });
    for (const kept of ['db-peer-mounted', 'theirs', 'nothing']) await deleteBundle(kept);
    await deleteBundle(name);
    await expect(read(name)).rejects.toThrow('no Secret');
    expect([await certOf('theirs', 'ca.crt'), await certOf('db-peer-mounted')]).toEqual(['x', expect.any(String)]);
  });

  test('is not deleted when its Secret was deleted meanwhile, and created again', async () => {
    await write('createCA', 'db-peer-ca');
    const name = trustName('db', 'peer', digestOf(await certOf('db-peer-ca')) ?? '');
    await write('writeCABundle', name);
    const { resourceVersion: _r, uid = '', ...metadata } = (await read(name)).metadata;
    const remove: ModelWorld['client']['delete'] = async (...args) => {
      await world.client.delete(secrets, { namespace: 'ns', name }, { uid });
      await world.client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata });
      return world.client.delete(...args);
    };
    const client = new Proxy(world.client, {
      get: (target, key) => (key === 'delete' ? remove : (Reflect.get(target, key) as () => unknown).bind(target)),
    });
    const of = { namespace: 'ns', name: 'db', uid: cluster.metadata.uid ?? '' };
    const call = { is: 'secret', name: 'deleteCABundle', target: name, cluster: of } as const;
    expect(await resultOf(executeSecretCall({ ...world, client }, call, signal))).not.toBe('done');
    expect((await read(name)).metadata.uid).not.toBe(uid);
  });

  test('a next CA is created next to the current one, and replaces it when all members trust it', async () => {
    await write('createCA', 'db-peer-ca');
    await write('issueCertificate', 'db-peer-mounted');
    const old = await certOf('db-peer-ca');
    const before = digestOf(old) ?? '';
    become({ peer: before });
    await write('createNextCA', 'db-peer-ca');
    const next = await certOf('db-peer-ca', 'next.crt');
    expect([await certOf('db-peer-ca'), digestOf(next) === before]).toEqual([old, false]);
    const both = digestOf(old + next) ?? '';
    expect(await resultOf(write('promoteNextCA', 'db-peer-ca'))).toContain('has changed since it was read');
    await write('writeCABundle', trustName('db', 'peer', both));
    become({ peer: both, commanded: { peer: '1' } });
    await write('promoteNextCA', 'db-peer-ca');
    expect(await certOf('db-peer-ca')).toBe(next);
    expect(Object.keys((await read('db-peer-ca')).data ?? {}).sort()).toEqual(['tls.crt', 'tls.key']);
    await write('issueCertificate', 'db-peer-mounted');
    expect(digestOf(await certOf('db-peer-mounted', 'ca.crt'))).toBe(both);
  });
});
