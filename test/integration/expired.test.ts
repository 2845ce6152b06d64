/** CAs that expire while a cluster is paused or runs, with real members: the user replaces the Secrets, and nothing else is needed. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { digestOf } from '../../src/access/evaluate/ca-bundle.ts';
import type { Tls } from '../../src/api/tls.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { isPodReady } from '../../src/domain/pod.ts';
import type { Pod } from '../../src/gen/kube.ts';
import { pods, secrets } from '../../src/kube/resources.ts';
import { CA_LIFETIME_MS, createCA, issue, type KeyPair } from '../../src/pki/issue.ts';
import { systemKeySource } from '../../src/pki/key-source.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { type Child, eventually, pause } from '../support/servers/processes.ts';
import { clusters, startWorld, type World } from '../support/servers/world.ts';

let world: World;
let operator: Child | undefined;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});
afterEach(async (context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-20_000) ?? '');
  await operator?.stop('SIGKILL');
  operator = undefined;
});

const PATIENCE_MS = 180_000;
/** Enough to create a cluster and to write to it. */
const VALID_MS = 60_000;
const DAY = 24 * 60 * 60_000;
const tls: Tls = {
  client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'op' } },
  peer: { secretRef: { name: 'peer' } },
};

/** Reads all Secrets at once, instead of within five minutes. */
async function restartOperator(): Promise<void> {
  await operator?.stop('SIGKILL');
  operator = world.startOperator('--rotation-grace=1');
}

const encoded = (text: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));

/** The three Secrets of the user, with certificates of this CA. */
async function putSecrets(namespace: string, ca: KeyPair): Promise<void> {
  const hosts = [`*.db.${namespace}.svc`, `*.db.${namespace}.svc.cluster.local`, `db-client.${namespace}.svc`];
  for (const name of ['server', 'peer', 'op']) {
    const usages = ['server auth', 'client auth'] as const;
    const leaf = { name, hosts: name === 'op' ? [] : hosts, usages, durationMs: 90 * DAY };
    const { cert, key } = await issue(ca, leaf, Date.now(), systemKeySource);
    const data = encoded({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert });
    const ref = { namespace, name };
    if (await world.admin.get(secrets, ref)) await world.admin.patch(secrets, ref, { data });
    else await world.admin.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: ref, data });
  }
}

const condition = (namespace: string, type: string, status: string, reason?: string) =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', type, status, reason);
const scale = (namespace: string, replicas: number) =>
  world.admin.patch(clusters, { namespace, name: 'db' }, { spec: { replicas } });
const podsWhen = (namespace: string, what: string, is: (all: readonly Pod[]) => boolean): Promise<readonly Pod[]> =>
  eventually(
    what,
    async () => {
      const all = await world.list(pods, namespace);
      return is(all) ? all : undefined;
    },
    { timeoutMs: PATIENCE_MS },
  );
const uidsOf = (all: readonly Pod[]): readonly (string | undefined)[] => all.map(({ metadata }) => metadata.uid);

/** A client with a certificate of this CA. */
async function clientOf(namespace: string, ca: KeyPair) {
  const usages = ['client auth'] as const;
  const own = await issue(ca, { name: 'client', hosts: [], usages, durationMs: DAY }, Date.now(), systemKeySource);
  const [pod] = world.kubelet.running(namespace);
  const serverName = `${pod?.pod.metadata.name ?? ''}.db.${namespace}.svc`;
  const material = { ca: ca.cert, ...own, serverName };
  const access = { cluster: `client of ${digestOf(ca.cert)}`, tls: () => material };
  return { endpoint: `https://${pod?.address}:2379`, timeoutMs: 5_000, access };
}

/** A cluster of three with a key, and certificates that expire soon. Resolves to when they do. */
async function shortLived(namespace: string): Promise<number> {
  const before = await createCA('before', Date.now() + VALID_MS - CA_LIFETIME_MS, systemKeySource);
  const until = Date.now() + VALID_MS;
  await restartOperator();
  await putSecrets(namespace, before);
  await world.createCluster(namespace, 'db', { tls, replicas: 3 });
  await condition(namespace, 'Available', 'True', 'QuorumHealthy');
  expect(await world.etcd.put(await clientOf(namespace, before), 'k', 'v')).toMatchObject({ ok: true });
  return until;
}

/** The user has replaced the Secrets: the cluster serves with the new CA only, and has its data. */
async function expectServed(namespace: string, after: KeyPair): Promise<void> {
  await condition(namespace, 'Available', 'True', 'QuorumHealthy');
  const { status } = await condition(namespace, 'CertificatesValid', 'True', 'Valid');
  expect(status?.trust).toMatchObject({ client: digestOf(after.cert), peer: digestOf(after.cert) });
  const kept = await world.etcd.get(await clientOf(namespace, after), 'k');
  expect(kept, ABOUT_DATA).toMatchObject({ ok: true, value: 'v' });
}

describe('all certificates of a cluster have expired', { timeout: 4 * PATIENCE_MS }, () => {
  test('while it was paused: its members start, cannot connect, and are restarted with the new CA', async () => {
    const namespace = await world.namespace();
    const until = await shortLived(namespace);
    await scale(namespace, 0);
    await podsWhen(namespace, 'the pause', (all) => all.length === 0);
    await pause(Math.max(0, until - Date.now()) + 1_000);
    await scale(namespace, 3);
    const resumed = await podsWhen(namespace, 'three Pods', (all) => all.length === 3);
    const after = await createCA('after', Date.now(), systemKeySource);
    await putSecrets(namespace, after);
    await restartOperator();
    await expectServed(namespace, after);
    const now = await podsWhen(namespace, 'three ready Pods', (all) => all.length === 3 && all.every(isPodReady));
    expect(uidsOf(now).filter((uid) => uidsOf(resumed).includes(uid))).toEqual([]);
  });

  test.runIf(process.env['DEV_TEST_ALL'])(
    'while it ran: nothing is restarted as long as it serves over old connections',
    async () => {
      const namespace = await world.namespace();
      const until = await shortLived(namespace);
      await pause(Math.max(0, until - Date.now()) + 1_000);
      const running = await world.list(pods, namespace);
      const after = await createCA('after', Date.now(), systemKeySource);
      await putSecrets(namespace, after);
      await restartOperator();
      await eventually(
        'the operator to report what it waits for',
        async () => {
          const cluster = await world.admin.get(clusters, { namespace, name: 'db' });
          const { message = '' } = findCondition(cluster?.status?.conditions, 'CertificatesValid') ?? {};
          return message.includes('delete the Pods of all members') ? true : undefined;
        },
        { timeoutMs: PATIENCE_MS },
      );
      const now = await world.list(pods, namespace);
      expect(uidsOf(now)).toEqual(uidsOf(running));
      expect(now.every(isPodReady)).toBe(true);
      for (const { metadata } of now)
        await world.admin.delete(pods, { namespace, name: metadata.name ?? '' }, { uid: metadata.uid ?? '' });
      await expectServed(namespace, after);
    },
  );
});
