/** Clusters whose certificates come from cert-manager: its real controllers, a real API server, real etcd processes. */
import { X509Certificate } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import type { Tls } from '../../src/api/tls.ts';
import { certificates } from '../../src/controllers/cluster/credentials/observe-cert-manager.ts';
import type { Certificate } from '../../src/domain/cert-manager.ts';
import { servedFingerprint } from '../../src/etcd/handshake.ts';
import type { TlsMaterial } from '../../src/etcd/transport.ts';
import type { Secret } from '../../src/gen/kube.ts';
import { events, pods, secrets } from '../../src/kube/resources.ts';
import {
  type CertManager,
  caObjects,
  certManagerDefinitions,
  REISSUE,
  startCertManager,
} from '../support/servers/cert-manager.ts';
import { installCrds } from '../support/servers/control-plane.ts';
import { type Child, eventually, freePort } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

let world: World;
let operator: Child | undefined;
let certManager: CertManager | undefined;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await certManager?.stop();
  await world?.stop();
});
afterEach(async (context) => {
  if (context.task.result?.state === 'fail')
    process.stderr.write(`${operator?.log().slice(-6_000)}\n${certManager?.log().slice(-3_000)}`);
  await operator?.stop('SIGKILL');
  operator = undefined;
});

const PATIENCE_MS = 120_000;
const issuer = { name: 'ca' };
const mutual: Tls = {
  client: { certManager: { serverIssuerRef: issuer, operatorClientIssuerRef: issuer } },
  peer: { certManager: { issuerRef: issuer } },
};

const condition = (namespace: string, type: string, status: string, reason?: string) =>
  world.patiently(PATIENCE_MS).condition(namespace, 'db', type, status, reason);
const message = async (namespace: string, status: string, reason: string): Promise<string | undefined> => {
  const cluster = await condition(namespace, 'CertificatesValid', status, reason);
  return cluster.status?.conditions?.find(({ type }) => type === 'CertificatesValid')?.message;
};
const read = (namespace: string, name: string): Promise<Secret> =>
  eventually(`Secret ${name}`, () => world.admin.get(secrets, { namespace, name }));
const podNames = async (namespace: string): Promise<readonly string[]> =>
  (await world.list(pods, namespace)).map((pod) => pod.metadata.name ?? '');
const scale = (namespace: string, replicas: number): Promise<unknown> =>
  world.admin.patch(clusters, { namespace, name: 'db' }, { spec: { replicas } });
const reconciled = async (namespace: string, replicas: number): Promise<void> => {
  await eventually(
    `${replicas} members`,
    async () => {
      const found = await world.admin.get(clusters, { namespace, name: 'db' });
      const progressing = found?.status?.conditions?.find(({ type }) => type === 'Progressing');
      return found?.status?.readyMembers === replicas && progressing?.reason === 'Reconciled' ? true : undefined;
    },
    { timeoutMs: PATIENCE_MS, seen: async () => (await world.admin.get(clusters, { namespace, name: 'db' }))?.status },
  );
};

/** An issuer called `ca` that signs with its own certificate. */
async function makeIssuer(namespace: string): Promise<void> {
  for (const object of caObjects(namespace, issuer.name)) {
    const path = `/apis/cert-manager.io/v1/namespaces/${namespace}/${object.kind.toLowerCase()}s`;
    await world.admin.transport.json(path, { method: 'POST', body: object });
  }
}

/** The credentials of a client with this Secret. */
async function given(namespace: string, secret: string): Promise<TlsMaterial> {
  const held = await read(namespace, secret);
  return { ca: textOf(held, 'ca.crt'), cert: textOf(held, 'tls.crt'), key: textOf(held, 'tls.key') };
}

const put = (namespace: string, pod: string, who: string, tls: TlsMaterial) => {
  const endpoint = `https://${world.kubelet.addressOf(namespace, pod)}:2379`;
  const serverName = `${pod}.db.${namespace}.svc`;
  const access = { cluster: `${who} ${pod}`, tls: () => ({ ...tls, serverName }) };
  return world.etcd.put({ endpoint, timeoutMs: 5_000, access }, who, 'v');
};

/** Retried until it succeeds: on a slow machine a cluster elects another leader now and then. */
const takes = (...write: Parameters<typeof put>): Promise<boolean> =>
  eventually(`a write of ${write[2]} at ${write[1]}`, async () => {
    expect(await put(...write)).toMatchObject({ ok: true });
    return true;
  });

