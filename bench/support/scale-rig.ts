/** A real API server, the operator as a process, and thousands of clusters whose Pods and etcd members are scripted. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import { API_VERSION, etcdClusters, LEASE_NAME } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { keyOf, type Resource } from '../../src/kube/object.ts';
import { leases } from '../../src/kube/resources.ts';
import { ALL_NAMESPACES, Store } from '../../src/kube/store.ts';
import { watch } from '../../src/kube/watcher.ts';
import { startControlPlane } from '../../test/support/servers/control-plane.ts';
import { type Child, eventually, freePort, Processes, pause } from '../../test/support/servers/processes.ts';
import { bundle } from '../../tools/image/bundle.ts';
import { RUNTIME } from '../../tools/image/operator.ts';
import { InstantKubelet } from './instant-kubelet.ts';
import { inParallel } from './kube-lab.ts';
import { ScriptedEtcd } from './scripted-etcd.ts';

export const NAMESPACE = 'default';
const MEMBERS = 3;
const CREATORS = 16;
const BACKGROUND = 5;
const clusterKind: Resource<EtcdCluster> = etcdClusters;
const lease = { namespace: NAMESPACE, name: LEASE_NAME };
export const nameOf = (n: number): string => `c${n}`;
export const keyOfCluster = (n: number): string => `${NAMESPACE}/${nameOf(n)}`;

function isReady({ status }: EtcdCluster): boolean {
  const statusOf = (type: string) => findCondition(status?.conditions, type)?.status;
  return status?.readyMembers === MEMBERS && statusOf('Available') === 'True' && statusOf('Progressing') === 'False';
}

export class ScaleRig {
  readonly admin: HttpClient;
  readonly etcd: ScriptedEtcd;
  readonly kubelet: InstantKubelet;
  readonly #processes: Processes;
  readonly #folder: string;
  readonly #launch: () => Child;
  readonly #metrics: string;
  readonly #ready = new Set<string>();
  readonly #stop = new AbortController();
  #made = 0;
  operator: Child;

  private constructor(admin: HttpClient, processes: Processes, folder: string, launch: () => Child, metrics: string) {
    this.admin = admin;
    this.#processes = processes;
    this.#folder = folder;
    this.#launch = launch;
    this.#metrics = metrics;
    this.etcd = new ScriptedEtcd();
    this.kubelet = new InstantKubelet(admin, this.etcd);
    const store = new Store(clusterKind, []);
    store.onChange((before, after) => {
      const cluster = after ?? before;
      if (!cluster) return;
      if (after && isReady(after)) this.#ready.add(keyOf(cluster));
      else this.#ready.delete(keyOf(cluster));
    });
    void watch({
      client: admin,
      resource: clusterKind,
      signal: this.#stop.signal,
      emit: (event) => store.apply(ALL_NAMESPACES, event),
      onError: () => undefined,
      sleep: pause,
      random: Math.random,
    });
    this.operator = launch();
  }

  static async start(): Promise<ScaleRig> {
    const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-bench-'));
    const processes = new Processes(folder);
    // The simulated environment runs at lower priority than the operator, as if on other machines, and has memory to spare.
    setPriority(BACKGROUND);
    process.env['GOGC'] = '1000';
    process.env['GOMEMLIMIT'] = '12GiB'; // not all memory: the operator's own is what is measured
    let rig: ScaleRig | undefined;
    try {
      // No controller of Kubernetes is needed here, and the disruption controller would read all Pods for each PodDisruptionBudget.
      const { admin, operatorKubeconfig } = await startControlPlane(processes, folder, { controllers: [] });
      const program = join(folder, 'manager.mjs');
      writeFileSync(program, (await bundle('src/bin/operator.ts')).code);
      const address = `127.0.0.1:${await freePort()}`;
      const flags = [
        `--kubeconfig=${operatorKubeconfig}`,
        `--metrics-bind-address=${address}`,
        '--health-probe-bind-address=0',
        '--leader-elect',
        `--namespace=${NAMESPACE}`,
      ];
      // As in the image, except that its certificates are not there.
      const options = RUNTIME.NODE_OPTIONS.replace('--use-openssl-ca', '');
      const env = { ...process.env, ...RUNTIME, NODE_OPTIONS: options };
      const command = ['-n', String(-BACKGROUND), process.execPath, program, ...flags]; // only root may raise the priority; otherwise it stays as it is
      const launch = (): Child => processes.start('operator', 'nice', command, env);
      rig = new ScaleRig(admin, processes, folder, launch, `http://${address}/metrics`);
      await rig.etcd.listen();
      return rig;
    } catch (error) {
      await (rig ? rig.stop() : processes.stopAll());
      throw error;
    }
  }

  get clusters(): number {
    return this.#made;
  }

  /** Resolves to the seconds until all of them were ready. */
  async grow(to: number, progress: (detail: string) => void): Promise<number> {
    const numbers = Array.from({ length: to - this.#made }, (_, i) => this.#made + i);
    this.#made = to;
    const started = performance.now();
    const reporting = setInterval(() => progress(`${this.#ready.size} of ${to} clusters are ready`), 1_000);
    try {
      await inParallel(numbers, CREATORS, (n) => this.#create(n));
      await this.allReady(600_000);
    } finally {
      clearInterval(reporting);
    }
    return (performance.now() - started) / 1000;
  }

  #create(n: number): Promise<EtcdCluster> {
    return this.admin.create(clusterKind, {
      apiVersion: API_VERSION,
      kind: 'EtcdCluster',
      metadata: { name: nameOf(n), namespace: NAMESPACE },
      spec: { replicas: MEMBERS, version: '3.6.16', storage: { size: '1Gi' } },
    });
  }

  async allReady(timeoutMs: number): Promise<void> {
    await eventually('all clusters to be ready', () => this.#ready.size === this.#made || undefined, {
      timeoutMs,
      seen: () => [`${this.#ready.size} of ${this.#made}`, this.operator.log().slice(-2_000)],
    });
  }

  /** Kills the operator; its Lease is released for it, so that no successor has to wait until it expires. */
  async kill(): Promise<void> {
    await this.operator.stop('SIGKILL');
    await this.admin.patch(leases, lease, { spec: { holderIdentity: '', leaseDurationSeconds: 1 } });
  }

  /** Resolves to the moment when the new process holds the Lease. */
  async restart(): Promise<number> {
    this.operator = this.#launch();
    const held = async () => (await this.admin.get(leases, lease))?.spec?.holderIdentity || undefined;
    await eventually('an operator that holds the Lease', held, { everyMs: 10, timeoutMs: 60_000 });
    return performance.now();
  }

  get residentMiB(): number {
    const status = readFileSync(`/proc/${this.operator.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }

  /** CPU time of the operator since it started. */
  get cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.operator.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  /** The 99th percentile of its event loop lag since the last call, in ms. */
  async lag(): Promise<number> {
    const page = await (await fetch(this.#metrics)).text();
    const seconds = Number(/^nodejs_eventloop_lag_p99_seconds (\S+)/m.exec(page)?.[1]);
    return seconds * 1000 - LAG_RESOLUTION_MS;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.kubelet.stop();
    await this.#processes.stopAll();
    this.etcd.close();
    await this.admin.transport.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The histogram's own timer, which is part of what it measures. */
const LAG_RESOLUTION_MS = 10;
