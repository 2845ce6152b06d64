/** CA rotations with real members, while clients write and the operator is killed between the steps. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { digestOf } from '../../src/access/evaluate/ca-bundle.ts';
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import { ROTATE_CA_ANNOTATION, trustName } from '../../src/api/names.ts';
import type { Tls } from '../../src/api/tls.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import type { TlsMaterial } from '../../src/etcd/transport.ts';
import type { Secret } from '../../src/gen/kube.ts';
import { events, pods, secrets } from '../../src/kube/resources.ts';
import { createCA, issue, type KeyPair } from '../../src/pki/issue.ts';
import { systemKeySource } from '../../src/pki/key-source.ts';
import { witness } from '../support/journeys/rotation.ts';
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
const DAY = 24 * 60 * 60_000;
const GRACE_SECONDS = 3;
/** Less than the grace period of clients. */
const SYNC_MS = 1_000;

const start = (): void => {
  operator = world.startOperator(`--rotation-grace=${GRACE_SECONDS}`);
};
const condition = (namespace: string, type: string, status: string, reason?: string) =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', type, status, reason);
const read = (namespace: string, name: string): Promise<Secret> =>
  eventually(`Secret ${name}`, () => world.admin.get(secrets, { namespace, name }));
const write = (namespace: string, name: string, text: Readonly<Record<string, string>>): Promise<Secret> => {
  const data = Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
  return world.admin.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data });
};
const change = (namespace: string, name: string, text: Readonly<Record<string, string>>): Promise<Secret> => {
  const data = Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
  return world.admin.patch(secrets, { namespace, name }, { data });
};

const saidIn = async (namespace: string): Promise<string> => {
  const cluster = await world.admin.get(clusters, { namespace, name: 'db' });
  return findCondition(cluster?.status?.conditions, 'CertificatesValid')?.message ?? '';
};

/** Kills the operator when each of these is first reported, and starts another. Resolves to what was reported in between. */
async function killAt(namespace: string, moments: readonly RegExp[]): Promise<readonly string[]> {
  const reported: string[] = [];
  for (const moment of moments) {
    await eventually(
      `the operator to report ${moment}`,
      async () => {
        const now = await saidIn(namespace);
        if (reported.at(-1) !== now) reported.push(now);
        return moment.test(now) ? true : undefined;
      },
      { timeoutMs: PATIENCE_MS },
    );
    await operator?.stop('SIGKILL');
    start();
  }
  return reported;
}

const MOMENTS = [
  /step 1 of 3.*1 of 3 do/, // after the first restart
  /step 2 of 3/,
  /step 3 of 3.*[12] of 3 do/,
];

/** At the end, one CA bundle is left for each port: every Pod mounts it, and no other Secret of that kind exists. */
async function expectOnly(namespace: string, cas: Readonly<Record<'client' | 'peer', string>>): Promise<void> {
  await condition(namespace, 'CertificatesValid', 'True', 'Valid');
  const cluster = await condition(namespace, 'Progressing', 'False', 'Reconciled');
  const of = (part: 'client' | 'peer'): string => digestOf(cas[part]) ?? '';
  expect(cluster.status?.trust).toMatchObject({ client: of('client'), peer: of('peer') });
  const expected = [
    'db-server-mounted',
    trustName('db', 'client', of('client')),
    'db-peer-mounted',
    trustName('db', 'peer', of('peer')),
  ];
  // This is reported as soon as no Pod has another bundle: the last Pod may still be starting, and counts when it exists.
  await eventually('every Pod to have it', async () => {
    const mounted = (await world.list(pods, namespace)).map(({ spec }) =>
      (spec?.volumes ?? []).flatMap(({ projected }) => projected?.sources?.map(({ secret }) => secret?.name) ?? []),
    );
    expect(mounted).toEqual([expected, expected, expected]);
    return true;
  });
  await eventually('Secrets with the previous CA bundle to be deleted', async () => {
    const left = (await world.list(secrets, namespace)).map(({ metadata }) => metadata.name ?? '');
    const bundles = left.filter((name) => name.includes('-trust-')).sort();
    return bundles.join() === [expected[1] ?? '', expected[3] ?? ''].sort().join() ? true : undefined;
  });
}

function judge(namespace: string, seen: Awaited<ReturnType<ReturnType<typeof witness>['end']>>): void {
  const { acknowledged, retries, ...rest } = seen;
  process.stdout.write(
    `${namespace}: ${acknowledged} writes, ${retries.length} of them twice; ${JSON.stringify(rest)}\n`,
  );
  expect(retries.length === 0 || rest.maxRetries === 1, retries.join('\n')).toBe(true);
  expect(rest.maxDown).toBe(1);
  expect(Object.values(rest.restarts)).toEqual([2, 2, 2]);
  expect(acknowledged).toBeGreaterThan(100);
}

