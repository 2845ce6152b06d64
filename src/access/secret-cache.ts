/**
 * Who the operator is to each cluster, and whom it trusts there: from Secrets that are read by name, kept for a while, and read
 * again more often as long as one is missing or wrong. Both controllers that speak to members share it.
 */

import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { type EtcdPortName, requestedRotation } from '../api/names.ts';
import { certificatesOf, ETCD_PORTS } from '../domain/certificate-requirements.ts';
import type { Access } from '../etcd/client.ts';
import type { TlsMaterial } from '../etcd/transport.ts';
import type { Client } from '../kube/client.ts';
import { refOf } from '../kube/object.ts';
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
  UNSETTLED_MS,
  type Unreadable,
} from './evaluate/view.ts';
import { readAndEvaluate, type UnreadSecret } from './read-secrets.ts';
import { ServedCertificates } from './served-certificates.ts';

export interface SecretCacheOptions {
  readonly client: Pick<Client, 'get'>;
  readonly now: () => number;
  /** The DNS domain of the Kubernetes cluster. */
  readonly domain: string;
  /** The fingerprint of the certificate that a member shows in a handshake; `undefined` when there is none. */
  readonly look: (endpoint: string, tls: TlsMaterial) => Promise<string | undefined>;
  /** What the Pods of a cluster have mounted. */
  readonly mounted: (cluster: EtcdCluster) => Mounted;
  /** How long a Secret takes to reach those who mount it. */
  readonly graceMs: number;
}

/** Nobody tells when a Secret changes: it is looked at so often, and more often as long as something is wrong. */
export const SETTLED_MS = 5 * 60_000;
/** While reads fail: an API server whose KMS provider is away must not be asked for every Secret every ten seconds. */
const RETRY = { firstMs: 1_000, maxMs: SETTLED_MS };

/** The metric of `expiries`. */
export const EXPIRY = {
  name: 'etcd_operator_certificate_expiry_timestamp_seconds',
  help: 'When a certificate of a cluster stops being valid, in seconds since 1970.',
  labelNames: ['namespace', 'cluster', 'role', 'secret'],
} as const;
type Expiry = Readonly<Record<(typeof EXPIRY.labelNames)[number], string>> & { readonly at: number };

interface Known extends Evaluation {
  readonly password: RootPassword | undefined;
  readonly sources: Sources;
  /** A cluster that was made anew has nothing in common with its predecessor. */
  readonly uid: string | undefined;
  /** Somebody who edits the spec is at work here, and has perhaps changed a Secret as well. */
  readonly generation: number | undefined;
  /** What was recorded and asked for, and what runs: another step may be due. */
  readonly surroundings: string;
  readonly until: number;
}

/** A read that failed. */
interface Failure extends Pick<Known, 'uid' | 'generation'> {
  /** In a row. */
  readonly failures: number;
  readonly unread: Unreadable;
}

/** What was read last, if anything, and whether a later read has failed. */
type Latest = Partial<Known> & { readonly unread?: Unreadable };

export interface Served {
  readonly behind: readonly string[];
  /** They could not be looked at. */
  readonly unseen: readonly string[];
}

const keyOf = ({ metadata: { namespace = '', name = '' } }: EtcdCluster): string => `${namespace}/${name}`;

export class SecretCache {
  readonly #options: SecretCacheOptions;
  readonly #known = new Map<string, Known>();
  readonly #failing = new Map<string, Failure>();
  readonly #reading = new Map<string, Promise<Known | Failure>>();
  readonly #shown = new ServedCertificates();

  constructor(options: SecretCacheOptions) {
    this.#options = options;
  }

  get domain(): string {
    return this.#options.domain;
  }

  /** For whoever judges what has just been read. */
  around(cluster: EtcdCluster, now: number): EvalContext {
    const { domain, graceMs, mounted } = this.#options;
    return { now, domain, graceMs, mounted: mounted(cluster) };
  }

  /** Reads what is not known, or too old. */
  async view(cluster: EtcdCluster): Promise<CertificatesView> {
    const { view = NO_CERTIFICATES, unread } = await this.#judged(cluster);
    return unread ? { ...view, unreadable: unread } : view;
  }

