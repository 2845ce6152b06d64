/**
 * Who the operator is to each cluster, and whom it trusts there: from Secrets that are read by name, kept for a while, and read
 * again more often as long as one is missing or wrong. Both controllers that speak to members share it.
 */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { Access } from '../etcd/client.ts';
import type { TlsMaterial } from '../etcd/transport.ts';
import type { Client } from '../kube/client.ts';
import { refOf } from '../kube/object.ts';
import { secrets } from '../kube/resources.ts';
import { type Judged, judge, type Material, secretNames } from './judge.ts';
import { passwordSecrets, type RootPassword, rootPassword } from './password.ts';
import { Shown } from './shown.ts';
import {
  type CertificatesView,
  isPasswordUnsettled,
  isUnsettled,
  NO_CERTIFICATES,
  type PasswordView,
  renewalOf,
  UNSETTLED_MS,
} from './view.ts';

export interface CredentialsOptions {
  readonly client: Pick<Client, 'get'>;
  readonly now: () => number;
  /** The DNS domain of the Kubernetes cluster. */
  readonly domain: string;
  /** The fingerprint of the certificate that a member shows in a handshake; `undefined` when there is none. */
  readonly look: (endpoint: string, tls: TlsMaterial) => Promise<string | undefined>;
}

/** Nobody tells when a Secret changes: it is looked at so often, and more often as long as something is wrong. */
export const SETTLED_MS = 5 * 60_000;

export interface Expiry {
  readonly namespace: string;
  readonly cluster: string;
  readonly role: string;
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly notAfter: number;
}

interface Known extends Judged {
  readonly password: RootPassword | undefined;
  /** A cluster that was made anew has nothing in common with its predecessor. */
  readonly uid: string | undefined;
  /** Somebody who edits the spec is at work here, and has perhaps changed a Secret as well. */
  readonly generation: number | undefined;
  readonly until: number;
}

const keyOf = ({ metadata: { namespace = '', name = '' } }: EtcdCluster): string => `${namespace}/${name}`;

export class Credentials {
  readonly #options: CredentialsOptions;
  readonly #known = new Map<string, Known>();
  readonly #reading = new Map<string, Promise<Known>>();
  readonly #shown = new Shown();

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  get domain(): string {
    return this.#options.domain;
  }

  /** Reads what is not known, or too old. */
  async view(cluster: EtcdCluster): Promise<CertificatesView> {
    return (await this.#judged(cluster))?.view ?? NO_CERTIFICATES;
  }

  /** `undefined` when nobody is to log in. */
  async password(cluster: EtcdCluster): Promise<PasswordView | undefined> {
    return (await this.#judged(cluster))?.password?.view;
  }

  /** How a member is reached that has this name in its certificate, or several of them by their endpoints. */
  async access(cluster: EtcdCluster, hostAt: (endpoint: string) => string | undefined): Promise<Access> {
    const key = { cluster: keyOf(cluster) };
    if (cluster.spec.tls?.client === undefined) return key;
    const { material, password } = (await this.#judged(cluster)) ?? {};
    // Without anybody to trust there is no connection: never a plain one instead.
    if (!material) return key;
    return {
      ...key,
      tls: (endpoint) => materialFor(material, hostAt(endpoint)),
      ...(password && { logins: () => password.logins }),
    };
  }

  /** Of these members, those that do not show yet what they have mounted; each by the name in its certificate. */
  async behind(cluster: EtcdCluster, hosts: Readonly<Record<string, string>>): Promise<readonly string[]> {
    const { mounted, material } = (await this.#judged(cluster)) ?? {};
    if (mounted === undefined || material === undefined || cluster.spec.tls?.client === undefined) return [];
    const look = (endpoint: string) => this.#options.look(endpoint, materialFor(material, hosts[endpoint]));
    const behind = await this.#shown.behind(keyOf(cluster), mounted, Object.keys(hosts), look);
    return behind.map((endpoint) => hosts[endpoint] ?? endpoint);
  }

  /** When the certificates that were read last stop being valid. */
  *expiries(): Iterable<Expiry> {
    for (const [key, { view }] of this.#known)
      for (const { need, notAfter } of view.certificates) {
        const { namespace, name: cluster } = refOf(key);
        if (notAfter !== undefined) yield { namespace, cluster, role: need.role, secret: need.secret, notAfter };
      }
  }

  /** A Secret of the cluster was written: all are read again. */
  forget(key: string): void {
    this.#known.delete(key);
    this.#reading.delete(key);
  }

  /** The cluster is gone. */
  drop(key: string): void {
    this.forget(key);
    this.#shown.forget(key);
  }

  async #judged(cluster: EtcdCluster): Promise<Known | undefined> {
    const names = [...new Set([...secretNames(cluster), ...passwordSecrets(cluster)])];
    if (names.length === 0) return undefined;
    const key = keyOf(cluster);
    const known = this.#known.get(key);
    const { uid, generation } = cluster.metadata;
    const same = known?.uid === uid && known?.generation === generation;
    if (known && same && this.#options.now() < known.until) return known;
    const reading = this.#reading.get(key) ?? this.#read(cluster, names);
    this.#reading.set(key, reading);
    try {
      const fresh = await reading;
      if (this.#reading.get(key) === reading) this.#known.set(key, fresh); // otherwise it was written meanwhile
      return fresh;
    } finally {
      if (this.#reading.get(key) === reading) this.#reading.delete(key);
    }
  }

  async #read(cluster: EtcdCluster, names: readonly string[]): Promise<Known> {
    const { client, now, domain } = this.#options;
    const { namespace = '', uid, generation } = cluster.metadata;
    const found = await Promise.all(
      names.map(async (name) => [name, await client.get(secrets, { namespace, name })] as const),
    );
    const held = new Map(found);
    const judged = judge(cluster, held, { now: now(), domain });
    const password = rootPassword(cluster, held);
    const unsettled = isUnsettled(judged.view) || isPasswordUnsettled(password?.view);
    const until = now() + (unsettled ? UNSETTLED_MS : SETTLED_MS);
    return { ...judged, password, uid, generation, until: Math.min(until, renewalOf(judged.view) ?? until) };
  }
}

/** Sessions are told apart by the texts: the same certificate must not become another session. */
const materialFor = (material: Material, serverName: string | undefined) => ({
  ...material,
  ...(serverName !== undefined && { serverName }),
});
