/**
 * Reconciles of an operator that only manages the root password: the real rules and the real calls, against a model of the API server
 * and against a model or a real etcd. It can be killed before and after every change that it makes.
 */

import { passwordSecrets, rootPassword } from '../../../src/access/evaluate/root-password.ts';
import { textOf } from '../../../src/access/evaluate/secret-set.ts';
import type { PasswordView } from '../../../src/access/evaluate/view.ts';
import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import { API_VERSION, etcdClusters, keptPasswordName } from '../../../src/api/names.ts';
import type { RootPasswordCall } from '../../../src/controllers/cluster/credentials/calls.ts';
import {
  executeRootPasswordCall,
  type RootPorts,
} from '../../../src/controllers/cluster/credentials/execute-root-password.ts';
import { askAuth } from '../../../src/controllers/cluster/credentials/observe-auth.ts';
import { changeRootPassword, enableAuth } from '../../../src/controllers/cluster/credentials/rules/auth.ts';
import { credentialsFacts } from '../../../src/controllers/cluster/credentials-facts.ts';
import type { AuthPort } from '../../../src/etcd/auth.ts';
import type { Access, Ask } from '../../../src/etcd/client.ts';
import type { Result } from '../../../src/etcd/errors.ts';
import type { Secret } from '../../../src/gen/kube.ts';
import type { Resource } from '../../../src/kube/object.ts';
import { secrets } from '../../../src/kube/resources.ts';
import { Store } from '../../../src/kube/store.ts';
import { RetryLater } from '../../../src/runtime/plan.ts';
import { ModelApiServer } from '../../sim/model/kube.ts';
import { up, world } from './members.ts';
import { putInCache } from './ports.ts';

export class Killed extends Error {}

/** Where etcd is, and how a newly started process connects to it. */
export interface RootSite {
  readonly connect: () => AuthPort;
  readonly ask: Ask;
  readonly tls: NonNullable<Access['tls']>;
  readonly clusterID: string;
}

/** The operator is killed before or after the n-th change, its response is lost, or it is confirmed without being made. */
export interface Fault {
  readonly nth: number;
  readonly when: 'before' | 'after' | 'unanswered' | 'forgotten';
}

const CHANGES = ['deleteUser', 'addUser', 'grantRole', 'enable', 'changePassword'] as const;
const DONE: Result<void> = { ok: true, value: undefined };
const LOST: Result<never> = { ok: false, error: { kind: 'timeout', message: 'no response' } };

export class RootReconciles {
  readonly #site: RootSite;
  readonly #client = new ModelApiServer();
  readonly #clusters = new Store<EtcdCluster>(etcdClusters, []);
  #cluster: EtcdCluster | undefined;
  #fault: Fault | undefined;
  /** The changes since the process started, in order. */
  changes: string[] = [];
  #auth: AuthPort;

  constructor(site: RootSite) {
    this.#site = site;
    this.#auth = site.connect();
  }

