/** Clusters in every shape in which the Go operator and its migration tool leave them, taken over from real etcd processes while a client writes. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PEER_AUTO_TLS_ANNOTATION, RESTARTED_AT_ANNOTATION } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { controllerOf } from '../../src/domain/ownership.ts';
import type { Access } from '../../src/etcd/client.ts';
import type { Secret } from '../../src/gen/kube.ts';
import type { Resource } from '../../src/kube/object.ts';
import { pods, secrets } from '../../src/kube/resources.ts';
import { createCA, issue, type KeyPair } from '../../src/pki/issue.ts';
import { systemKeySource } from '../../src/pki/key-source.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { type GoCluster, type Manifest, STORAGE, VERSION } from '../support/journeys/go-manifests.ts';
import { permutations } from '../support/permutations.ts';
import { type GoWorld, leftByGo } from '../support/servers/go-world.ts';
import { type Child, eventually, pause } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

const PATIENCE_MS = 120_000;
const DAY = 24 * 60 * 60_000;
const PASSWORD = 'of-root';

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

const condition = (namespace: string, type: string, status: string, reason?: string) =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', type, status, reason);
const settled = (namespace: string) => condition(namespace, 'Progressing', 'False', 'Reconciled');
const edit = (namespace: string, spec: Manifest) => world.admin.patch(clusters, { namespace, name: 'db' }, { spec });
const remove = async (resource: Resource, namespace: string, name: string): Promise<void> => {
  const uid = (await world.admin.get(resource, { namespace, name }))?.metadata.uid ?? '';
  await world.admin.delete(resource, { namespace, name }, { uid });
};
const identities = async (namespace: string): Promise<readonly string[]> =>
  (await world.list(pods, namespace))
    .map(
      ({ metadata, status }) =>
        `${metadata.uid} ${String(status?.containerStatuses?.map((each) => each.restartCount))}`,
    )
    .toSorted();

type Data = Readonly<Record<string, string>>;
const base64 = (data: Data): Data =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
const write = (namespace: string, name: string, data: Data): Promise<Secret> =>
  world.admin.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    data: base64(data),
  });
const newCA = (name: string): Promise<KeyPair> => createCA(name, Date.now(), systemKeySource);
async function leaf(ca: KeyPair, hosts: readonly string[]): Promise<Data> {
  const usages = ['server auth', 'client auth'] as const;
  const asked = { name: 'x', hosts, usages, durationMs: 90 * DAY };
  const { cert, key } = await issue(ca, asked, Date.now(), systemKeySource);
  return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
}
/** What a certificate of a migrated cluster has to cover: the Services before and after the migration. */
const hostsIn = (namespace: string): readonly string[] => [
  ...['db', 'db-headless'].flatMap((each) => [
    `*.${each}.${namespace}.svc`,
    `*.${each}.${namespace}.svc.cluster.local`,
  ]),
  `db-client.${namespace}.svc`,
];

/** Writes to members that are ready, as clients of the Service. */
function aWriter(namespace: string, scheme: string, access?: (pod: string) => Access) {
  const acknowledged: string[] = [];
  let over = false;
  const ask = (name: string) => ({
    endpoint: `${scheme}://${world.kubelet.addressOf(namespace, name)}:2379`,
    timeoutMs: 3_000,
    ...(access && { access: access(name) }),
  });
  const ready = () =>
    world.kubelet.running(namespace).flatMap(({ ready: is, pod }) => (is ? [pod.metadata.name ?? ''] : []));
  const writing = (async () => {
    for (let number = 0, turn = 0; !over; turn++) {
      const names = ready();
      const name = names[turn % Math.max(1, names.length)];
      const answer = name === undefined ? undefined : await world.etcd.put(ask(name), `seq/${number}`, 'written');
      if (answer?.ok) acknowledged.push(`seq/${number++}`);
      await pause(answer?.ok ? 20 : 100);
    }
  })();
  return {
    acknowledged,
    /** The acknowledged keys that no member has any more. */
    lost: async (): Promise<readonly string[]> => {
      over = true;
      await writing;
      const missing: string[] = [];
      for (const key of acknowledged) {
        const read = await eventually(`reading ${key}`, async () => {
          const answer = await world.etcd.get(ask(ready()[0] ?? ''), key);
          return answer.ok ? { value: answer.value } : undefined;
        });
        if (read.value !== 'written') missing.push(key);
      }
      return missing;
    },
  };
}

