/** One namespace with its own operator, whose connections to the API server and to each member all go through fault proxies. */
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import type { EtcdCluster, EtcdClusterSpec } from '../../src/api/etcd-cluster.ts';
import type { EtcdMember } from '../../src/api/etcd-member.ts';
import {
  applicationCertificateName,
  headlessServiceName,
  hostOf,
  LEASE_NAME,
  memberName,
  ROTATE_CA_ANNOTATION,
} from '../../src/api/names.ts';
import type { Ask } from '../../src/etcd/client.ts';
import type { Secret } from '../../src/gen/kube.ts';
import { leases, secrets } from '../../src/kube/resources.ts';
import { Rulebook, type SeenCall } from '../support/faults/grpc-proxy.ts';
import type { FaultProxy, Passed } from '../support/faults/proxy.ts';
import type { Running } from '../support/kubelet/pod-run.ts';
import { grantLease } from '../support/servers/control-plane.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, members, type World } from '../support/servers/world.ts';
import { canonical, MAX_NAMES } from './canonical.ts';
import type { Ledger } from './ledger.ts';

/** Calls that change the members of an etcd cluster, or its leader. */
export const MEMBERSHIP: readonly string[] = [
  'Cluster/MemberAdd',
  'Cluster/MemberRemove',
  'Cluster/MemberPromote',
  'Cluster/MemberUpdate',
  'Maintenance/MoveLeader',
];
/** Calls that change anything in etcd, and those that prove a password. */
export const CHANGES: readonly string[] = [
  ...MEMBERSHIP,
  'Auth/UserAdd',
  'Auth/UserGrantRole',
  'Auth/UserChangePassword',
  'Auth/AuthEnable',
  'Auth/Authenticate',
];
export const CLUSTER = 'db';
/** The Secret of the user with the password of root. */
export const ROOT = 'root';
/** Longer than the kubelet here takes to update a Secret in a Pod. */
const GRACE_SECONDS = 2;

export class Rig {
  readonly world: World;
  readonly ledger: Ledger;
  readonly namespace: string;
  readonly proxy: FaultProxy;
  /** Of all members together. */
  readonly rpcs: Rulebook;
  readonly #start: () => Child;
  readonly #maxNames: number;
  readonly #operators: Child[] = [];
  readonly #passwords: string[] = [];
  #rotations = 0;
  readonly #faults: (() => void | Promise<void>)[] = [];
  /** The cluster as it was created; it keeps its uid after it was deleted. */
  made: EtcdCluster | undefined;

  private constructor(
    world: World,
    ledger: Ledger,
    namespace: string,
    proxy: FaultProxy,
    start: () => Child,
    maxNames: number,
  ) {
    this.world = world;
    this.ledger = ledger;
    this.namespace = namespace;
    this.proxy = proxy;
    this.#start = start;
    this.#maxNames = maxNames;
    this.rpcs = new Rulebook();
    world.kubelet.front(namespace, this.rpcs);
  }

  /** `maxNames`: more than the members that its cluster will ever have, one after the other. */
  static async build(world: World, ledger: Ledger, maxNames = MAX_NAMES): Promise<Rig> {
    const namespace = await world.namespace();
    await grantLease(world.admin, namespace);
    const proxy = await world.faultProxy();
    const flags = [
      `--watch-namespace=${namespace}`,
      '--leader-elect',
      `--namespace=${namespace}`,
      `--rotation-grace=${GRACE_SECONDS}`,
    ];
    return new Rig(world, ledger, namespace, proxy, () => world.startOperator(...proxy.flags, ...flags), maxNames);
  }

  get operator(): Child {
    const last = this.#operators.at(-1);
    if (!last) throw new Error('no operator was started yet');
    return last;
  }

