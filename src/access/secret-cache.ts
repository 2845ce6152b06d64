/**
 * The operator's credentials for each cluster, from Secrets that are read by name and cached; they expire sooner while one is missing or
 * invalid. Both controllers that connect to members share this cache.
 */

import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { type EtcdPortName, requestedRotation } from '../api/names.ts';
import { certificatesOf, ETCD_PORTS } from '../domain/certificate-requirements.ts';
import { SECRET_READ_RETRY, SECRETS_SETTLED_MS, SECRETS_UNSETTLED_MS } from '../domain/timing.ts';
import type { Access } from '../etcd/client.ts';
import type { TlsMaterial } from '../etcd/transport.ts';
import type { Client } from '../kube/client.ts';
import { refOf } from '../kube/object.ts';
import { present } from '../lib/present.ts';
import { sourcesOf } from './evaluate/agent-sources.ts';
import { type Evaluation, type Material, secretNames } from './evaluate/evaluate.ts';
import type { Mounted } from './evaluate/mounts.ts';
import { passwordSecrets, type RootPassword, rootPassword } from './evaluate/root-password.ts';
import type { EvalContext } from './evaluate/secret-set.ts';
import {
  type CertificatesView,
  isPasswordUnsettled,
  isUnsettled,
  NO_CERTIFICATES,
  type PasswordView,
  renewalOf,
  type Sources,
  type Unreadable,
} from './evaluate/view.ts';
import { readAndEvaluate, type UnreadSecret } from './read-secrets.ts';
import { type Served, ServedCertificates } from './served-certificates.ts';

export interface SecretCacheOptions {
  readonly client: Pick<Client, 'get'>;
  readonly now: () => number;
  /** The DNS domain of the Kubernetes cluster. */
  readonly domain: string;
  /** The fingerprint of the certificate that a member serves in a handshake; `undefined` without a handshake. */
  readonly look: (endpoint: string, tls: TlsMaterial) => Promise<string | undefined>;
  /** What the Pods of a cluster mount. */
  readonly mounted: (cluster: EtcdCluster) => Mounted;
  /** How long the kubelet may take to update a Secret in the Pods that mount it. */
  readonly graceMs: number;
  /** How far the wall clock has jumped ahead in this time. */
  readonly clockAheadMs: (withinMs: number) => number;
}

/** The metric of `expiries`. */
export const EXPIRY = {
  name: 'etcd_operator_certificate_expiry_timestamp_seconds',
  help: 'When a certificate of a cluster expires, in seconds since 1970.',
  labelNames: ['namespace', 'cluster', 'role', 'secret'],
} as const;
type Expiry = Readonly<Record<(typeof EXPIRY.labelNames)[number], string>> & { readonly at: number };

interface Known extends Evaluation {
  readonly password: RootPassword | undefined;
  readonly sources: Sources;
  /** A cluster that was deleted and created again has other Secrets. */
  readonly uid: string | undefined;
  /** A user who edits the spec may have changed a Secret as well. */
  readonly generation: number | undefined;
  /** The recorded digests, the requested rotation and the running Pods: when they change, another step may be due. */
  readonly surroundings: string;
  readonly until: number;
}

/** A read that failed. */
interface Failure extends Pick<Known, 'uid' | 'generation'> {
  /** Consecutive. */
  readonly failures: number;
  readonly unread: Unreadable;
}

/** The last successful read, if any, and the failure of a later one. */
type Latest = Partial<Known> & { readonly unread?: Unreadable };

const keyOf = ({ metadata: { namespace = '', name = '' } }: EtcdCluster): string => `${namespace}/${name}`;

export class SecretCache {
  readonly #options: SecretCacheOptions;
  readonly #known = new Map<string, Known>();
  readonly #failing = new Map<string, Failure>();
  readonly #reading = new Map<string, Promise<Known | Failure>>();
  readonly #served = new ServedCertificates();

  constructor(options: SecretCacheOptions) {
    this.#options = options;
  }

  get domain(): string {
    return this.#options.domain;
  }

  /** The context to evaluate Secrets that were just read. */
  around(cluster: EtcdCluster, now: number): EvalContext {
    const { domain, graceMs, clockAheadMs, mounted } = this.#options;
    // Otherwise a jump would end the grace period, and members would serve certificates that clients do not trust yet.
    return { now, domain, graceMs: graceMs + clockAheadMs(graceMs), mounted: mounted(cluster) };
  }

  /** Reads the Secrets when they are not cached, or have expired. */
  async view(cluster: EtcdCluster): Promise<CertificatesView> {
    const { view = NO_CERTIFICATES, unread } = await this.#evaluated(cluster);
    return unread ? { ...view, unreadable: unread } : view;
  }