interface Shape {
  readonly cluster: GoCluster;
  readonly spec?: Manifest;
  readonly auth?: true;
}

const NATIVE = ['db-x7k2p', 'db-b4m9q', 'db-t2v8w'];
const LEGACY = ['db-0', 'db-1', 'db-2'];
const adopted = { service: 'db-headless', dataDir: 'default.etcd' };
const withSecrets = { server: 'server', mutual: true, peer: 'peer' };
const bySecrets = {
  client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'op' } },
  peer: { secretRef: { name: 'peer' } },
};
const byRoot = { enabled: true, rootCredentialsSecretRef: { name: 'root' } };

/** Secrets, etcd and objects of the shape; how its members are reached. */
async function leave(namespace: string, { cluster, spec = {}, auth }: Shape) {
  const go: GoWorld = { world, namespace, cluster };
  if (!cluster.tls?.server) {
    await leftByGo(go, spec);
    return { scheme: 'http' };
  }
  const ca = await newCA('before');
  for (const name of ['server', 'peer']) await write(namespace, name, await leaf(ca, hostsIn(namespace)));
  const own = await leaf(ca, []);
  await write(namespace, 'op', own);
  const trusted = { ca: ca.cert, cert: own['tls.crt'] ?? '', key: own['tls.key'] ?? '' };
  const to =
    (passwords?: Access['passwords']) =>
    (pod: string): Access => {
      const service = cluster.adopted && /-\d$/.test(pod) ? cluster.adopted.service : 'db';
      const tls = () => ({ ...trusted, serverName: `${pod}.${service}.${namespace}.svc` });
      return { cluster: `${namespace}/${pod}/${passwords !== undefined}`, tls, ...(passwords && { passwords }) };
    };
  await leftByGo({ ...go, access: to() }, { tls: bySecrets, ...spec }, auth ? { authEnabled: true } : {});
  if (!auth) return { scheme: 'https', ca, access: to() };
  await write(namespace, 'root', { password: PASSWORD });
  const [seed = ''] = cluster.members;
  const ask = {
    endpoint: `https://${world.kubelet.addressOf(namespace, seed)}:2379`,
    timeoutMs: 5_000,
    access: to()(seed),
  };
  for (const step of [
    () => world.etcd.auth.addUser(ask, 'root', PASSWORD),
    () => world.etcd.auth.grantRole(ask, 'root', 'root'),
    () => world.etcd.auth.enable(ask),
  ])
    expect(await step()).toMatchObject({ ok: true });
  return { scheme: 'https', ca, access: to(() => [{ user: 'root', password: PASSWORD }]) };
}

const SHAPES: readonly (readonly [string, Shape])[] = [
  [
    'adopted from a StatefulSet, with certificates',
    { cluster: { name: 'db', members: LEGACY, adopted, tls: withSecrets } },
  ],
  [
    'created with mTLS and auth',
    { cluster: { name: 'db', members: NATIVE, tls: withSecrets }, spec: { auth: byRoot }, auth: true },
  ],
  [
    'adopted from a StatefulSet, with --peer-auto-tls',
    { cluster: { name: 'db', members: LEGACY, adopted, tls: { autoPeers: true } } },
  ],
  ['adopted from a StatefulSet, plain', { cluster: { name: 'db', members: LEGACY, adopted } }],
  ['created plain', { cluster: { name: 'db', members: NATIVE } }],
  ['created in memory', { cluster: { name: 'db', members: NATIVE, memory: true } }],
];

