/** What the user of a cluster does with certificates and the root password: owns Secrets, replaces them, deletes them, restores them. */

import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import {
  applicationCertificateName,
  clientCAName,
  type EtcdPortName,
  etcdClusters,
  keptPasswordName,
  peerCAName,
  ROTATE_CA_ANNOTATION,
  serverMountName,
} from '../../../src/api/names.ts';
import { ETCD_PORTS, EXTENDED_USAGES, namesOf } from '../../../src/domain/certificate-requirements.ts';
import { findCondition } from '../../../src/domain/conditions.ts';
import { SECRETS_SETTLED_MS } from '../../../src/domain/timing.ts';
import type { Secret } from '../../../src/gen/kube.ts';
import { secrets } from '../../../src/kube/resources.ts';
import { createCA, issue, type KeyPair, type KeySource } from '../../../src/pki/issue.ts';
import { seededKeys } from '../model/keys.ts';
import { type Ground, NAMESPACE, refTo } from './ground.ts';
import { type Source, textIn } from './mounts.ts';

/** How a cluster gets its certificates; mTLS or not on the client port. */
export interface CredentialsOptions {
  readonly client: 'managed' | 'user';
  readonly mutual: boolean;
  readonly peer: 'managed' | 'user' | 'none';
  readonly auth: boolean;
}

/** The user's own Secrets. */
export const ROOT_SECRET = 'root';
const SECRETS = { server: 'user-server', operator: 'user-operator', peer: 'user-peer' } as const;
type UserRole = keyof typeof SECRETS;

const YEAR_MS = 365 * 24 * 60 * 60_000;
/** After its expiry, the cache of Secrets is filled by the next reconcile. */
const SLACK_MS = 30_000;
const DOMAIN = 'cluster.local';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

export class Credentials {
  readonly keys: KeySource;
  readonly options: CredentialsOptions;
  /** Client certificates of an application, the latest first: a user renews them as soon as all members accept the next one. */
  readonly applications: string[] = [];
  /** Secrets that a user deleted, as they were. */
  readonly #deleted = new Map<string, Secret>();
  /** The Secrets of all CA bundles that the status ever recorded. */
  readonly recorded = new Set<string>();
  /** How often operators wrote a Secret, or called etcd about users and passwords. */
  calls = 0;
  /** Once in a world. */
  hasExpired = false;
  /** When a user last changed a Secret, or the API server could return them again. */
  touchedAt = 0;
  readonly #ground: Ground;
  readonly #cluster: string;
  readonly #cas = new Map<EtcdPortName, KeyPair>();
  #passwords = 0;
  #requests = 0;

  constructor(ground: Ground, cluster: string, seed: number, options: CredentialsOptions) {
    this.#ground = ground;
    this.#cluster = cluster;
    this.keys = seededKeys(seed);
    this.options = options;
  }

  /** The Secrets that a user creates before the cluster. */
  createSecrets(): void {
    for (const part of ETCD_PORTS) this.replace(part, 'another CA');
    if (this.options.auth) this.#write(ROOT_SECRET, { password: this.#nextPassword() }, 'Opaque');
  }

  get spec(): Pick<EtcdCluster['spec'], 'tls' | 'auth'> {
    const { client, mutual, peer, auth } = this.options;
    const own = {
      serverSecretRef: { name: SECRETS.server },
      ...(mutual && { operatorClientSecretRef: { name: SECRETS.operator } }),
    };
    const managed = { managed: { clientCertificates: mutual ? ('Required' as const) : ('None' as const) } };
    const peers = peer === 'managed' ? { managed: {} } : { secretRef: { name: SECRETS.peer } };
    return {
      tls: { client: client === 'managed' ? managed : own, ...(peer !== 'none' && { peer: peers }) },
      ...(auth && { auth: { enabled: true, rootCredentialsSecretRef: { name: ROOT_SECRET } } }),
    };
  }