  async start(): Promise<void> {
    const resource: Resource<EtcdCluster> = etcdClusters;
    this.#cluster = await this.#client.create(resource, {
      apiVersion: API_VERSION,
      kind: 'EtcdCluster',
      metadata: { name: 'db', namespace: 'ns' },
      spec: { version: '3.6.16', auth: { enabled: true, rootCredentialsSecretRef: { name: 'mine' } } },
    });
    putInCache(this.#clusters, this.#cluster);
  }

  /** The user writes or deletes the Secret. */
  async give(password: string | undefined): Promise<void> {
    const found = await this.#secret('mine');
    const ref = { namespace: 'ns', name: 'mine' };
    if (password === undefined) {
      if (found) await this.#client.delete(secrets, ref, { uid: found.metadata.uid ?? '' });
      return;
    }
    const data = { password: Buffer.from(password).toString('base64') };
    if (found) await this.#client.patch(secrets, ref, { data });
    else await this.#client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: ref, data });
  }

  /** A new process takes over, without the memory of the previous one. */
  restart(fault?: Fault): void {
    this.#auth = this.#site.connect();
    this.#fault = fault;
    this.changes = [];
  }

  /** Reconciles until there is nothing to do. Rejects with Killed. */
  async run(): Promise<void> {
    for (let i = 0; i < 30; i++) if ((await this.#reconcile()) === 'settled') return;
    throw new Error('the operator does not settle');
  }

  /** The stored passwords, by key. */
  async kept(): Promise<Readonly<Record<string, string>>> {
    const secret = await this.#secret(keptPasswordName('db'));
    return Object.fromEntries(Object.keys(secret?.data ?? {}).map((key) => [key, textOf(secret, key)]));
  }

  /** How etcd responds to a client with this password. */
  async authenticate(password: string): Promise<string> {
    const access = { cluster: 'client', tls: this.#site.tls };
    const answer = await this.#site.connect().authenticate({ ...this.#site.ask, access }, { user: 'root', password });
    return answer.ok ? 'ok' : answer.error.kind;
  }

  #secret(name: string): Promise<Secret | undefined> {
    return this.#client.get(secrets, { namespace: 'ns', name });
  }

  async #reconcile(): Promise<'settled' | 'changed' | 'retry'> {
    const cluster = this.#known;
    const held = await Promise.all(
      passwordSecrets(cluster).map(async (name) => [name, await this.#secret(name)] as const),
    );
    const password = rootPassword(cluster, new Map(held));
    const access: Access = { cluster: 'ns/db', tls: this.#site.tls, passwords: () => password?.passwords ?? [] };
    const asked = await askAuth({ auth: this.#auth }, cluster, { ...this.#site.ask, access });
    const o = observed(password?.view, asked?.auth);
    const decision = enableAuth(o) ?? changeRootPassword(o);
    if (!decision) return asked ? 'settled' : 'retry';
    for (const step of decision.sequences?.flat() ?? []) {
      if (step.do !== 'call' || step.call.is !== 'rootPassword')
        throw new Error(`${step.do} is not a root password call`);
      try {
        await this.#do(step.call, access);
      } catch (error) {
        if (error instanceof RetryLater) return 'retry';
        throw error;
      }
    }
    return 'changed';
  }

  #do(call: RootPasswordCall, access: Access): Promise<void> {
    const { name = '', namespace = '', uid = '' } = this.#known.metadata;
    const ports: RootPorts = {
      client: {
        get: (...args) => this.#client.get(...args),
        create: (resource, object) => this.#change('keep', () => this.#client.create(resource, object)),
        patch: (resource, ...more) => this.#change('keep', () => this.#client.patch(resource, ...more)),
      },
      credentials: { access: () => Promise.resolve(access), forget: () => undefined },
      clusters: this.#clusters,
      etcd: { auth: this.#changing() },
    };
    const { ask, clusterID } = this.#site;
    const to = { cluster: { namespace, name, uid }, clusterID, endpoints: [ask.endpoint], hosts: {} };
    return executeRootPasswordCall(ports, { ...call, ...to }, new AbortController().signal);
  }

  get #known(): EtcdCluster {
    if (!this.#cluster) throw new Error('start() was not called');
    return this.#cluster;
  }

  #changing(): AuthPort {
    const auth = this.#auth as unknown as Record<string, (...args: readonly unknown[]) => Promise<Result<void>>>;
    const changing = CHANGES.map((name) => [
      name,
      (...args: readonly unknown[]) =>
        this.#change(name, async () => (await auth[name]?.(...args)) ?? LOST, LOST, DONE),
    ]);
    return { ...this.#auth, ...Object.fromEntries(changing) } as AuthPort;
  }

  async #change<T>(name: string, make: () => Promise<T>, lost?: T, done?: T): Promise<T> {
    this.changes.push(name);
    const fault = this.#fault?.nth === this.changes.length ? this.#fault : undefined;
    if (fault?.when === 'before') throw new Killed(name);
    if (fault?.when === 'forgotten' && done !== undefined) return done;
    const made = await make();
    if (fault?.when === 'after') throw new Killed(name);
    if (fault?.when === 'unanswered' && lost !== undefined) return lost;
    return made;
  }
}

function observed(password: PasswordView | undefined, auth: 'off' | 'on' | 'required' | undefined) {
  return credentialsFacts({ ...world([up]), password, auth });
}