describe('a cluster', { timeout: 6 * PATIENCE_MS }, () => {
  test.each(permutations(2, SHAPES))('%s', async (_, shape) => {
    const namespace = await world.namespace();
    const { scheme, access, ca } = await leave(namespace, shape);
    if (shape.cluster.tls?.autoPeers)
      await world.admin.patch(
        clusters,
        { namespace, name: 'db' },
        { metadata: { annotations: { [PEER_AUTO_TLS_ANNOTATION]: 'true' } } },
      );
    const before = await identities(namespace);
    const writer = aWriter(namespace, scheme, access);

    operator = world.startOperator('--rotation-grace=3');
    await settled(namespace);
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    await pause(3_000); // whatever would be restarted, would be restarted now
    expect(await identities(namespace)).toEqual(before);
    for (const member of await world.list(members, namespace)) expect(controllerOf(member)?.name).toBe('db');

    await edit(namespace, { replicas: 4 });
    await eventually('four members', async () =>
      (await world.list(members, namespace)).length === 4 ? true : undefined,
    );
    await settled(namespace);
    expect(await identities(namespace)).toEqual(expect.arrayContaining([...before]));
    await edit(namespace, { replicas: 3 });
    await eventually(
      'three members',
      async () => ((await world.list(members, namespace)).length === 3 ? true : undefined),
      {
        timeoutMs: PATIENCE_MS,
      },
    );
    await settled(namespace);

    const [first = '', second = ''] = shape.cluster.members;
    if (!shape.cluster.memory) {
      await remove(pods, namespace, first); // comes back with its data and at its address
      await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    }
    await remove(members, namespace, second); // is removed from etcd, and replaced
    await eventually(
      'another member',
      async () => {
        const names = (await world.list(members, namespace)).map(({ metadata }) => metadata.name);
        return names.length === 3 && !names.includes(second) ? true : undefined;
      },
      { timeoutMs: PATIENCE_MS },
    );
    await settled(namespace);

    expect(await writer.lost(), ABOUT_DATA).toEqual([]);
    expect(writer.acknowledged.length).toBeGreaterThan(20);

    if (ca !== undefined) {
      const [after, uids] = [await newCA('after'), await identities(namespace)];
      await operator.stop('SIGKILL');
      for (const name of ['server', 'peer', 'op']) {
        const data = base64(await leaf(after, name === 'op' ? [] : hostsIn(namespace)));
        await world.admin.patch(secrets, { namespace, name }, { data });
      }
      operator = world.startOperator('--rotation-grace=3');
      await condition(namespace, 'CertificatesValid', 'True', 'RotatingCA');
      await condition(namespace, 'CertificatesValid', 'True', 'Valid');
      await settled(namespace);
      const now = await identities(namespace);
      expect(
        now.filter((each) => uids.includes(each)),
        'every member has loaded the new CA bundle',
      ).toEqual([]);
    }
    if (shape.cluster.memory) return;
    await edit(namespace, { replicas: 0 });
    await condition(namespace, 'Available', 'False', 'Paused');
    await edit(namespace, { replicas: 3 });
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    await settled(namespace);
    await condition(namespace, 'Degraded', 'False');
  });

  test('whose members are behind its spec: nothing restarts, the fields are named, and a restart on request applies them', async () => {
    const namespace = await world.namespace();
    const cluster = { name: 'db', members: NATIVE };
    const resources = { requests: { cpu: '150m', memory: '128Mi' } };
    const observed = { replicas: 3, version: VERSION, storage: STORAGE, resources };
    await leftByGo({ world, namespace, cluster }, { resources }, { observed });
    const before = await identities(namespace);
    operator = world.startOperator();
    const found = await condition(namespace, 'Progressing', 'False', 'UpdatePending');
    const { message = '' } = findCondition(found.status?.conditions, 'Progressing') ?? {};
    for (const part of [...NATIVE, 'resources', RESTARTED_AT_ANNOTATION]) expect(message).toContain(part);
    expect(found.status?.updatedMembers).toBe(0);
    await edit(namespace, { replicas: 4 }); // a new member has the field
    await eventually('four members', async () =>
      (await world.list(members, namespace)).length === 4 ? true : undefined,
    );
    await condition(namespace, 'Progressing', 'False', 'UpdatePending');
    expect(await identities(namespace)).toEqual(expect.arrayContaining([...before]));
    const annotations = { [RESTARTED_AT_ANNOTATION]: 'now' };
    await world.admin.patch(clusters, { namespace, name: 'db' }, { metadata: { annotations } });
    await eventually(
      'every member to be restarted',
      async () => ((await identities(namespace)).some((each) => before.includes(each)) ? undefined : true),
      { timeoutMs: PATIENCE_MS },
    );
    await settled(namespace);
    for (const { spec } of await world.list(pods, namespace))
      expect(spec?.containers[0]?.resources).toMatchObject({ requests: { cpu: '150m' } });
  });
});