describe('a CA rotation of running members', { timeout: 6 * PATIENCE_MS }, () => {
  test('by the Secrets of a user, which change at once', async () => {
    start();
    const namespace = await world.namespace();
    const tls: Tls = {
      client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'op' } },
      peer: { secretRef: { name: 'peer' } },
    };
    const [before, after] = (await Promise.all(
      ['before', 'after'].map((name) => createCA(name, Date.now(), systemKeySource)),
    )) as [KeyPair, KeyPair];
    const hosts = [`*.db.${namespace}.svc`, `*.db.${namespace}.svc.cluster.local`, `db-client.${namespace}.svc`];
    const leaf = async (ca: KeyPair, names: readonly string[] = hosts) => {
      const usages = ['server auth', 'client auth'] as const;
      const { cert, key } = await issue(
        ca,
        { name: 'x', hosts: names, usages, durationMs: 90 * DAY },
        Date.now(),
        systemKeySource,
      );
      return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
    };
    for (const name of ['server', 'peer']) await write(namespace, name, await leaf(before));
    await write(namespace, 'op', await leaf(before, []));
    await world.createCluster(namespace, 'db', { tls, replicas: 3 });
    await condition(namespace, 'Progressing', 'False', 'Reconciled');

    const [old, fresh] = [await leaf(before, []), await leaf(after, [])];
    const material = async (): Promise<TlsMaterial> => {
      const served = textOf(await read(namespace, 'db-server-mounted'), 'tls.crt');
      const own = served === servers[0]['tls.crt'] ? old : fresh; // as soon as members have certificates of the new CA
      return { ca: `${before.cert}${after.cert}`, cert: own['tls.crt'], key: own['tls.key'] };
    };
    const servers = [{ 'tls.crt': textOf(await read(namespace, 'server'), 'tls.crt') }] as const;
    const watching = witness(world, namespace, material);
    await operator?.stop('SIGKILL'); // a reconcile in between would start with one port alone, and restart members once more
    await change(namespace, 'server', await leaf(after));
    await change(namespace, 'peer', await leaf(after));
    await change(namespace, 'op', fresh);
    start(); // reads all Secrets at once, instead of within five minutes
    await killAt(namespace, MOMENTS);
    await expectOnly(namespace, { client: after.cert, peer: after.cert });
    judge(namespace, await watching.end());

    const [pod] = world.kubelet.running(namespace);
    const name = pod?.pod.metadata.name ?? '';
    const refused = {
      ca: after.cert,
      cert: old['tls.crt'],
      key: old['tls.key'],
      serverName: `${name}.db.${namespace}.svc`,
    };
    const ask = {
      endpoint: `https://${pod?.address}:2379`,
      timeoutMs: 5_000,
      access: { cluster: 'refused', tls: () => refused },
    };
    expect(await world.etcd.put(ask, 'k', 'v')).toMatchObject({ ok: false, error: { kind: 'tls' } });
    const found = (await world.list(events, namespace)).filter(({ reason }) => reason === 'RotatingCA');
    const notes = found.map(({ note }) => note).join('\n');
    expect(notes).toMatch(/step 1 of 3/);
    expect(notes).toMatch(/step 3 of 3/);
  });

  test.runIf(process.env['DEV_TEST_ALL'])(
    "the operator's own CA, by annotation, and once more after it was lost",
    async () => {
      start();
      const namespace = await world.namespace();
      await world.createCluster(namespace, 'db', {
        tls: { client: { managed: {} }, peer: { managed: {} } },
        replicas: 3,
      });
      await condition(namespace, 'Progressing', 'False', 'Reconciled');
      const caOf = async (part: string): Promise<string> => textOf(await read(namespace, `db-${part}-ca`), 'tls.crt');
      const first = { client: await caOf('client'), peer: await caOf('peer') };

      let mounted = await read(namespace, 'db-client-tls');
      let over = false;
      const syncing = (async () => {
        while (!over) {
          await pause(SYNC_MS); // an application that mounts it, and reads it again and again
          mounted = await read(namespace, 'db-client-tls').catch(() => mounted);
        }
      })();
      const material = (): TlsMaterial => ({
        ca: textOf(mounted, 'ca.crt'),
        cert: textOf(mounted, 'tls.crt'),
        key: textOf(mounted, 'tls.key'),
      });
      const command = (value: string) =>
        world.admin.patch(
          clusters,
          { namespace, name: 'db' },
          { metadata: { annotations: { [ROTATE_CA_ANNOTATION]: value } } },
        );

      const watching = witness(world, namespace, material);
      await command('1');
      await killAt(namespace, MOMENTS);
      await condition(namespace, 'CertificatesValid', 'True', 'Valid');
      const second = { client: await caOf('client'), peer: await caOf('peer') };
      expect([second.client === first.client, second.peer === first.peer]).toEqual([false, false]);
      await expectOnly(namespace, second);
      judge(namespace, await watching.end());

      const again = witness(world, namespace, material);
      for (const name of ['db-client-ca', 'db-peer-ca'])
        await world.admin.delete(
          secrets,
          { namespace, name },
          { uid: (await read(namespace, name)).metadata.uid ?? '' },
        );
      await operator?.stop('SIGKILL');
      start();
      await condition(namespace, 'CertificatesValid', 'False', 'CALost');
      await command('2');
      await condition(namespace, 'CertificatesValid', 'True', 'RotatingCA');
      await expectOnly(namespace, { client: await caOf('client'), peer: await caOf('peer') });
      judge(namespace, await again.end());
      over = true;
      await syncing;
    },
  );
});