/** What each member serves on a port. */
async function shown(namespace: string, port: number, tls: TlsMaterial): Promise<readonly (string | undefined)[]> {
  return Promise.all(
    (await podNames(namespace)).map((pod) =>
      servedFingerprint(
        `https://${world.kubelet.addressOf(namespace, pod)}:${port}`,
        { ...tls, serverName: `${pod}.db.${namespace}.svc` },
        5_000,
      ),
    ),
  );
}

async function renew(namespace: string, name: string): Promise<void> {
  const { status } = (await world.admin.get(certificates, { namespace, name })) as Certificate;
  const asked = { ...REISSUE, lastTransitionTime: new Date().toISOString() };
  const kept = (status?.conditions ?? []).filter(({ type }) => type !== 'Issuing');
  await world.admin.patch(
    certificates,
    { namespace, name },
    { status: { conditions: [...kept, asked] } },
    { subresource: 'status' },
  );
}

const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const WEBHOOK = 'absent.example.com';

/** The webhook for Certificates of this namespace is unreachable. */
async function away(namespace: string): Promise<void> {
  const matched = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  const about = { apiGroups: ['cert-manager.io'], apiVersions: ['v1'], resources: ['certificates'] };
  const body = {
    metadata: { name: WEBHOOK },
    webhooks: [
      {
        name: WEBHOOK,
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [{ ...about, operations: ['CREATE', 'UPDATE'] }],
        namespaceSelector: matched,
        failurePolicy: 'Fail',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  };
  await world.admin.transport.json(WEBHOOKS, { method: 'POST', body });
  const metadata = { name: 'probe', namespace };
  const spec = { secretName: 'probe', issuerRef: issuer };
  const probe: Certificate = { apiVersion: 'cert-manager.io/v1', kind: 'Certificate', metadata, spec };
  await eventually('the webhook to be asked', async () => {
    const refusal = await world.admin.create(certificates, probe).then(
      () => '',
      (error: unknown) => String(error),
    );
    return refusal.includes(WEBHOOK) ? true : undefined;
  });
}

describe('cert-manager', { timeout: 5 * PATIENCE_MS }, () => {
  test('may be installed after the operator, and its issuer after that: each is named, nothing is started, and it continues by itself', async () => {
    const port = await freePort();
    operator = world.startOperator(`--health-probe-bind-address=127.0.0.1:${port}`);
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'plain');
    await world.patiently(PATIENCE_MS).condition(namespace, 'plain', 'Available', 'True');
    expect(operator.log()).not.toMatch(/cert-manager|Certificate/);

    await world.createCluster(namespace, 'db', { tls: mutual });
    expect(await message(namespace, 'False', 'CertManagerNotInstalled')).toContain('Install cert-manager');
    await condition(namespace, 'Available', 'False', 'CertManagerNotInstalled');
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);

    await installCrds(world.admin, await certManagerDefinitions());
    await message(namespace, 'False', 'Issuing');
    certManager = await startCertManager(world.apiServer.kubeconfig);
    const missingIssuer = /Certificate db-server is not ready: .*issuer\.cert-manager\.io "ca" not found/;
    // Before that the same reason may report that cert-manager has not processed it yet.
    await eventually(
      'the missing issuer to be reported',
      async () =>
        missingIssuer.test((await message(namespace, 'False', 'CertificateNotReady')) ?? '') ? true : undefined,
      {
        timeoutMs: PATIENCE_MS,
        seen: async () => (await world.admin.get(clusters, { namespace, name: 'db' }))?.status,
      },
    );
    expect(await world.list(members, namespace)).toHaveLength(1); // of the one without encryption
    await makeIssuer(namespace);
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
    await message(namespace, 'True', 'Valid');

    const asked = await world.list(certificates, namespace);
    expect(new Set(asked.map(({ metadata }) => metadata.name))).toEqual(
      new Set(['ca-root', 'db-client', 'db-operator-client', 'db-peer', 'db-server']),
    );
    const server = asked.find(({ metadata }) => metadata.name === 'db-server');
    expect(server?.metadata.ownerReferences).toMatchObject([{ kind: 'EtcdCluster', name: 'db', controller: true }]);
    const wanted = [
      `*.db.${namespace}.svc`,
      `*.db.${namespace}.svc.cluster.local`,
      `db.${namespace}.svc`,
      `db.${namespace}.svc.cluster.local`,
      `db-client.${namespace}.svc`,
      `db-client.${namespace}.svc.cluster.local`,
      'localhost',
    ];
    const issued = new X509Certificate(textOf(await read(namespace, 'db-server-tls'), 'tls.crt'));
    expect(issued.subjectAltName).toBe([...wanted.map((name) => `DNS:${name}`), 'IP Address:127.0.0.1'].join(', '));
    expect(operator.log().match(/cert-manager is not installed, and an EtcdCluster needs it/g)).toHaveLength(1);
  });

  test('server TLS: every client with the issuer’s CA is served; the cluster scales up and down', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await makeIssuer(namespace);
    await world.createCluster(namespace, 'db', { tls: { client: { certManager: { serverIssuerRef: issuer } } } });
    await reconciled(namespace, 1);
    await scale(namespace, 3);
    await reconciled(namespace, 3);
    const { ca } = await given(namespace, 'db-server-tls');
    for (const pod of await podNames(namespace)) await takes(namespace, pod, 'bare', { ca });
    expect(await world.admin.get(secrets, { namespace, name: 'db-client-tls' })).toBeUndefined();
    await scale(namespace, 1);
    await reconciled(namespace, 1);
  });

  test.runIf(process.env['DEV_TEST_ALL'])(
    'mutual TLS: scaled up, repaired, and renewed without a restart',
    async () => {
      operator = world.startOperator();
      const namespace = await world.namespace();
      await makeIssuer(namespace);
      await world.createCluster(namespace, 'db', { tls: mutual });
      await reconciled(namespace, 1);
      await scale(namespace, 3);
      await reconciled(namespace, 3);
      const app = await given(namespace, 'db-client-tls');
      for (const pod of await podNames(namespace)) {
        await takes(namespace, pod, 'app', app);
        expect(await put(namespace, pod, 'bare', { ca: app.ca })).toMatchObject({ error: { kind: 'tls' } });
      }

      const before = await podNames(namespace);
      const [lost = ''] = before;
      await world.kubelet.loseData(namespace, lost);
      await eventually('another member', async () => ((await podNames(namespace)).includes(lost) ? undefined : true), {
        timeoutMs: PATIENCE_MS,
      });
      await reconciled(namespace, 3);
      for (const pod of await podNames(namespace)) await takes(namespace, pod, 'app', app);

      const processes = (): readonly unknown[] => world.kubelet.running(namespace).map(({ child }) => child?.pid);
      const running = processes();
      const peer = await given(namespace, 'db-peer-tls');
      const [clientsBefore, peersBefore] = [await shown(namespace, 2379, app), await shown(namespace, 2380, peer)];
      expect([new Set(clientsBefore).size, new Set(peersBefore).size, clientsBefore[0]]).toEqual([
        1,
        1,
        expect.any(String),
      ]);
      await renew(namespace, 'db-server');
      await renew(namespace, 'db-peer');
      await eventually(
        'members to serve the new certificates',
        async () => {
          const now = [...(await shown(namespace, 2379, app)), ...(await shown(namespace, 2380, peer))];
          const old = [...clientsBefore, ...peersBefore];
          return now.every((print) => print !== undefined && !old.includes(print)) ? true : undefined;
        },
        { timeoutMs: PATIENCE_MS, seen: () => operator?.log().slice(-2_000) },
      );
      expect(processes()).toEqual(running);
      await message(namespace, 'True', 'Valid');

      await scale(namespace, 1);
      await reconciled(namespace, 1);
    },
  );

  test('a Certificate that a user changes is corrected, and created again when it is deleted', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await makeIssuer(namespace);
    await world.createCluster(namespace, 'db', { tls: { client: { certManager: { serverIssuerRef: issuer } } } });
    await reconciled(namespace, 1);
    const ref = { namespace, name: 'db-server' };
    const [dnsNames, duration] = [['mine.example.com', 'localhost'], '240h0m0s'];
    await world.admin.patch(certificates, ref, { spec: { dnsNames, duration } });
    const put = await eventually('the names', async () => {
      const found = await world.admin.get(certificates, ref);
      return found?.spec.dnsNames?.includes(`*.db.${namespace}.svc`) ? found : undefined;
    });
    expect(put.spec).toMatchObject({ duration, dnsNames: expect.arrayContaining(['mine.example.com']) });
    await message(namespace, 'True', 'Valid');
    await world.admin.delete(certificates, ref, { uid: put.metadata.uid ?? '' });
    const again = await eventually('the Certificate', async () => {
      const found = await world.admin.get(certificates, ref);
      return found && found.metadata.uid !== put.metadata.uid ? found : undefined;
    });
    expect(again.metadata.labels).toMatchObject({ 'etcd-operator.cozystack.io/cluster': 'db' });
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
  });

  test('a foreign Certificate or Secret is not changed, and named', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await makeIssuer(namespace);
    const spec = { secretName: 'elsewhere', dnsNames: ['mine.example.com'], issuerRef: { ...issuer, kind: 'Issuer' } };
    const metadata = { name: 'db-server', namespace };
    await world.admin.create(certificates, { apiVersion: 'cert-manager.io/v1', kind: 'Certificate', metadata, spec });
    const data = { mine: Buffer.from('keep').toString('base64') };
    await world.admin.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'db-peer-tls', namespace },
      data,
    });
    await world.createCluster(namespace, 'db', { tls: mutual });
    await condition(namespace, 'CertificatesValid', 'False', 'NameConflict');
    await eventually(
      'both to be named',
      async () => {
        const found = await message(namespace, 'False', 'NameConflict');
        return /Certificate db-server exists and belongs to no controller.*Secret db-peer-tls exists and belongs to no controller/.test(
          found ?? '',
        )
          ? true
          : undefined;
      },
      { timeoutMs: PATIENCE_MS },
    );
    expect(await world.list(members, namespace)).toEqual([]);
    expect((await world.admin.get(certificates, { namespace, name: 'db-server' }))?.spec.secretName).toBe('elsewhere');
    expect(await world.admin.get(certificates, { namespace, name: 'db-peer' })).toBeUndefined();
    expect((await read(namespace, 'db-peer-tls')).data).toEqual(data);

    await world.admin.delete(certificates, metadata, {
      uid: (await world.admin.get(certificates, metadata))?.metadata.uid ?? '',
    });
    await world.admin.delete(
      secrets,
      { namespace, name: 'db-peer-tls' },
      { uid: (await read(namespace, 'db-peer-tls')).metadata.uid ?? '' },
    );
    await condition(namespace, 'Available', 'True', 'QuorumHealthy');
  });

  test('its webhook may be unreachable: a running cluster is reconciled, and what was refused is reported and retried later', async () => {
    operator = world.startOperator();
    const namespace = await world.namespace();
    await makeIssuer(namespace);
    await world.createCluster(namespace, 'db', { tls: { client: { certManager: { serverIssuerRef: issuer } } } });
    await reconciled(namespace, 1);
    const ref = { namespace, name: 'db-server' };
    const { uid = '' } = (await world.admin.get(certificates, ref))?.metadata ?? {};
    await away(namespace);
    await world.admin.delete(certificates, ref, { uid });
    await eventually(
      'the refusal to be reported',
      async () => {
        const list = await world.list(events, namespace);
        return list.some(({ reason, note }) => reason === 'Refused' && note?.includes(WEBHOOK)) ? true : undefined;
      },
      { timeoutMs: PATIENCE_MS },
    );
    await scale(namespace, 3);
    await eventually(
      'three members',
      async () =>
        (await world.admin.get(clusters, { namespace, name: 'db' }))?.status?.readyMembers === 3 ? true : undefined,
      { timeoutMs: PATIENCE_MS },
    );
    await world.admin.transport.json(`${WEBHOOKS}/${WEBHOOK}`, { method: 'DELETE' });
    await eventually('the Certificate', () => world.admin.get(certificates, ref), { timeoutMs: PATIENCE_MS });
    await message(namespace, 'True', 'Valid');
  });

  test.runIf(process.env['DEV_TEST_ALL'])(
    'its CRDs may be deleted while a cluster runs: that is reported, the cluster keeps running and scales, and everything is created again',
    async () => {
      operator = world.startOperator();
      const namespace = await world.namespace();
      await makeIssuer(namespace);
      await world.createCluster(namespace, 'db', { tls: mutual });
      await reconciled(namespace, 1);
      const definitions = await certManagerDefinitions();
      const ofCertificates = definitions.filter(({ metadata }) => metadata.name.startsWith('certificates.'));
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${ofCertificates[0]?.metadata.name}`;
      await world.admin.transport.json(path, { method: 'DELETE' });
      await message(namespace, 'False', 'CertManagerNotInstalled');
      await condition(namespace, 'Available', 'True', 'QuorumHealthy');
      await scale(namespace, 3);
      await reconciled(namespace, 3);
      await installCrds(world.admin, ofCertificates);
      await message(namespace, 'True', 'Valid');
      expect(await world.list(certificates, namespace)).toHaveLength(4);
    },
  );
});
