/** Clusters with auth enabled, with real servers: the root password is given, changed, lost and restored. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import type { Tls } from '../../src/api/tls.ts';
import type { Ask } from '../../src/etcd/client.ts';
import type { Result } from '../../src/etcd/errors.ts';
import type { Secret } from '../../src/gen/kube.ts';
import { events, pods, secrets } from '../../src/kube/resources.ts';
import { permutations } from '../support/permutations.ts';
import { foundIn, keyLines } from '../support/planted.ts';
import { type Child, eventually, freePort } from '../support/servers/processes.ts';
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
const timeout = 6 * PATIENCE_MS;
const mutual: Tls = { client: { managed: {} }, peer: { managed: {} } };
const oneWay: Tls = { client: { managed: { clientCertificates: 'None' } } };
const auth = { enabled: true, rootCredentialsSecretRef: { name: 'root' } };

const condition = (namespace: string, type: string, status: string, reason?: string): Promise<EtcdCluster> =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', type, status, reason);
const messageOf = (cluster: EtcdCluster, type: string): string =>
  cluster.status?.conditions?.find((c) => c.type === type)?.message ?? '';
const enabled = (namespace: string): Promise<EtcdCluster> => condition(namespace, 'AuthEnabled', 'True', 'Enabled');
const settled = (namespace: string): Promise<EtcdCluster> => condition(namespace, 'Progressing', 'False', 'Reconciled');

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const give = (namespace: string, password: string): Promise<Secret> =>
  world.admin.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'root', namespace },
    data: { password: base64(password) },
  });
const change = (namespace: string, password: string): Promise<Secret> =>
  world.admin.patch(secrets, { namespace, name: 'root' }, { data: { password: base64(password) } });
const read = (namespace: string, name: string): Promise<Secret> =>
  eventually(`Secret ${name}`, () => world.admin.get(secrets, { namespace, name }));
const take = async (namespace: string): Promise<void> => {
  const { uid = '' } = (await read(namespace, 'root')).metadata;
  await world.admin.delete(secrets, { namespace, name: 'root' }, { uid });
};
/** A user edits the spec, which makes the operator reconcile at once. */
let edits = 0;
const edit = (namespace: string, spec: object = {}): Promise<EtcdCluster> =>
  world.admin.patch(clusters, { namespace, name: 'db' }, { spec: { progressDeadlineSeconds: 601 + edits++, ...spec } });

const podNames = async (namespace: string): Promise<readonly string[]> =>
  (await world.list(pods, namespace)).map((pod) => pod.metadata.name ?? '');
/** A client of the first member, with the certificate for clients if there is one. */
async function client(namespace: string, password?: string): Promise<Ask> {
  const [pod = ''] = await podNames(namespace);
  const given = await world.admin.get(secrets, { namespace, name: 'db-client-tls' });
  const ca = textOf(await read(namespace, 'db-server-mounted'), 'ca.crt');
  const pair = given ? { cert: textOf(given, 'tls.crt'), key: textOf(given, 'tls.key') } : {};
  const tls = { ca, ...pair, serverName: `${pod}.db.${namespace}.svc` };
  const passwords = password === undefined ? [] : [{ user: 'root', password }];
  return {
    endpoint: `https://${world.kubelet.addressOf(namespace, pod)}:2379`,
    timeoutMs: 5_000,
    access: { cluster: `${namespace}/${pod} with ${password}`, tls: () => tls, passwords: () => passwords },
  };
}
const kindOf = (answer: Result<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);
const put = async (namespace: string, password?: string): Promise<string> =>
  kindOf(await world.etcd.put(await client(namespace, password), 'k', 'v'));

/** Another client enables auth. */
async function turnOn(namespace: string): Promise<void> {
  const bare = await client(namespace);
  for (const answer of [
    await world.etcd.auth.addUser(bare, 'root', 'by hand'),
    await world.etcd.auth.grantRole(bare, 'root', 'root'),
    await world.etcd.auth.enable(bare),
  ])
    expect(kindOf(answer)).toBe('ok');
}

async function secured(tls: Tls, password: string, replicas = 1): Promise<string> {
  const namespace = await world.namespace();
  await give(namespace, password);
  await world.createCluster(namespace, 'db', { tls, auth, replicas });
  await enabled(namespace);
  await settled(namespace);
  return namespace;
}

