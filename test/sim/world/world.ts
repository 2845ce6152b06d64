/** A world: nodes, kubelets, volumes, etcd, the garbage collector, a client, and operators that start and die. */

import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import { etcdClusters } from '../../../src/api/names.ts';
import type { Resource } from '../../../src/kube/object.ts';
import type { UserEtcd } from '../../support/etcd-client.ts';
import { ModelEtcd } from '../model/etcd.ts';
import { modelPorts } from '../model/etcd-ports.ts';
import { setDate } from '../model/etcd-tls.ts';
import { seededKeys } from '../model/keys.ts';
import { Credentials, type CredentialsOptions } from './credentials.ts';
import { Ground, NAMESPACE } from './ground.ts';
import { Kubelet } from './kubelet.ts';
import { LeaseModel } from './lease.ts';
import { type ApiTrouble, type EtcdTrouble, Network } from './network.ts';
import { Nodes } from './nodes.ts';
import { OperatorProcess } from './operator.ts';
import { apiFor, etcdFor, handshakeFor, type Onlooker, type WatchTroubles } from './operator-ports.ts';
import { load, type Recorded } from './recorded.ts';
import { Scheduler } from './scheduler.ts';
import { Volumes } from './volumes.ts';
import { Writer } from './writer.ts';

export const CLUSTER = 'db';
const clusters: Resource<EtcdCluster> = etcdClusters;

export interface WorldOptions {
  readonly seed: number;
  readonly nodes: number;
  /** Each volume is local to one node. */
  readonly localVolumes: boolean;
  readonly tellStory: boolean;
  /** Absent: neither TLS nor auth. */
  readonly credentials?: CredentialsOptions | undefined;
  /** Of the cluster. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Absent: the world starts empty. */
  readonly recorded?: Recorded;
}

export class World {
  readonly ground: Ground;
  readonly etcd = new ModelEtcd();
  readonly ports: UserEtcd;
  readonly nodes: Nodes;
  readonly volumes: Volumes;
  readonly kubelet: Kubelet;
  readonly writer: Writer;
  readonly lease: LeaseModel;
  readonly apiNetwork: Network<ApiTrouble>;
  readonly etcdNetwork: Network<EtcdTrouble>;
  /** The user's part of TLS and auth. */
  readonly credentials: Credentials | undefined;
  readonly watches: WatchTroubles = { heldUntil: new Map(), mergeUntil: 0, open: new Set(), unreadableUntil: 0 };
  readonly operators: OperatorProcess[] = [];
  readonly #scheduler: Scheduler;
  readonly #onlooker: Onlooker;
  readonly #annotations: Readonly<Record<string, string>>;
  #seenVersion = '';
  #collecting = false;
  #ticking = false;
  #started = 0;

  constructor(options: WorldOptions, onlooker: (world: World) => Onlooker) {
    this.#annotations = options.annotations ?? {};
    this.ground = new Ground(options.seed, options.tellStory, options.recorded?.at);
    const { ground } = this;
    this.ports = modelPorts(this.etcd);
    this.nodes = new Nodes(ground, options.nodes);
    this.volumes = new Volumes(ground, options.localVolumes);
    this.kubelet = new Kubelet(ground, this.etcd, this.nodes, this.volumes);
    const { credentials } = options;
    this.credentials = credentials && new Credentials(ground, CLUSTER, options.seed, credentials);
    this.writer = new Writer(ground, CLUSTER, this.ports, this.kubelet, this.credentials);
    this.lease = new LeaseModel(ground.timeline);
    this.apiNetwork = new Network(ground.timeline, ground.random, 20, (kind) => ground.count(`api: ${kind}`));
    this.etcdNetwork = new Network(ground.timeline, ground.random, 5, (kind) => ground.count(`etcd: ${kind}`));
    this.#scheduler = new Scheduler(ground, this.nodes, this.volumes);
    this.#onlooker = onlooker(this);
    if (options.recorded) load(this, options.recorded);
    else this.credentials?.createSecrets();
    this.startOperator();
  }

  get cluster(): EtcdCluster | undefined {
    return this.ground.find(clusters, CLUSTER);
  }

  createCluster(spec: EtcdCluster['spec']): void {
    const metadata = { name: CLUSTER, namespace: NAMESPACE, annotations: this.#annotations };
    const cluster = {
      apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
      kind: 'EtcdCluster',
      metadata,
      spec,
    } as EtcdCluster;
    this.ground.write((api) => api.create(clusters, cluster));
  }

  get actingOperator(): OperatorProcess | undefined {
    return this.operators.find((operator) => this.lease.mayWrite(operator));
  }

  startOperator(): OperatorProcess {
    const operator = new OperatorProcess(`operator-${++this.#started}`, {
      ground: this.ground,
      lease: this.lease,
      client: (self) =>
        apiFor(self, {
          ground: this.ground,
          lease: this.lease,
          network: this.apiNetwork,
          watches: this.watches,
          onlooker: this.#onlooker,
        }),
      etcd: (self) =>
        etcdFor(self, modelPorts(this.etcd) as unknown as Readonly<Record<string, object>>, {
          etcd: this.etcd,
          network: this.etcdNetwork,
          onlooker: this.#onlooker,
          ground: this.ground,
        }),
      keys: this.credentials?.keys ?? seededKeys(0),
      handshake: (self) => handshakeFor(self, this.etcd, this.etcdNetwork),
    });
    this.operators.push(operator);
    return operator;
  }

  /** Runs one event, and resolves when every process has handled it. False: there is none until then. */
  async step(until?: number): Promise<boolean> {
    const { timeline } = this.ground;
    if (!timeline.step(until)) return false;
    this.etcd.now = timeline.now;
    if (this.credentials) setDate(timeline.date);
    do await drained();
    while (this.credentials && process.getActiveResourcesInfo().includes('Immediate')); // an evaluation of Secrets that has paused
    this.etcd.settle();
    this.#sync();
    return true;
  }

  #sync(): void {
    const { version } = this.ground.api;
    if (version !== this.#seenVersion) {
      this.#scheduler.sync();
      this.volumes.sync();
      this.kubelet.mounts.sync();
      this.#seenVersion = this.ground.api.version;
      this.#collectLater();
    }
    this.kubelet.sync();
    this.#tickLater();
  }

  #collectLater(): void {
    if (this.#collecting) return;
    this.#collecting = true;
    this.ground.soon(50, 3_000, () => {
      this.#collecting = false;
      this.ground.api.countDisruptions();
      void this.ground.api.collectGarbage().then((some) => {
        if (some) this.ground.changedAt = this.ground.timeline.now;
      });
    });
  }

  /** Elections and late starts take time, while nothing else may happen. */
  #tickLater(): void {
    const waits = this.etcd.nodes.some(
      ({ running, disk, servesAt }) => running && disk && (disk.group.leader === undefined || servesAt > this.etcd.now),
    );
    if (!waits || this.#ticking) return;
    this.#ticking = true;
    this.ground.timeline.after(1_050, () => {
      this.#ticking = false;
    });
  }
}

const drained = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
