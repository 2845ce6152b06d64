/** A real etcd that has reached its quota, and a real operator that ends the alarm: plain, and with mTLS and auth. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import type { Ask } from '../../src/etcd/client.ts';
import { pods, secrets } from '../../src/kube/resources.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, startWorld, type World } from '../support/servers/world.ts';

const MI = 2 ** 20;
const VALUE = new Uint8Array(MI).fill(7);
const QUOTA = 48 * MI;
const PATIENCE_MS = 120_000;
const PASSWORD = 'remedy-password';
const SPEC = {
  options: { quotaBackendBytes: QUOTA },
  maintenance: { autoRemedy: { enabled: true, keepRevisions: 3 } },
};

let world: World;
let operator: Child;
beforeAll(async () => {
  world = await startWorld();
  operator = world.startOperator();
}, 180_000);
afterAll(async () => {
  await world?.stop();
});

/** A user edits the spec, which makes the operator reconcile at once: it reads alarms every thirty seconds. */
let edits = 0;
const edit = (namespace: string, spec: object = {}): Promise<EtcdCluster> =>
  world.admin.patch(clusters, { namespace, name: 'db' }, { spec: { progressDeadlineSeconds: 601 + edits++, ...spec } });
const settled = (namespace: string): Promise<EtcdCluster> =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');

type Client = (namespace: string) => Promise<Ask>;
const endpointIn = async (namespace: string): Promise<readonly [pod: string, address: string]> => {
  const [pod] = await world.list(pods, namespace);
  const name = pod?.metadata.name ?? '';
  return [name, `${world.kubelet.addressOf(namespace, name)}:2379`];
};
const plain: Client = async (namespace) => {
  const [, address] = await endpointIn(namespace);
  return { endpoint: `http://${address}`, timeoutMs: 30_000 };
};
const secured: Client = async (namespace) => {
  const [pod, address] = await endpointIn(namespace);
  const read = (name: string) => eventually(`Secret ${name}`, () => world.admin.get(secrets, { namespace, name }));
  const given = await read('db-client-tls');
  const ca = textOf(await read('db-server-mounted'), 'ca.crt');
  const tls = {
    ca,
    cert: textOf(given, 'tls.crt'),
    key: textOf(given, 'tls.key'),
    serverName: `${pod}.db.${namespace}.svc`,
  };
  return {
    endpoint: `https://${address}`,
    timeoutMs: 30_000,
    access: { cluster: namespace, tls: () => tls, passwords: () => [{ user: 'root', password: PASSWORD }] },
  };
};

/** Versions of one key until etcd refuses the next one. */
async function fill(at: Ask): Promise<number> {
  for (let n = 0; n < (4 * QUOTA) / MI; n++) {
    const written = await world.etcd.kv.put(at, 'large', VALUE);
    if (written.ok) continue;
    expect(written.error.kind).toBe('noSpace');
    return n;
  }
  throw new Error('etcd accepted more than four times its quota');
}

const remedyIn = async (namespace: string) =>
  (await world.admin.get(clusters, { namespace, name: 'db' }))?.status?.remedy;
const ended = (namespace: string) =>
  eventually(
    'the remedy to end',
    async () => {
      const remedy = await remedyIn(namespace);
      return remedy?.finishedAt === undefined ? undefined : remedy;
    },
    { timeoutMs: PATIENCE_MS, seen: () => operator.log().slice(-3_000) },
  );

describe.each<[string, Client, object]>([
  ['without TLS', plain, {}],
  [
    'with mTLS and auth',
    secured,
    {
      tls: { client: { managed: {} }, peer: { managed: {} } },
      auth: { enabled: true, rootCredentialsSecretRef: { name: 'root' } },
    },
  ],
])('a cluster of three members %s', { timeout: 5 * PATIENCE_MS }, (_how, client, spec) => {
  test('accepts writes again after its quota was reached, has the kept history, and says what was done', async () => {
    const namespace = await world.namespace();
    await world.admin.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'root', namespace },
      data: { password: Buffer.from(PASSWORD).toString('base64') },
    });
    await world.createCluster(namespace, 'db', { replicas: 3, ...SPEC, ...spec });
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
    if ('auth' in spec) await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'AuthEnabled', 'True', 'Enabled');
    await settled(namespace);
    const at = await client(namespace);
    const written = await fill(at);
    expect(written).toBeGreaterThan(QUOTA / MI / 2);
    await edit(namespace);
    const remedy = await ended(namespace);
    expect(remedy).toMatchObject({
      result: 'Remedied',
      message: expect.stringMatching(/^compacted up to revision \d+, .* freed/),
    });
    const put = await world.etcd.kv.put(at, 'k', new Uint8Array([1]));
    expect(put.ok).toBe(true);
    const old = await world.etcd.kv.count(at, { revision: BigInt(remedy.revision ?? 0) - 1n });
    expect(old.ok ? 'ok' : old.error.kind, 'the history before it is compacted').toBe('compacted');
    const kept = await world.etcd.kv.count(at, { revision: BigInt(remedy.revision ?? 0) + 1n });
    expect(kept.ok, 'and the rest is kept').toBe(true);
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Degraded', 'False', 'QuorumHealthy');
  });
});

test('keys that fill the quota are reported with the size that they need', {
  timeout: 5 * PATIENCE_MS,
}, async () => {
  const namespace = await world.namespace();
  await world.createCluster(namespace, 'db', { replicas: 1, ...SPEC });
  await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
  const at = await plain(namespace);
  for (let n = 0; ; n++) {
    const written = await world.etcd.kv.put(at, `key-${n}`, VALUE);
    if (written.ok) continue;
    expect(written.error.kind).toBe('noSpace');
    break;
  }
  await edit(namespace);
  const remedy = await ended(namespace);
  expect(remedy).toMatchObject({
    result: 'NoRoom',
    message: expect.stringContaining('raise options.quotaBackendBytes to'),
  });
  await world.condition(namespace, 'db', 'Degraded', 'True', 'NoSpace');
});