describe('S7: the password of root', { timeout }, () => {
  test('comes late, is needed by every client, and is enough for scaling and replacing; no secret is readable', async () => {
    const port = await freePort();
    operator = world.startOperator(`--metrics-bind-address=127.0.0.1:${port}`);
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { tls: mutual, auth });
    const late = await condition(namespace, 'Available', 'False', 'AuthCredentialsMissing');
    expect(messageOf(late, 'Available')).toContain('Secret root does not exist');
    expect(await world.list(members, namespace)).toEqual([]);
    await give(namespace, 'planted-first');
    const on = await enabled(namespace);
    expect(on.status?.authEnabled).toBe(true);
    await settled(namespace);
    expect([await put(namespace), await put(namespace, 'guess'), await put(namespace, 'planted-first')]).toEqual([
      'permissionDenied',
      'authFailed',
      'ok',
    ]);

    await edit(namespace, { replicas: 3 });
    await eventually('three members', async () => (await podNames(namespace)).length === 3 || undefined, {
      timeoutMs: PATIENCE_MS,
    });
    await settled(namespace);
    const [member] = await world.list(members, namespace);
    const name = member?.metadata.name ?? '';
    await world.admin.delete(members, { namespace, name }, { uid: member?.metadata.uid ?? '' });
    await eventually(
      `${name} to be replaced`,
      async () => {
        const names = (await world.list(members, namespace)).map(({ metadata }) => metadata.name);
        return (names.length === 3 && !names.includes(name)) || undefined;
      },
      { timeoutMs: PATIENCE_MS },
    );
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    await settled(namespace);

    await change(namespace, 'planted-second');
    await edit(namespace);
    await eventually(
      'the new password to be accepted',
      async () => (await put(namespace, 'planted-second')) === 'ok' || undefined,
      {
        timeoutMs: PATIENCE_MS,
      },
    );
    await enabled(namespace);
    expect([await put(namespace), await put(namespace, 'planted-first')]).toEqual(['permissionDenied', 'authFailed']);

    const keys = await Promise.all(
      ['db-client-ca', 'db-peer-ca', 'db-server-mounted', 'db-peer-mounted', 'db-operator-client-tls'].map(
        async (name) => keyLines(name, textOf(await read(namespace, name), 'tls.key')),
      ),
    );
    const readable = JSON.stringify([
      operator.log(),
      await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
      world.kubelet.running(namespace).map(({ child }) => child?.log()),
      await world.list(clusters, namespace),
      await world.list(members, namespace),
      await world.list(pods, namespace),
      await world.list(events, namespace),
    ]);
    expect(readable).toContain('etcd_operator_'); // the metrics are there
    expect(
      foundIn(readable, { first: 'planted-first', second: 'planted-second', ...Object.assign({}, ...keys) }),
    ).toEqual([]);
  });

  test.each(
    permutations(1, [
      ['with certificates of clients', mutual, 'permissionDenied'],
      ['without', oneWay, 'authRequired'],
    ]),
  )('is not lost with its Secret, and one that etcd rejects is reported and recovers, %s', async (_name, tls, open) => {
    operator = world.startOperator();
    const namespace = await secured(tls, 'first');
    expect([await put(namespace), await put(namespace, 'first')]).toEqual([open, 'ok']);

    await take(namespace);
    await edit(namespace, { replicas: 3 });
    await condition(namespace, 'AuthEnabled', 'True', 'AuthCredentialsMissing');
    await eventually('three members', async () => (await podNames(namespace)).length === 3 || undefined, {
      timeoutMs: PATIENCE_MS,
    });
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    await edit(namespace, { replicas: 0 });
    await condition(namespace, 'Available', 'False', 'Paused');
    await edit(namespace, { replicas: 3 }); // no client can authenticate before a quorum has resumed
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    await give(namespace, ''); // there, and empty
    await condition(namespace, 'AuthEnabled', 'True', 'AuthCredentialsMissing');
    await change(namespace, 'x'.repeat(73));
    const long = await condition(namespace, 'AuthEnabled', 'True', 'AuthCredentialsInvalid');
    expect(messageOf(long, 'AuthEnabled')).toContain('has 73 bytes, and etcd accepts at most 72');
    await change(namespace, 'first');
    await enabled(namespace);
    await settled(namespace);

    const asRoot = await client(namespace, 'first');
    expect(kindOf(await world.etcd.auth.changePassword(asRoot, 'root', 'by hand'))).toBe('ok');
    await operator.stop('SIGKILL');
    operator = world.startOperator(); // an operator with a token would not notice before the token expires
    const locked = await condition(namespace, 'Degraded', 'True', 'AuthCredentialsRejected');
    expect(messageOf(locked, 'Degraded')).toContain('Secret root');
    expect(locked.status?.conditions?.find((c) => c.type === 'Available')).toMatchObject({ status: 'True' });
    await change(namespace, 'by hand');
    await condition(namespace, 'Degraded', 'False');
    await enabled(namespace);
    expect(await put(namespace, 'by hand')).toBe('ok');
  });
});

