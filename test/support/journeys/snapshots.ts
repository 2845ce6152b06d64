/** Snapshots and restores, as steps of a user's journey. */

import { expect, onTestFinished } from 'vitest';
import { DEFAULT_BUMP } from '../../../src/api/bootstrap.ts';
import type { Artifact } from '../../../src/api/etcd-snapshot.ts';
import { type Access, type Ask } from '../../../src/etcd/client.ts';
import type { Result } from '../../../src/etcd/errors.ts';
import { ABOUT_DATA } from '../about-data.ts';
import { UserClient } from '../etcd-client.ts';
import { foundIn } from '../planted.ts';
import { settled } from './at-rest.ts';
import { type AnObject, becomes, type Condition, conditionOf, KIND, type Tenant } from './journey.ts';
import { IN_NAMESPACE, operatorPods } from './operator.ts';
import { IN_MEMORY } from './serving.ts';
import { opaque, S3_SECRET_KEY } from './tenant-store.ts';
import { clientOf, managed, secretText } from './tls.ts';
import { serviceIp } from './writer.ts';

export const SNAPSHOT_KIND = 'etcdsnapshots.etcd-operator.cozystack.io';
export const SCHEDULE_KIND = 'etcdsnapshotschedules.etcd-operator.cozystack.io';

const ROOT_SECRET = 'root-of-all';
const ROOT_PASSWORD = 'planted-password-of-root';
/** 32 bytes, not encoded. */
export const ENCRYPTION_KEY = 'planted-encryption-key-of-32-byt';
export const KEY_SECRET = 'snapshot-key';
const PLANTED = { 'S3 secret key': S3_SECRET_KEY, password: ROOT_PASSWORD, 'encryption key': ENCRYPTION_KEY };

export const SECURITIES = ['plain', 'TLS', 'TLS and auth', 'mTLS and auth'] as const;
export type Security = (typeof SECURITIES)[number];

/** Clusters of a tenant that all have the same TLS and auth settings. */
export class Clusters {
  readonly tenant: Tenant;
  readonly #security: Security;
  readonly #etcd = new UserClient(() => performance.now());

  constructor(tenant: Tenant, security: Security) {
    this.tenant = tenant;
    this.#security = security;
    onTestFinished(() => this.#etcd.close());
  }

  get #logsIn(): boolean {
    return this.#security.endsWith('auth');
  }

