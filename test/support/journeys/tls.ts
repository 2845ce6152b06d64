/** Clusters with TLS on real nodes: where their certificates come from, which clients are served, and what members serve. */
import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished } from 'vitest';
import { type Access } from '../../../src/etcd/client.ts';
import { servedFingerprint } from '../../../src/etcd/handshake.ts';
import type { TlsMaterial } from '../../../src/etcd/transport.ts';
import { createCA, issue, type KeyPair, type Leaf } from '../../../src/pki/issue.ts';
import { systemKeySource } from '../../../src/pki/key-source.ts';
import { UserClient } from '../etcd-client.ts';
import { eventually } from '../servers/processes.ts';
import { type AnObject, becomes, conditionOf, KIND, MEMBER_KIND, type Tenant } from './journey.ts';
import { serviceIp } from './writer.ts';

export type Text = Readonly<Record<string, string>>;

const DAY = 24 * 60 * 60_000;

export interface Source {
  /** `spec.tls` of a cluster with mutual TLS. */
  readonly tls: Readonly<Record<string, unknown>>;
  /** `spec.tls.client` of one with server certificates only. */
  readonly oneWay: Readonly<Record<string, unknown>>;
  /** Creates what a user has to create. */
  readonly give: () => Promise<void>;
  /** The certificates of an application. */
  readonly client: () => Promise<TlsMaterial>;
  /** Members soon get other certificates of the same CA. */
  readonly renew: () => Promise<void>;
}

/** A user's CA, and three Secrets. */
export interface OwnSecrets extends Source {
  readonly server: string;
  readonly peer: string;
  readonly leaf: (change?: Partial<Leaf>, at?: number) => Promise<Text>;
  readonly put: (secret: string, text: Text) => Promise<void>;
}

