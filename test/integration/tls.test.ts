/** Clusters with TLS and real servers: certificates of the operator, and those of users, valid and invalid. */
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import type { Tls } from '../../src/api/tls.ts';
import type { Access } from '../../src/etcd/client.ts';
import type { Result } from '../../src/etcd/errors.ts';
import type { Secret } from '../../src/gen/kube.ts';
import { events, pods, secrets } from '../../src/kube/resources.ts';
import { createCA, issue, type KeyPair, type Leaf } from '../../src/pki/issue.ts';
import { systemKeySource } from '../../src/pki/key-source.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

let world: World;
let operator: Child | undefined;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});
afterEach(async (context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-10_000) ?? '');
  await operator?.stop('SIGKILL');
  operator = undefined;
});

const PATIENCE_MS = 120_000;
const condition = (namespace: string, type: string, status: string, reason?: string) =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', type, status, reason);
const read = (namespace: string, name: string): Promise<Secret> =>
  eventually(`Secret ${name}`, () => world.admin.get(secrets, { namespace, name }));
/** Retried until there is a response: on a slow machine a cluster elects another leader now and then. */
const answered = <T>(what: string, call: () => Promise<Result<T>>): Promise<T> =>
  eventually(what, async () => {
    const answer = await call();
    if (!answer.ok) throw new Error(`${answer.error.kind}: ${answer.error.message}`);
    return answer.value;
  });
const podNames = async (namespace: string): Promise<readonly string[]> =>
  (await world.list(pods, namespace)).map((pod) => pod.metadata.name ?? '');
const at = (namespace: string, pod: string) => ({
  endpoint: `https://${world.kubelet.addressOf(namespace, pod)}:2379`,
  timeoutMs: 5_000,
});
const hostOf = (namespace: string, pod: string): string => `${pod}.db.${namespace}.svc`;

const write = (namespace: string, name: string, text: Readonly<Record<string, string>>): Promise<Secret> => {
  const data = Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
  return world.admin.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data });
};
const change = (namespace: string, name: string, text: Readonly<Record<string, string>>): Promise<Secret> => {
  const data = Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
  return world.admin.patch(secrets, { namespace, name }, { data });
};

describe('certificates of the operator', { timeout: 4 * PATIENCE_MS }, () => {
  const tls: Tls = { client: { managed: {} }, peer: { managed: {} } };

  test('one line each: members reach each other, clients need a certificate, and no key is readable', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { tls, replicas: 3 });
    await condition(namespace, 'Progressing', 'False', 'Reconciled');
    await condition(namespace, 'CertificatesValid', 'True', 'Valid');
    const given = await read(namespace, 'db-client-tls');
    const [ca, cert, key] = ['ca.crt', 'tls.crt', 'tls.key'].map((name) => textOf(given, name)) as [
      string,
      string,
      string,
    ];
    const names = await podNames(namespace);
    expect(names.length).toBe(3);
    for (const pod of names) {
      const serverName = hostOf(namespace, pod);
      const app: Access = { cluster: `app of ${pod}`, tls: () => ({ ca, cert, key, serverName }) };
      await answered(`a write at ${pod}`, () => world.etcd.put({ ...at(namespace, pod), access: app }, pod, 'v'));
      const bare: Access = { cluster: `bare ${pod}`, tls: () => ({ ca, serverName }) };
      expect(await world.etcd.status({ ...at(namespace, pod), access: bare })).toMatchObject({
        error: { kind: 'tls' },
      });
      const list = await answered(`the list of ${pod}`, () =>
        world.etcd.memberList({ ...at(namespace, pod), access: app, linearizable: true }),
      );
      const urls = list.members.flatMap(({ peerURLs }) => peerURLs);
      expect(urls.map((url) => new URL(url).protocol)).toEqual(['https:', 'https:', 'https:']);
    }
    const kept = await Promise.all(
      [
        'db-client-ca',
        'db-peer-ca',
        'db-server-mounted',
        'db-peer-mounted',
        'db-operator-client-tls',
        'db-client-tls',
      ].map((name) => read(namespace, name)),
    );
    const readable = JSON.stringify([
      operator.log(),
      await world.list(clusters, namespace),
      await world.list(members, namespace),
      await world.list(pods, namespace),
      await world.list(events, namespace),
    ]);
    for (const secret of kept) {
      const lines = textOf(secret, 'tls.key').split('\n').slice(1, -2);
      expect(lines.filter((line) => line !== '' && readable.includes(line))).toEqual([]);
      expect(readable).not.toContain(secret.data?.['tls.key']);
    }
    expect(readable).not.toContain('PRIVATE KEY');
  });

  test('without client certificates, every client with the CA is served', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { tls: { client: { managed: { clientCertificates: 'None' } } } });
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    const ca = textOf(await read(namespace, 'db-server-mounted'), 'ca.crt');
    const [pod = ''] = await podNames(namespace);
    const access: Access = { cluster: 'one-way', tls: () => ({ ca, serverName: hostOf(namespace, pod) }) };
    expect(await world.etcd.put({ ...at(namespace, pod), access }, 'k', 'v')).toMatchObject({ ok: true });
  });

  test('a foreign Secret with the same name is not changed, and named', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await write(namespace, 'db-client-ca', { mine: 'keep' });
    await world.createCluster(namespace, 'db', { tls });
    const cluster = await condition(namespace, 'CertificatesValid', 'False', 'NameConflict');
    const message = cluster.status?.conditions?.find((c) => c.type === 'CertificatesValid')?.message;
    expect(message).toContain('Secret db-client-ca exists and belongs to no controller');
    expect(await world.list(members, namespace)).toEqual([]);
    expect((await read(namespace, 'db-client-ca')).data).toEqual({ mine: Buffer.from('keep').toString('base64') });
  });
});