  /** Resolves when the operator holds the Lease. */
  async start(): Promise<void> {
    this.#operators.push(this.#start());
    await eventually('an operator that holds the Lease', () => this.#holder(), { seen: () => this.log() });
  }

  /** Kills the operator. Its Lease is released for it, because the time until a replacement takes over is not tested here. */
  async kill(): Promise<void> {
    await this.operator.stop('SIGKILL');
    if ((await this.#holder()) === undefined) return;
    await this.world.admin.patch(leases, this.#lease, { spec: { holderIdentity: '', leaseDurationSeconds: 1 } });
  }

  /** `remove` ends a fault of the present plan. */
  arranged(remove: () => void | Promise<void>): void {
    this.#faults.push(remove);
  }

  /** Ends the faults of a plan: those that never happened must not happen in the next one. */
  async lift(): Promise<void> {
    for (const remove of this.#faults.splice(0)) await remove();
  }

  get #lease() {
    return { namespace: this.namespace, name: LEASE_NAME };
  }

  async #holder(): Promise<string | undefined> {
    return (await this.world.admin.get(leases, this.#lease))?.spec?.holderIdentity || undefined;
  }

  async createCluster(spec: Partial<EtcdClusterSpec>, name = CLUSTER): Promise<void> {
    this.made = await this.world.createCluster(this.namespace, name, { storage: { size: '1Gi' }, ...spec });
    const service = headlessServiceName(CLUSTER);
    await this.world.kubelet.expect(this.names().map((name) => ({ name, service, namespace: this.namespace })));
  }

  /** The names of its members, the oldest first. */
  names(): readonly string[] {
    const { uid = '' } = this.made?.metadata ?? {};
    return Array.from({ length: this.#maxNames }, (_, i) => memberName(CLUSTER, uid, i + 1));
  }

  edit(spec: Partial<EtcdClusterSpec>): Promise<void> {
    return this.patch({ spec });
  }

  async patch(fields: Readonly<Record<string, unknown>>): Promise<void> {
    await this.world.admin.patch(...this.clusterRef, fields);
  }

  get clusterRef() {
    return [clusters, { namespace: this.namespace, name: CLUSTER }] as const;
  }

  get cluster(): EtcdCluster | undefined {
    return this.ledger.ofKind(clusters, this.namespace)[0];
  }

  get members(): readonly EtcdMember[] {
    return this.ledger.ofKind(members, this.namespace);
  }

  state(): readonly string[] {
    if (!this.made) return [];
    return canonical(this.ledger.objects(this.namespace), this.made, this.namespace);
  }

  writes(): readonly Passed[] {
    return this.proxy.calls.filter((call) => call.write);
  }

  membershipCalls(): readonly SeenCall[] {
    return this.rpcs.calls.filter(({ method }) => MEMBERSHIP.includes(method));
  }

  changes(): readonly SeenCall[] {
    return this.rpcs.calls.filter(({ method }) => CHANGES.includes(method));
  }

  secret(name: string): Secret | undefined {
    return this.ledger.ofKind<Secret>(secrets, this.namespace).find(({ metadata }) => metadata.name === name);
  }

  get password(): string | undefined {
    return this.#passwords[0];
  }

  /** The user's password of root, from now on. Clients try the previous ones as well: etcd gets the new one later. */
  async setPassword(password: string): Promise<void> {
    const ref = { namespace: this.namespace, name: ROOT };
    const data = { password: Buffer.from(password).toString('base64') };
    if (this.#passwords.length > 0) await this.world.admin.patch(secrets, ref, { data });
    else await this.world.admin.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: ref, data });
    this.#passwords.unshift(password);
  }

  /** The last one that the user has commanded. */
  get rotation(): string {
    return `rotation-${this.#rotations}`;
  }

  async rotateCA(): Promise<void> {
    this.#rotations++;
    await this.patch({ metadata: { annotations: { [ROTATE_CA_ANNOTATION]: this.rotation } } });
  }

  /** Users' Secrets are not watched: an edit makes the operator read them. */
  async touch(): Promise<void> {
    const { progressDeadlineSeconds = 600 } = this.cluster?.spec ?? {};
    await this.edit({ progressDeadlineSeconds: progressDeadlineSeconds + 1 });
  }

  /** How an application reaches a member: with the certificate that it was given, if there is one yet, and the password of root. */
  asClient(run: Running, timeoutMs: number): Ask | undefined {
    if (!run.tls('client')) return { endpoint: `http://${run.address}:2379`, timeoutMs };
    const given = this.secret(applicationCertificateName(CLUSTER));
    if (!given) return undefined;
    const [ca, cert, key] = ['ca.crt', 'tls.crt', 'tls.key'].map((name) => textOf(given, name));
    const serverName = hostOf(run.pod.metadata.name ?? '', CLUSTER, this.namespace);
    return {
      endpoint: `https://${run.address}:2379`,
      timeoutMs,
      access: {
        cluster: `application of ${this.namespace}`,
        tls: () => ({ ca: ca ?? '', cert: cert ?? '', key: key ?? '', serverName }),
        passwords: () => this.#passwords.map((password) => ({ user: 'root', password })),
      },
    };
  }

  /** The logs of the operators, one after the other. */
  log(): string {
    return this.#operators.map((operator) => operator.log()).join('=== killed; its replacement:\n');
  }

  /** The logs of the members that run now. */
  membersLog(): string {
    const running = this.world.kubelet.running(this.namespace);
    return running.map(({ pod, child }) => `=== ${pod.metadata.name}:\n${child?.log() ?? ''}`).join('');
  }

  /** Ends everything of this rig, so that the next one has the machine. */
  async stop(): Promise<void> {
    await this.#operators.at(-1)?.stop('SIGKILL');
    await this.proxy.close();
    await this.world.kubelet.abandon(this.namespace);
  }
}