export async function ownSecrets(tenant: Tenant, name: string): Promise<OwnSecrets> {
  const [server, operator, peer] = [`${name}-own-server`, `${name}-own-operator`, `${name}-own-peer`];
  const ca: KeyPair = await createCA('the user', Date.now(), systemKeySource);
  const service = `${name}.${tenant.namespace}.svc`;
  const hosts = [`*.${service}`, `*.${service}.cluster.local`, `${name}-client.${tenant.namespace}.svc`];
  const usages = ['server auth', 'client auth'] as const;
  const leaf = async (change: Partial<Leaf> = {}, at = Date.now()): Promise<Text> => {
    const { cert, key } = await issue(
      ca,
      { name, hosts, usages, durationMs: 90 * DAY, ...change },
      at,
      systemKeySource,
    );
    return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
  };
  const put = (secret: string, text: Text): Promise<void> => {
    const data = Object.fromEntries(Object.entries(text).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
    const metadata = { name: secret, namespace: tenant.namespace };
    return tenant.cluster.apply([{ apiVersion: 'v1', kind: 'Secret', metadata, data }]);
  };
  const ofClient = { hosts: [], usages: ['client auth'] } as const;
  return {
    server,
    peer,
    leaf,
    put,
    tls: {
      client: { serverSecretRef: { name: server }, operatorClientSecretRef: { name: operator } },
      peer: { secretRef: { name: peer } },
    },
    oneWay: { serverSecretRef: { name: server } },
    give: async () => {
      await put(operator, await leaf(ofClient));
      await put(peer, await leaf());
      await put(server, await leaf());
    },
    client: async () => {
      const { 'tls.crt': cert = '', 'tls.key': key = '' } = await leaf(ofClient);
      return { ca: ca.cert, cert, key, serverName: `${name}-client.${tenant.namespace}.svc` };
    },
    renew: async () => {
      await put(peer, await leaf());
      await put(server, await leaf());
    },
  };
}

/** From a CA of the operator; deleted certificates are reissued. */
export function managed(tenant: Tenant, name: string, life: Readonly<Record<string, string>> = {}): Source {
  return {
    tls: { client: { managed: life }, peer: { managed: life } },
    oneWay: { managed: { ...life, clientCertificates: 'None' } },
    give: () => Promise.resolve(),
    client: () => clientOf(tenant, name),
    renew: async () => {
      await tenant.kubectl('delete', 'secret', `${name}-server-mounted`, `${name}-peer-mounted`);
    },
  };
}

/** With the certificate for applications. */
export async function clientOf(tenant: Tenant, name: string): Promise<TlsMaterial> {
  const text = await secretText(tenant, `${name}-client-tls`);
  const [ca = '', cert = '', key = ''] = ['ca.crt', 'tls.crt', 'tls.key'].map((part) => text[part]);
  return { ca, cert, key, serverName: `${name}-client.${tenant.namespace}.svc` };
}

export async function secretText(tenant: Tenant, secret: string): Promise<Text> {
  const { data = {} } = (await tenant.get('secret', secret)) as { data?: Text };
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
}

export const accessWith = (cluster: string, tls: TlsMaterial): Access => ({ cluster, tls: () => tls });

/** Clients with a certificate are served, others are not; and none without TLS. */
export async function onlyLetsIn(tenant: Tenant, name: string, material: TlsMaterial): Promise<void> {
  const etcd = new UserClient(() => performance.now());
  onTestFinished(() => etcd.close());
  const ip = await serviceIp(tenant, name);
  const ask = (scheme: string, access?: Access) => ({
    endpoint: `${scheme}://${ip}:2379`,
    timeoutMs: 5_000,
    ...(access && { access }),
  });
  // The nodes program a Service a moment after the cluster is available.
  await eventually('a client with a certificate to be served', async () => {
    expect(await etcd.put(ask('https', accessWith('known', material)), 'k', 'v')).toMatchObject({ ok: true });
    return true;
  });
  const { cert: _c, key: _k, ...bare } = material;
  const refused = await etcd.put(ask('https', accessWith('bare', bare)), 'k', 'v');
  if (material.cert !== undefined) expect(refused).toMatchObject({ ok: false, error: { kind: 'tls' } });
  const misled = accessWith('misled', { ...material, serverName: 'elsewhere.svc' });
  expect(await etcd.put(ask('https', misled), 'k', 'v')).toMatchObject({ ok: false, error: { kind: 'tls' } });
  expect(await etcd.put(ask('http'), 'k', 'v')).toMatchObject({ ok: false });
}

/** Pods of its members: a Pod outlives a removed member by a moment. */
async function podsOf(tenant: Tenant, name: string): Promise<readonly AnObject[]> {
  const selection = [`etcd-operator.cozystack.io/cluster=${name}`];
  const members = (await tenant.list(MEMBER_KIND, ...selection)).map(({ metadata }) => metadata.name);
  return (await tenant.list('pods', ...selection)).filter(
    ({ metadata }) => members.includes(metadata.name) && metadata.deletionTimestamp === undefined,
  );
}

/** What each member serves to clients and to peers now, and which process it is. */
export async function shownByMembers(tenant: Tenant, name: string, client: TlsMaterial) {
  const trust = await secretText(tenant, `${name}-peer-mounted`);
  const peer = { ca: trust['ca.crt'] ?? '', cert: trust['tls.crt'] ?? '', key: trust['tls.key'] ?? '' };
  return Promise.all(
    (await podsOf(tenant, name)).map(async ({ metadata, status }) => {
      const serverName = `${metadata.name}.${name}.${tenant.namespace}.svc`;
      const look = (port: number, tls: TlsMaterial) =>
        servedFingerprint(`https://${status?.podIP}:${port}`, { ...tls, serverName }, 5_000);
      return {
        pod: `${metadata.name} ${metadata.uid} restarted ${status?.containerStatuses?.[0]?.restartCount} times`,
        client: await look(2379, client),
        peer: await look(2380, peer),
      };
    }),
  );
}

/** Fingerprints of the certificates in the Secrets that members mount. */
export interface Mounted {
  readonly client: string;
  readonly peer: string;
}
export async function mountedNow(tenant: Tenant, name: string): Promise<Mounted> {
  const of = async (secret: string): Promise<string> =>
    new X509Certificate((await secretText(tenant, secret))['tls.crt'] ?? '').fingerprint256;
  return { client: await of(`${name}-server-mounted`), peer: await of(`${name}-peer-mounted`) };
}

/** A user edits the spec, which makes the operator reconcile at once. */
let edits = 0;
export const nudge = (tenant: Tenant, name: string): Promise<void> =>
  tenant.edit(name, { progressDeadlineSeconds: 601 + edits++ });

/** A kubelet updates a mounted Secret within a minute or two; at once when the Pod changes. */
export async function nudgeKubelets(tenant: Tenant, name: string): Promise<void> {
  for (const { metadata } of await podsOf(tenant, name))
    await tenant.kubectl('annotate', 'pod', metadata.name, `looked-at=${edits++}`, '--overwrite');
}

/** Waits until the condition CertificatesValid has this status and reason. */
export const certificatesAre = (tenant: Tenant, name: string, status: string, reason: string): Promise<string> =>
  becomes(`CertificatesValid to be ${status}, ${reason}`, async () => {
    const condition = conditionOf(await tenant.get(KIND, name), 'CertificatesValid');
    expect(condition).toMatchObject({ status, reason });
    return condition?.message ?? '';
  });