describe('an operator that is killed', { timeout }, () => {
  test.each(
    permutations(1, [
      ['before it records that it will change the password', 1, 'before'],
      ['after it has recorded that', 1, 'after'],
      ['after it has changed it and not recorded that', 2, 'before'],
      ['after it has recorded that too', 2, 'after'],
    ] as const),
  )('%s is followed by one that continues from there, and no client is locked out', async (_name, nth, when) => {
    operator = world.startOperator();
    const namespace = await secured(oneWay, 'first');
    await operator.stop('SIGKILL');
    const proxy = await world.faultProxy();
    const killed = Promise.withResolvers<void>();
    proxy.fault(
      { verb: 'patch', resource: 'secrets', nth },
      { do: 'interrupt', when, run: async () => killed.resolve(await operator?.stop('SIGKILL')) },
    );
    await change(namespace, 'second');
    operator = world.startOperator(...proxy.flags, `--watch-namespace=${namespace}`);
    await killed.promise;
    await change(namespace, 'third'); // before the operator reconciles
    operator = world.startOperator();
    await eventually(
      'the last password to be accepted',
      async () => (await put(namespace, 'third')) === 'ok' || undefined,
      {
        timeoutMs: PATIENCE_MS,
      },
    );
    await enabled(namespace);
    const kept = await eventually('nothing to be intended any more', async () => {
      const found = await read(namespace, 'db-root-applied');
      return found.data?.['next'] === undefined ? found : undefined;
    });
    expect(textOf(kept, 'password')).toBe('third');
    expect([await put(namespace, 'first'), await put(namespace, 'second')]).toEqual(['authFailed', 'authFailed']);
  });
});

describe('data with users that were created before the bootstrap', { timeout }, () => {
  /** The seed runs, the operator has not reconciled yet, and a client has enabled auth. */
  async function seedWithAuth(tls: Tls, spec: Pick<EtcdCluster['spec'], 'auth'>): Promise<string> {
    const namespace = await world.namespace();
    world.kubelet.hold(true);
    operator = world.startOperator();
    await give(namespace, 'wrong');
    await world.createCluster(namespace, 'db', { tls, ...spec });
    // The previous operator was killed: this one waits for its Lease.
    await eventually('a Pod', async () => (await podNames(namespace)).length === 1 || undefined, {
      timeoutMs: PATIENCE_MS,
    });
    await operator.stop('SIGKILL');
    world.kubelet.hold(false);
    await eventually('etcd to serve', async () => (await put(namespace)) === 'ok' || undefined, {
      timeoutMs: PATIENCE_MS,
    });
    await turnOn(namespace);
    operator = world.startOperator();
    return namespace;
  }

  test.each(
    permutations(1, [
      ['with certificates of clients', mutual],
      ['without', oneWay],
    ]),
  )('is bootstrapped as soon as its password is given, %s', async (_name, tls) => {
    const namespace = await seedWithAuth(tls, { auth });
    await condition(namespace, 'Available', 'False', 'AuthCredentialsRejected');
    await condition(namespace, 'Degraded', 'True', 'AuthCredentialsRejected');
    await change(namespace, 'by hand');
    await enabled(namespace);
    await settled(namespace);
    expect([await put(namespace, 'by hand'), textOf(await read(namespace, 'db-root-applied'), 'password')]).toEqual([
      'ok',
      'by hand',
    ]);
  });

  test('is not bootstrapped while spec.auth is missing, until auth is disabled', async () => {
    const namespace = await seedWithAuth(oneWay, {});
    await condition(namespace, 'Available', 'False', 'AuthRequiredNotConfigured');
    await condition(namespace, 'Degraded', 'True', 'AuthRequiredNotConfigured');
    expect(kindOf(await world.etcd.auth.disable(await client(namespace, 'by hand')))).toBe('ok');
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
  });
});

describe('an etcd with auth enabled although spec.auth is missing', { timeout }, () => {
  test.each(
    permutations(1, [
      ['with certificates of clients', mutual],
      ['without', oneWay],
    ]),
  )('keeps serving, is reported, and recovers when auth is disabled, %s', async (_name, tls) => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { tls });
    await settled(namespace);
    await turnOn(namespace);
    await edit(namespace);
    const locked = await condition(namespace, 'Degraded', 'True', 'AuthRequiredNotConfigured');
    expect(locked.status?.conditions?.find((c) => c.type === 'Available')).toMatchObject({ status: 'True' });
    expect(await put(namespace, 'by hand')).toBe('ok');
    expect(kindOf(await world.etcd.auth.disable(await client(namespace, 'by hand')))).toBe('ok');
    await condition(namespace, 'Degraded', 'False');
  });
});