describe('Secrets of the user', { timeout: 4 * PATIENCE_MS }, () => {
  const tls: Tls = {
    client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'op' } },
    peer: { secretRef: { name: 'peer' } },
  };
  const DAY = 24 * 60 * 60_000;
  let ca: KeyPair;
  beforeAll(async () => {
    ca = await createCA('of the user', Date.now(), systemKeySource);
  });
  const leaf = async (
    hosts: readonly string[],
    more: Partial<Leaf> = {},
  ): Promise<Readonly<Record<string, string>>> => {
    const usages = ['server auth', 'client auth'] as const;
    const { cert, key } = await issue(
      ca,
      { name: 'x', hosts, usages, durationMs: 90 * DAY, ...more },
      Date.now(),
      systemKeySource,
    );
    return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
  };
  const namesIn = (namespace: string): readonly string[] => [
    `*.db.${namespace}.svc`,
    `*.db.${namespace}.svc.cluster.local`,
    `db-client.${namespace}.svc`,
  ];
  const serialAt = (namespace: string, pod: string, own: Readonly<Record<string, string>>): Promise<string> =>
    new Promise((resolve, reject) => {
      const host = world.kubelet.addressOf(namespace, pod) ?? '';
      const socket = connect(
        {
          host,
          port: 2379,
          ca: ca.cert,
          cert: own['tls.crt'],
          key: own['tls.key'],
          servername: hostOf(namespace, pod),
        },
        () => {
          resolve(socket.getPeerX509Certificate()?.serialNumber ?? '');
          socket.destroy();
        },
      );
      socket.on('error', reject);
    });

  test('late, without a name, without a key: each is named, nothing is started, and it recovers by itself', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    const names = namesIn(namespace);
    await world.createCluster(namespace, 'db', { tls });
    const late = await condition(namespace, 'CertificatesValid', 'False', 'SecretMissing');
    expect(late.status?.conditions?.find((c) => c.type === 'Available')?.reason).toBe('CertificatesInvalid');
    await write(namespace, 'op', await leaf([], { usages: ['client auth'] }));
    await write(namespace, 'peer', await leaf(names.slice(0, 1)));
    await write(namespace, 'server', await leaf(names));
    const unnamed = await condition(namespace, 'CertificatesValid', 'False', 'NameMissing');
    const message = unnamed.status?.conditions?.find((c) => c.type === 'CertificatesValid')?.message;
    expect(message).toContain(`tls.crt of Secret peer lacks *.db.${namespace}.svc.cluster.local`);
    await change(namespace, 'peer', { ...(await leaf(names)), 'tls.key': ' ' });
    await condition(namespace, 'CertificatesValid', 'False', 'KeyMissing');
    expect([await world.list(members, namespace), await podNames(namespace)]).toEqual([[], []]);
    await change(namespace, 'peer', await leaf(names));
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    await eventually('an Event about each', async () => {
      const found = await world.list(events, namespace);
      expect(found.map(({ reason }) => reason)).toEqual(
        expect.arrayContaining(['SecretMissing', 'NameMissing', 'KeyMissing', 'Valid']),
      );
      return true;
    });
  });

  test('invalid ones do not affect a running cluster; renewed ones reach it without a restart', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    const names = namesIn(namespace);
    const own = await leaf([], { usages: ['client auth'] });
    await write(namespace, 'op', own);
    await write(namespace, 'peer', await leaf(names));
    await write(namespace, 'server', await leaf(names));
    await world.createCluster(namespace, 'db', { tls, replicas: 3 });
    await condition(namespace, 'Progressing', 'False', 'Reconciled');
    const [pod = ''] = await podNames(namespace);
    const before = await serialAt(namespace, pod, own);
    const processes = (): readonly unknown[] => world.kubelet.running(namespace).map(({ child }) => child?.pid);
    const running = processes();

    await operator?.stop('SIGTERM'); // no reconcile in between
    await world.admin.delete(
      secrets,
      { namespace, name: 'peer' },
      { uid: (await read(namespace, 'peer')).metadata.uid ?? '' },
    );
    await change(namespace, 'server', { ...(await leaf(names)), 'tls.key': 'no key' });
    operator = world.startOperator(); // reads all Secrets at once, instead of within five minutes
    const bad = await condition(namespace, 'CertificatesValid', 'False');
    expect(bad.status?.conditions?.find((c) => c.type === 'CertificatesValid')?.message).toMatch(
      /tls.key of Secret server is not valid PEM.*Secret peer does not exist/,
    );
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    expect(await serialAt(namespace, pod, own)).toBe(before);

    await write(namespace, 'peer', await leaf(names));
    await change(namespace, 'server', await leaf(names));
    await condition(namespace, 'CertificatesValid', 'True', 'Valid'); // not before all members show it
    const after = await Promise.all((await podNames(namespace)).map((each) => serialAt(namespace, each, own)));
    expect(after).toEqual([after[0], after[0], after[0]]);
    expect(after[0]).not.toBe(before);
    expect(processes()).toEqual(running);
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
  });
});