  /** `undefined` when nobody is to log in. */
  async password(cluster: EtcdCluster): Promise<PasswordView | undefined> {
    return (await this.#judged(cluster)).password?.view;
  }

  /** For somebody else who is to reach members. */
  async sources(cluster: EtcdCluster): Promise<Sources> {
    return (await this.#judged(cluster)).sources ?? {};
  }

  /** How a member is reached that has this name in its certificate, or several of them by their endpoints. */
  async access(cluster: EtcdCluster, hostAt: (endpoint: string) => string | undefined): Promise<Access> {
    const key = { cluster: keyOf(cluster) };
    if (cluster.spec.tls?.client === undefined) return key;
    const { material, password } = await this.#judged(cluster);
    // Without anybody to trust there is no connection: never a plain one instead.
    if (!material) return key;
    return {
      ...key,
      tls: (endpoint) => materialFor(material, hostAt(endpoint)),
      ...(password && { logins: () => password.logins }),
    };
  }

  /** Of these members, those that do not show yet what they have mounted; each by the name in its certificate. */
  async shown(cluster: EtcdCluster, part: EtcdPortName, hosts: Readonly<Record<string, string>>): Promise<Served> {
    const { serves: shows, material } = await this.#judged(cluster);
    const expected = shows?.[part];
    if (expected === undefined) return { behind: [], unseen: [] };
    // To show a certificate is not asked of whoever only looks at that of a peer.
    const own = part === 'client' && material ? material : {};
    const look = (endpoint: string) =>
      this.#options.look(endpoint, materialFor({ ...own, ca: expected.ca }, hosts[endpoint]));
    const group = `${keyOf(cluster)} ${part}`;
    const { behind, unseen } = await this.#shown.look(group, expected.print, Object.keys(hosts), look);
    const named = (endpoints: readonly string[]) => endpoints.map((endpoint) => hosts[endpoint] ?? endpoint);
    return { behind: named(behind), unseen: named(unseen) };
  }

  /** When the certificates that were read last stop being valid. */
  *expiries(): Iterable<Expiry> {
    for (const [key, { view }] of this.#known)
      for (const { need, notAfter } of view.certificates) {
        const { namespace, name: cluster } = refOf(key);
        if (notAfter !== undefined) yield { namespace, cluster, role: need.role, secret: need.secret, at: notAfter };
      }
  }

  /** A Secret of the cluster was written: all are read again. What is known stays, in case that read fails. */
  forget(key: string): void {
    const known = this.#known.get(key);
    if (known) this.#known.set(key, { ...known, until: 0 });
    this.#reading.delete(key);
  }

  /** The cluster is gone. */
  drop(key: string): void {
    for (const kept of [this.#known, this.#failing, this.#reading]) kept.delete(key);
    for (const part of ETCD_PORTS) this.#shown.forget(`${key} ${part}`);
  }

  async #judged(cluster: EtcdCluster): Promise<Latest> {
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
      if (this.#reading.get(key) === reading) this.#keep(key, fresh); // otherwise it was written meanwhile
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

  /** The last judgement of the same cluster, with what could not be read since. */
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
    const until = now() + (unsettled ? UNSETTLED_MS : SETTLED_MS);
    const ends = Math.min(until, renewalOf(judged.view) ?? until);
    const sources = await pieces.run(() => sourcesOf(cluster, held, judged.material, password));
    return { ...judged, password, sources, uid, generation, surroundings, until: ends };
  }

  #failed(cluster: EtcdCluster, failed: readonly UnreadSecret[]): Failure {
    const { uid, generation } = cluster.metadata;
    const before = this.#failing.get(keyOf(cluster));
    const failures = before && before.uid === uid ? before.failures + 1 : 1;
    const pause = Math.min(RETRY.maxMs, RETRY.firstMs * 2 ** Math.min(failures - 1, 30));
    const names = failed.map(({ secret }) => secret);
    const unread = {
      secrets: names,
      why: failed[0]?.why ?? '',
      password: passwordSecrets(cluster).some((name) => names.includes(name)),
      judged: false,
      retryAt: this.#options.now() + pause,
    };
    return { uid, generation, failures, unread };
  }
}

/** Sessions are told apart by the texts: the same certificate must not become another session. */
const materialFor = (material: Material, serverName: string | undefined) => ({
  ...material,
  ...(serverName !== undefined && { serverName }),
});
