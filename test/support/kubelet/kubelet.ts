/**
 * A minimal kubelet: the command line of each member Pod runs as a local process on its own 127.x.y.z address.
 * No image, no network; volumes are folders that live as long as their PVC.
 */
import type { Pod } from '../../../src/gen/kube.ts';
import { isNotFound } from '../../../src/kube/errors.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { keyOf, pathOf } from '../../../src/kube/object.ts';
import { pods } from '../../../src/kube/resources.ts';
import { watch } from '../../../src/kube/watcher.ts';
import type { Rulebook } from '../faults/grpc-proxy.ts';
import { Addresses } from '../servers/addresses.ts';
import { type Host, Hosts } from '../servers/hosts.ts';
import { type Processes, pause } from '../servers/processes.ts';
import { NODE } from './node-fit.ts';
import { isEtcd } from './pod-process.ts';
import { insist, PodRun, quiet, type Running, refOf, removeFolder, type Site, type Strict } from './pod-run.ts';
import { provision } from './volumes.ts';

export class Kubelet {
  readonly #site: Site;
  readonly #stop = new AbortController();
  readonly #running = new Map<string, PodRun>();
  readonly #fronts = new Map<string, Rulebook>();
  readonly #strict = new Map<string, Strict>();
  readonly #waiting = new Map<string, Pod>();
  /** Of every volume that a Pod of a namespace ever had. */
  readonly #folders = new Map<string, Set<string>>();
  readonly #abandoned = new Set<string>();
  #held = false;

  constructor(client: HttpClient, processes: Processes, folder: string, etcd: string) {
    const addresses = new Addresses();
    const hosts = new Hosts(folder, addresses);
    this.#site = { client, processes, folder, etcd, addresses, hosts, signal: this.#stop.signal };
    void watch({
      client,
      resource: pods,
      signal: this.#stop.signal,
      emit: (event) => {
        if (event.type === 'put') this.#onPod(event.object);
        else if (event.type === 'delete') void this.#end(event.object, true).catch(quiet);
      },
      onError: quiet,
      sleep: (ms) => pause(ms),
      random: Math.random,
    });
  }

  /** Registers the Node object: a Pod on a node that does not exist would count as lost. */
  async register(): Promise<void> {
    const { transport } = this.#site.client;
    await transport.json('/api/v1/nodes', { method: 'POST', body: { metadata: { name: NODE } } });
    const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
    const contentType = 'application/merge-patch+json';
    await transport.json(`/api/v1/nodes/${NODE}/status`, { method: 'PATCH', body, contentType });
  }

  /** Where the API server reaches the kubelet, and the zone of the node. */
  async announce(port: number): Promise<void> {
    const { transport } = this.#site.client;
    const contentType = 'application/merge-patch+json';
    const status = {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    };
    await transport.json(`/api/v1/nodes/${NODE}/status`, { method: 'PATCH', body: { status }, contentType });
    const metadata = { labels: { 'topology.kubernetes.io/zone': 'zone-a' } };
    await transport.json(`/api/v1/nodes/${NODE}`, { method: 'PATCH', body: { metadata }, contentType });
  }

  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** Stops managing Pods; their processes are ended with all others. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#site.addresses.close();
    await Promise.all([...this.#running.values()].map((run) => run.closeFront()));
  }

  /** Where the etcd of a Pod listens. */
  addressOf(namespace: string, pod: string): string | undefined {
    return this.#find(namespace, pod)?.address;
  }

  /** Pods that run, or are to be restarted. */
  running(namespace: string): readonly Running[] {
    const here = [...this.#running.values()].filter(({ pod }) => pod.metadata.namespace === namespace);
    return here.filter((run) => !run.stopping && run.address !== '');
  }

  /** While held, no Pod is started: as on a cluster without a free node. */
  hold(held: boolean): void {
    this.#held = held;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    if (!held) for (const pod of waiting) this.#onPod(pod);
  }

  /** Announces these hosts: their names can be resolved from now on. */
  async expect(hosts: readonly Host[]): Promise<void> {
    for (const host of hosts) await this.#site.hosts.addressOf(host);
  }

  /** A command that can resolve the names of the members of this cluster. */
  around(namespace: string, service: string, command: string, args: readonly string[]): [string, readonly string[]] {
    const [outer, words] = this.#site.hosts.around({ name: '', service, namespace }, command, args);
    return [outer, words];
  }

  /** From now on, clients of the IP in the status of a Pod here reach its etcd through a proxy with these rules. */
  front(namespace: string, rules: Rulebook): void {
    this.#fronts.set(namespace, rules);
  }

  /** From now on, Pods here start only where a real node could start them, and PVCs are bound to volumes. */
  refuse(namespace: string, strict: Strict): void {
    this.#strict.set(namespace, strict);
    provision(this.#site.client, namespace, this.#stop.signal);
  }

  /** A lost disk: kills the process and restarts it with an empty folder; `rebooted` runs the init containers again, too. */
  async loseData(namespace: string, pod: string, how: { readonly rebooted?: true } = {}): Promise<void> {
    const run = this.#find(namespace, pod);
    if (!run) throw new Error(`no Pod ${namespace}/${pod} runs here`);
    await run.loseData(how.rebooted === true);
  }

  /** A test has finished with this namespace: ends its processes, deletes its folders, and starts nothing there any more. */
  async abandon(namespace: string): Promise<void> {
    this.#abandoned.add(namespace);
    const here = [...this.#running.values()].filter(({ pod }) => pod.metadata.namespace === namespace);
    await Promise.all(here.map((run) => run.end('SIGKILL')));
    for (const run of here) this.#running.delete(run.pod.metadata.uid ?? '');
    for (const folder of this.#folders.get(namespace) ?? []) removeFolder(folder);
    this.#folders.delete(namespace);
  }

  #find(namespace: string, name: string): PodRun | undefined {
    return [...this.#running.values()].find((r) => keyOf(r.pod) === `${namespace}/${name}` && !r.stopping);
  }

  #onPod(pod: Pod): void {
    const { uid = '', namespace = '', deletionTimestamp } = pod.metadata;
    if (deletionTimestamp !== undefined) void this.#end(pod, false).catch(quiet);
    else if (this.#running.has(uid) || this.#abandoned.has(namespace) || !isEtcd(pod)) return;
    else if (this.#held) this.#waiting.set(uid, pod);
    else {
      const run = new PodRun(this.#site, pod, this.#fronts.get(namespace), this.#strict.get(namespace));
      this.#running.set(uid, run);
      void run.begin((folder) => this.#note(namespace, folder)).catch(quiet);
    }
  }

  #note(namespace: string, folder: string): void {
    const known = this.#folders.get(namespace) ?? new Set();
    this.#folders.set(namespace, known.add(folder));
  }

  async #end(pod: Pod, deleted: boolean): Promise<void> {
    const { uid = '' } = pod.metadata;
    this.#waiting.delete(uid);
    await this.#running.get(uid)?.end();
    this.#running.delete(uid);
    if (!deleted) await remove(this.#site.client, pod, this.#stop.signal);
  }
}

export async function remove(client: HttpClient, pod: Pod, signal: AbortSignal): Promise<void> {
  const { namespace, name } = refOf(pod);
  const body = { preconditions: { uid: pod.metadata.uid }, gracePeriodSeconds: 0 };
  const ask = () => client.transport.json<unknown>(pathOf(pods, namespace, name), { method: 'DELETE', body });
  await insist(signal, ask).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}