  /** `undefined` when auth is not enabled in the spec. */
  async password(cluster: EtcdCluster): Promise<PasswordView | undefined> {
    return (await this.#evaluated(cluster)).password?.view;
  }

  /** For agents, which mount these Secrets. */
  async sources(cluster: EtcdCluster): Promise<Sources> {
    return (await this.#evaluated(cluster)).sources ?? {};
  }

  /** How to connect to members, each with the host name that its certificate must have. */
  async access(cluster: EtcdCluster, hostAt: (endpoint: string) => string | undefined): Promise<Access> {
    const key = { cluster: keyOf(cluster) };
    if (cluster.spec.tls?.client === undefined) return key;
    const { material, password } = await this.#evaluated(cluster);
    // Without a CA bundle there is no connection: never a plaintext one instead.
    if (!material) return key;
    return {
      ...key,
      tls: (endpoint) => materialFor(material, hostAt(endpoint)),
      ...(password && { passwords: () => password.passwords }),
    };
  }

  /** Of these members, those that do not serve the certificate in their Secret yet; each by the host name in its certificate. */
  async served(cluster: EtcdCluster, part: EtcdPortName, hosts: Readonly<Record<string, string>>): Promise<Served> {
    const { serves, material } = await this.#evaluated(cluster);
    const expected = serves?.[part];
    if (expected === undefined) return { behind: [], unseen: [] };
    // Reading the certificate of a peer port needs no client certificate.
    const own = part === 'client' && material ? material : {};
    const look = (endpoint: string) =>
      this.#options.look(endpoint, materialFor({ ...own, ca: expected.ca }, hosts[endpoint]));
    const group = `${keyOf(cluster)} ${part}`;
    const { behind, unseen } = await this.#served.look(group, expected.print, Object.keys(hosts), look);
    const named = (endpoints: readonly string[]) => endpoints.map((endpoint) => hosts[endpoint] ?? endpoint);
    return { behind: named(behind), unseen: named(unseen) };
  }

  /** When the cached certificates expire. */
  *expiries(): Iterable<Expiry> {
    for (const [key, { view }] of this.#known)
      for (const { need, notAfter } of view.certificates) {
        const { namespace, name: cluster } = refOf(key);
        if (notAfter !== undefined) yield { namespace, cluster, role: need.role, secret: need.secret, at: notAfter };
      }
  }

  /** A Secret of the cluster was written: all are read again. The cached ones stay, in case that read fails. */
  forget(key: string): void {
    const known = this.#known.get(key);
    if (known) this.#known.set(key, { ...known, until: 0 });
    this.#reading.delete(key);
  }

  /** The cluster was deleted. */
  drop(key: string): void {
    for (const kept of [this.#known, this.#failing, this.#reading]) kept.delete(key);
    for (const part of ETCD_PORTS) this.#served.forget(`${key} ${part}`);
  }

  async #evaluated(cluster: EtcdCluster): Promise<Latest> {
    const secretsOfPassword = passwordSecrets(cluster);
    if (certificatesOf(cluster).length + secretsOfPassword.length === 0) return {};
    const { mounted, now } = this.around(cluster, this.#options.now());
    const names = [...new Set([...secretNames(cluster, mounted), ...secretsOfPassword])];
    const key = keyOf(cluster);
    const [known, failing] = [this.#known.get(key), this.#failing.get(key)];
    const { uid, generation, annotations } = cluster.metadata;
    const surroundings = JSON.stringify([
      cluster.status?.trust,
      requestedRotation(annotations),
      mounted.running,
      mounted.bundles,
    ]);
    const waits = failing?.uid === uid && failing?.generation === generation && now < (failing?.unread.retryAt ?? 0);
    if (failing && waits) return this.#stale(key, failing);
    const same = known?.uid === uid && known?.generation === generation && known?.surroundings === surroundings;
    if (known && same && !failing && now < known.until) return known;
    const reading = this.#reading.get(key) ?? this.#read(cluster, names, surroundings);
    this.#reading.set(key, reading);
    try {
      const fresh = await reading;
      if (this.#reading.get(key) === reading) this.#keep(key, fresh); // otherwise a Secret was written meanwhile
      return 'unread' in fresh ? this.#stale(key, fresh) : fresh;
    } finally {
      if (this.#reading.get(key) === reading) this.#reading.delete(key);
    }
  }

  #keep(key: string, fresh: Known | Failure): void {
    if ('unread' in fresh) {
      this.#failing.set(key, fresh);
      return;
    }
    this.#failing.delete(key);
    this.#known.set(key, fresh);
  }

  /** The last evaluation of the same cluster, with the failed read. */
  #stale(key: string, { uid, unread }: Failure): Latest {
    const known = this.#known.get(key);
    return known?.uid === uid ? { ...known, unread: { ...unread, judged: true } } : { unread };
  }

  async #read(cluster: EtcdCluster, names: readonly string[], surroundings: string): Promise<Known | Failure> {
    const { client, now } = this.#options;
    const { uid, generation } = cluster.metadata;
    const around = this.around(cluster, now());
    const read = await readAndEvaluate(client, cluster, names, around);
    if ('unread' in read) return this.#failed(cluster, read.unread);
    const { secrets: held, judged, pieces } = read;
    const password = rootPassword(cluster, held);
    const unsettled = isUnsettled(judged.view) || isPasswordUnsettled(password?.view);
    const until = now() + (unsettled ? SECRETS_UNSETTLED_MS : SECRETS_SETTLED_MS);
    const ends = Math.min(until, renewalOf(judged.view) ?? until);
    const sources = await pieces.run(() => sourcesOf(cluster, held, judged.material, password));
    return { ...judged, password, sources, uid, generation, surroundings, until: ends };
  }

  #failed(cluster: EtcdCluster, failed: readonly UnreadSecret[]): Failure {
    const { uid, generation } = cluster.metadata;
    const before = this.#failing.get(keyOf(cluster));
    const failures = before && before.uid === uid ? before.failures + 1 : 1;
    const pause = Math.min(SECRET_READ_RETRY.maxMs, SECRET_READ_RETRY.firstMs * 2 ** Math.min(failures - 1, 30));
    const names = failed.map(({ secret }) => secret);
    const unread = {
      secrets: names,
      message: failed[0]?.message ?? '',
      password: passwordSecrets(cluster).some((name) => names.includes(name)),
      judged: false,
      retryAt: this.#options.now() + pause,
    };
    return { uid, generation, failures, unread };
  }
}

/** Connections are reused by these texts: the same certificate must not open another one. */
const materialFor = (material: Material, serverName: string | undefined) => ({
  ...material,
  ...present({ serverName }),
});