  /** The TLS and auth settings of its spec. */
  spec(name: string): Readonly<Record<string, unknown>> {
    const source = managed(this.tenant, name);
    return {
      ...(this.#security.startsWith('TLS') && { tls: { client: source.oneWay } }),
      ...(this.#security.startsWith('mTLS') && { tls: source.tls }),
      ...(this.#logsIn && { auth: { enabled: true, rootCredentialsSecretRef: { name: ROOT_SECRET } } }),
    };
  }

  async begin(name: string, spec: Readonly<Record<string, unknown>>): Promise<void> {
    if (this.#logsIn) await opaque(this.tenant, ROOT_SECRET, { password: ROOT_PASSWORD });
    const storage = 'bootstrap' in spec ? {} : IN_MEMORY; // a restored member must not lose its data with its Pod
    await this.tenant.create(name, { ...storage, ...this.spec(name), ...spec });
  }

  /** Waits until clients with the right credentials are served, and no others. */
  async serves(name: string): Promise<void> {
    await settled(this.tenant, name);
    if (this.#logsIn)
      await becomes('auth to be enabled', async () => {
        expect(conditionOf(await this.tenant.get(KIND, name), 'AuthEnabled')).toMatchObject({ status: 'True' });
      });
    // Nodes learn that a Pod is ready a little later than the API server.
    await becomes('its Service to reach it', () => this.#revision(name));
  }

  /** As root, with the credentials of an application of the cluster. */
  async access(name: string): Promise<Access | undefined> {
    if (this.#security === 'plain') return undefined;
    const serverName = `${name}-client.${this.tenant.namespace}.svc`;
    const trust = async () => ({
      ca: (await secretText(this.tenant, `${name}-server-mounted`))['ca.crt'] ?? '',
      serverName,
    });
    const tls = this.#security.startsWith('mTLS') ? await clientOf(this.tenant, name) : await trust();
    const passwords = this.#logsIn ? [{ user: 'root', password: ROOT_PASSWORD }] : [];
    return { cluster: `${this.tenant.namespace} ${name}`, tls: () => tls, passwords: () => passwords };
  }

  async #ask(name: string): Promise<Ask> {
    const access = await this.access(name);
    const endpoint = `${access ? 'https' : 'http'}://${await serviceIp(this.tenant, name)}:2379`;
    return { endpoint, timeoutMs: 20_000, ...(access && { access }) };
  }

  /** This many MiB of incompressible data. */
  async fill(name: string, mebibytes: number): Promise<void> {
    const ask = await this.#ask(name);
    for (let n = 0; n < mebibytes; n++) {
      const value = Buffer.concat(Array.from({ length: 16 }, () => crypto.getRandomValues(Buffer.alloc(65_536))));
      must(await this.#etcd.kv.put(ask, `fill/${n}`, value));
    }
  }

  /** What a writer has written, at the revision or now. */
  async #written(name: string, revision?: number): Promise<ReadonlyMap<string, string>> {
    const at = revision === undefined ? {} : { revision: BigInt(revision) };
    const { kvs } = must(await this.#etcd.kv.range(await this.#ask(name), { key: 'seq/', prefix: true, ...at }));
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
    return new Map(kvs.map((kv) => [text(kv.key), `${kv.modRevision} ${text(kv.value)}`]));
  }

  async #revision(name: string): Promise<bigint> {
    const one = { key: 'seq/', countOnly: true };
    return must(await this.#etcd.kv.range(await this.#ask(name), one)).revision;
  }

  /**
   * Everything in the first cluster at the revision of the snapshot is in the second, under the same revisions. A client that
   * watched the first gets nothing but "compacted" from the second.
   */
  async hasAllOf(name: string, source: string, { revision = 0, totalKeys }: Artifact): Promise<void> {
    const [then, last] = [await this.#written(source, revision), await this.#written(source)];
    const now = await this.#written(name);
    expect(then.size).toBeGreaterThan(0);
    // The snapshot may be a little later than the revision, and may contain what was written meanwhile.
    const lost = [...then].filter(([key, value]) => ![value, last.get(key)].includes(now.get(key)));
    expect(lost, ABOUT_DATA).toEqual([]);
    const all = { key: '', prefix: true, countOnly: true };
    const counted = await this.#etcd.kv.range(await this.#ask(source), { ...all, revision: BigInt(revision) });
    expect(Number(must(counted).count), ABOUT_DATA).toBe(totalKeys);
    const ended = await this.#revision(source);
    expect(await this.#revision(name), ABOUT_DATA).toBeGreaterThan(ended);
    expect(await this.#revision(name), ABOUT_DATA).toBeGreaterThanOrEqual(BigInt(revision + DEFAULT_BUMP));
    for (const fromRevision of [BigInt(revision), ended, ended + 1n]) {
      const watch = this.#etcd.watch(await this.#ask(name), { key: 'seq/', prefix: true, fromRevision });
      expect(
        (await Array.fromAsync(watch)).map((item) => item.is),
        ABOUT_DATA,
      ).toEqual(['created', 'compacted']);
    }
    must(await this.#etcd.put(await this.#ask(name), 'seq/after', 'restored'));
  }

  /** No planted secret is in anything that other users can read. */
  async tellNobody(): Promise<void> {
    const { tenant } = this;
    const pods = (await tenant.list('pods', 'app.kubernetes.io/managed-by=etcd-operator')).map(
      ({ metadata }) => metadata.name,
    );
    const kinds = `${KIND},etcdmembers,${SNAPSHOT_KIND},${SCHEDULE_KIND},jobs,pods,events,pvc,configmaps`;
    const readable = [
      ...(await Promise.all(pods.map((pod) => tenant.kubectl('logs', pod, '--all-containers')))),
      // A killed operator may have no container yet.
      ...(await becomes('the logs of the operator', async () =>
        Promise.all((await operatorPods()).map((pod) => tenant.cluster.kubectl([...IN_NAMESPACE, 'logs', pod]))),
      )),
      await tenant.kubectl('get', kinds, '-o', 'json', '--show-managed-fields'),
    ].join('\n');
    expect(readable).toContain('snapshot: done'); // the agents' logs are there
    expect(foundIn(readable, PLANTED)).toEqual([]);
  }
}

function must<T>(answer: Result<T>): T {
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value;
}

export interface SnapshotObject extends Omit<AnObject, 'status'> {
  readonly status?: {
    readonly phase?: string;
    readonly artifact?: Artifact;
    readonly conditions?: readonly Condition[];
  };
}

/** Creates a snapshot; rejects with the message when admission refuses it. */
export async function ask(
  tenant: Tenant,
  name: string,
  cluster: string,
  destination: object,
  more: object = {},
): Promise<void> {
  const object = {
    apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
    kind: 'EtcdSnapshot',
    metadata: { name, namespace: tenant.namespace },
    spec: { clusterRef: { name: cluster }, destination, ...more },
  };
  await tenant.cluster.kubectl(['create', '-f', '-'], JSON.stringify(object));
}

export const snapshotOf = (tenant: Tenant, name: string): Promise<SnapshotObject> => tenant.get(SNAPSHOT_KIND, name);

export const readyOf = ({ status }: SnapshotObject): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready');

export const isStored = (tenant: Tenant, name: string): Promise<Artifact> =>
  becomes(`snapshot ${name} to be stored`, async () => {
    const snapshot = await snapshotOf(tenant, name);
    expect(readyOf(snapshot)).toMatchObject({ status: 'True', reason: 'SnapshotStored' });
    expect(snapshot.status?.phase).toBe('Complete');
    return snapshot.status?.artifact as Artifact;
  });

/** Resolves to the message. */
export const hasFailed = (tenant: Tenant, name: string, reason: string): Promise<string> =>
  becomes(`snapshot ${name} to fail with ${reason}`, async () => {
    const snapshot = await snapshotOf(tenant, name);
    expect(readyOf(snapshot)).toMatchObject({ status: 'False', reason });
    expect(snapshot.status?.phase).toBe('Failed');
    expect(snapshot.status?.artifact).toBeUndefined();
    return readyOf(snapshot)?.message ?? '';
  });

/** Waits until the condition Restored has this status and reason. */
export const restoredIs = (tenant: Tenant, name: string, status: string, reason: string): Promise<string> =>
  becomes(`Restored of ${name} to be ${status}, ${reason}`, async () => {
    const cluster = await tenant.get(KIND, name);
    const condition = conditionOf(cluster, 'Restored');
    expect(condition).toMatchObject({ status, reason });
    if (status === 'False') expect(cluster.status?.clusterID).toBeUndefined();
    return condition?.message ?? '';
  });

/** The files behind the bucket, or behind the PVC of an agent. */
export const keyIn = ({ uri }: Artifact): string => uri.replace(/^(s3:\/\/[^/]+|file:\/\/\/snapshot\/data)\//, '');