  /** What an application mounts: its certificate from the operator, or only the CA bundle that the operator publishes. */
  get applicationMount(): readonly Source[] {
    const { client, mutual } = this.options;
    const certified = client === 'managed' && mutual;
    const secret = certified ? applicationCertificateName(this.#cluster) : serverMountName(this.#cluster);
    const files = { 'ca.crt': 'ca.crt', ...(certified && { 'tls.crt': 'tls.crt', 'tls.key': 'tls.key' }) };
    return [{ secret, files }];
  }

  /** New certificates in the user's own Secrets of a port, one Secret after the other; or a CA of the user's where the operator had its own. */
  replace(part: EtcdPortName, by: 'the same CA' | 'another CA'): boolean {
    if (this.options[part] === 'user') void this.#replace(part, by);
    else if (this.#find(this.#managedCA(part)) && by === 'another CA') void this.#replaceManaged(part);
    else return false;
    return true;
  }

  /** All certificates have expired while no operator ran: a user replaces those that are the user's own. */
  replaceExpired(): void {
    this.hasExpired = true;
    for (const part of ETCD_PORTS) if (this.options[part] === 'user') void this.#replace(part, 'another CA');
  }

  async #replaceManaged(part: EtcdPortName): Promise<void> {
    const { cert, key } = await createCA(`user ${part}`, this.#ground.timeline.date, this.keys);
    this.#write(this.#managedCA(part), { 'tls.crt': cert, 'tls.key': key });
  }

  #managedCA(part: EtcdPortName): string {
    return part === 'client' ? clientCAName(this.#cluster) : peerCAName(this.#cluster);
  }

  async #replace(part: EtcdPortName, by: 'the same CA' | 'another CA'): Promise<void> {
    const { mutual } = this.options;
    const { timeline } = this.#ground;
    const known = by === 'the same CA' ? this.#cas.get(part) : undefined;
    const ca = known ?? (await createCA(`user ${part}`, timeline.date, this.keys));
    this.#cas.set(part, ca);
    const roles: readonly UserRole[] = part === 'peer' ? ['peer'] : mutual ? ['server', 'operator'] : ['server'];
    for (const role of roles) {
      const { cert, key } = await this.#issue(ca, role);
      const data = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
      if (timeline.now === 0) this.#write(SECRETS[role], data);
      else
        this.#ground.soon(0, 3_000, () => {
          // A user who replaces them twice within seconds keeps none of the first ones.
          if (this.#cas.get(part) === ca) this.#write(SECRETS[role], data);
        });
    }
    if (part === 'client' && mutual) this.applications.unshift((await this.#issue(ca, 'operator')).cert);
  }

  #issue(ca: KeyPair, role: UserRole): Promise<KeyPair> {
    const metadata = { name: this.#cluster, namespace: NAMESPACE };
    const hosts = namesOf({ metadata } as EtcdCluster, role, DOMAIN).all;
    const leaf = { name: `user-${role}`, hosts, usages: EXTENDED_USAGES[role], durationMs: YEAR_MS };
    return issue(ca, leaf, this.#ground.timeline.date, this.keys);
  }

  /** False while only one of the two Secrets has the password that etcd accepts: another change would lose it. */
  changePassword(): boolean {
    const isSafe = this.#find(ROOT_SECRET) !== undefined && !this.#isCopyMissing();
    if (!this.options.auth || !isSafe) return false;
    this.#write(ROOT_SECRET, { password: this.#nextPassword() }, 'Opaque');
    return true;
  }

  /** Requests a rotation of the CAs that the operator manages. */
  rotate(): boolean {
    const { client, peer } = this.options;
    if (client !== 'managed' && peer !== 'managed') return false;
    const annotations = { [ROTATE_CA_ANNOTATION]: `request ${++this.#requests}` };
    this.#ground.patch(etcdClusters, { namespace: NAMESPACE, name: this.#cluster }, { metadata: { annotations } });
    return true;
  }

  /** Deletes a Secret of the cluster, the operator's or the user's own; a user has a backup. */
  delete(n: number): string | undefined {
    const names = this.#ground.api.peek(secrets).flatMap(({ metadata }) => metadata.name ?? []);
    const name = names[n % Math.max(1, names.length)];
    const secret = name === undefined ? undefined : this.#find(name);
    if (!secret || name === undefined || (this.#holdsPassword(name) && !this.#isPasswordSettled())) return undefined;
    this.#deleted.set(name, secret);
    this.touchedAt = this.#ground.timeline.now;
    this.#ground.write((api) => api.delete(secrets, refTo(secret), { uid: secret.metadata.uid ?? '' }));
    return name;
  }

  /** A user restores from the backup what the operator did not create again by itself, or has a lost CA replaced. */
  restore(cluster: EtcdCluster | undefined): void {
    const reported = findCondition(cluster?.status?.conditions, 'CertificatesValid')?.reason;
    for (const [name, { type, immutable, data, metadata }] of this.#deleted) {
      if (this.#find(name) || (name.includes('-trust-') && reported !== 'CABundleLost')) continue;
      this.touchedAt = this.#ground.timeline.now;
      if (name.endsWith('-ca') && this.#ground.random.chance(0.5)) {
        this.rotate();
        continue;
      }
      const { labels, annotations, ownerReferences } = metadata;
      const kept = { name, namespace: NAMESPACE, labels, annotations, ownerReferences };
      const again = { apiVersion: 'v1', kind: 'Secret', metadata: kept, type, immutable, data } as Secret;
      this.#ground.tell(() => `*** a user restores Secret ${name}`);
      this.#ground.write((api) => api.create(secrets, again));
    }
    this.#deleted.clear();
  }

  /** Why a user, or the operator's next read of the Secrets, may still change something. */
  get unrest(): string | undefined {
    if (this.#ground.timeline.now < this.touchedAt + SECRETS_SETTLED_MS + SLACK_MS)
      return 'the operator has not read the Secrets again';
    const missing = [...this.#deleted.keys()].filter((name) => !this.#find(name));
    return missing.length > 0 ? `a user will restore ${missing.join(', ')}` : undefined;
  }

  /** Passwords that the operator can find: in the user's Secret, and in its own copy. */
  get passwords(): readonly string[] {
    const kept = this.#find(keptPasswordName(this.#cluster));
    return [this.password, textIn(kept, 'password'), textIn(kept, 'next')].filter((text) => text !== '');
  }

  /** In the user's Secret. */
  get password(): string {
    return textIn(this.#find(ROOT_SECRET), 'password');
  }

  #holdsPassword(name: string): boolean {
    return name === ROOT_SECRET || name === keptPasswordName(this.#cluster);
  }
  #isCopyMissing(): boolean {
    return this.#deleted.has(keptPasswordName(this.#cluster)) && !this.#find(keptPasswordName(this.#cluster));
  }
  #isPasswordSettled(): boolean {
    const kept = this.#find(keptPasswordName(this.#cluster));
    return kept?.data?.['next'] === undefined && textIn(kept, 'password') === this.password;
  }
  #nextPassword(): string {
    return `password ${++this.#passwords}`;
  }
  #find(name: string): Secret | undefined {
    return this.#ground.find(secrets, name);
  }

  #write(name: string, texts: Readonly<Record<string, string>>, type = 'kubernetes.io/tls'): void {
    const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, base64(text)]));
    this.touchedAt = this.#ground.timeline.now;
    const metadata = { name, namespace: NAMESPACE };
    const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, type, data };
    if (this.#find(name)) this.#ground.patch(secrets, metadata, { data });
    else this.#ground.write((api) => api.create(secrets, secret));
  }
}
