/** One Pod on its (only) node: its process, which is restarted whenever it ends, and the reported status. */
import { mkdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:net';
import type { ContainerState, Pod } from '../../../src/gen/kube.ts';
import { ApiError, isConflict } from '../../../src/kube/errors.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { pathOf, type Ref } from '../../../src/kube/object.ts';
import { persistentVolumeClaims, pods } from '../../../src/kube/resources.ts';
import { type GrpcProxy, type Rulebook, startGrpcProxy } from '../faults/grpc-proxy.ts';
import type { Addresses } from '../servers/addresses.ts';
import { claimFolder } from '../servers/agent-place.ts';
import type { Host, Hosts } from '../servers/hosts.ts';
import { type Child, eventually, type Processes, pause } from '../servers/processes.ts';
import { missingImage, NODE, unschedulable } from './node-fit.ts';
import { runBefore } from './pod-init.ts';
import { argumentsOf, environment, podStatus, type Reported, readinessURL, readyFor } from './pod-process.ts';
import { type Mounts, mountSecrets } from './pod-secrets.ts';
import { forwardPort, type PortTls, portTls, proxyTls } from './pod-tls.ts';

/** One Pod's process. */
export interface Running {
  readonly pod: Pod;
  /** Where etcd listens. */
  readonly address: string;
  readonly data: string;
  readonly child: Child | undefined;
  /** Its process runs, whether it serves or not. */
  readonly alive: boolean;
  readonly ready: boolean;
  /** The TLS of one of its ports; `undefined` when it is plain. */
  tls(port: 'client' | 'peer'): PortTls | undefined;
}

const STARTING_POLL_MS = 50;
const READY_POLL_MS = 500;
const RESTART_MS = 300;
const INSIST_MS = 500;
const MAX_DOUBLINGS = 5;
const MOUNT_MS = 600_000;
const LAST_WORDS = 2_048;

/** A node that refuses Pods as real ones do: by scheduling, missing images, PVCs that are being deleted, and back-off. */
export interface Strict {
  /** All images that exist. */
  readonly images: readonly string[];
}

export interface Site {
  readonly client: HttpClient;
  readonly processes: Processes;
  readonly folder: string;
  readonly etcd: string;
  readonly addresses: Addresses;
  readonly hosts: Hosts;
  readonly signal: AbortSignal;
}

/** Ignores errors after the end of a test, or after the deletion of a Pod. */
export const quiet = (): void => {};

export const refOf = (pod: Pod): Ref => ({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name ?? '' });
const now = (): string => new Date().toISOString();

export class PodRun implements Running {
  readonly #site: Site;
  readonly #rules: Rulebook | undefined;
  readonly #strict: Strict | undefined;
  readonly #host: Host;
  readonly pod: Pod;
  address = '';
  data = '';
  child: Child | undefined;
  alive = false;
  stopping = false;
  #front: GrpcProxy | undefined;
  /** The operator examines the certificate that a member serves to its peers. */
  #peerFront: Server | undefined;
  #lost = false;
  #rebooted = false;
  #mounts: Mounts = {};
  #ending: Promise<void> | undefined;
  #reported: Reported = { podIP: '', startedAt: now(), ready: false, readySince: now(), restarts: 0, state: {} };

  constructor(site: Site, pod: Pod, rules: Rulebook | undefined, strict: Strict | undefined) {
    this.#site = site;
    this.pod = pod;
    this.#rules = rules;
    this.#strict = strict;
    const { hostname = '', subdomain = '' } = pod.spec ?? {};
    this.#host = { name: hostname, service: subdomain, namespace: refOf(pod).namespace };
  }

  get ready(): boolean {
    return this.#reported.ready;
  }

  /** Runs until the Pod is deleted: its process is restarted whenever it ends. */
  async begin(onData: (folder: string) => void): Promise<void> {
    const { client, addresses, hosts, signal } = this.#site;
    if (this.#strict && !(await this.#mayStart(this.#strict))) return;
    await bind(client, this.pod, signal);
    this.data = await dataFolder(client, this.#site.folder, this.pod);
    onData(this.data);
    const over = (): boolean => this.stopping || signal.aborted;
    this.#mounts = await mountSecrets(client, this.#site.folder, this.pod, over);
    this.address = await hosts.addressOf(this.#host);
    const podIP = this.#rules ? await this.#openFront(await addresses.next(), this.#rules) : this.address;
    this.#reported = { ...this.#reported, podIP };
    await this.#before(over);
    for (let failed = 0; !this.stopping && !signal.aborted; ) {
      await this.#start(podIP);
      failed = (await this.child?.ended) === null || this.ready ? 0 : failed + 1; // null: a signal ended it
      await this.#ended();
      await pause(RESTART_MS * (this.#strict ? 2 ** Math.min(failed, MAX_DOUBLINGS) : 1));
      if (this.#lost) emptyFolder(this.data);
      this.#lost = false;
      if (this.#rebooted) await this.#before(over);
      this.#rebooted = false;
    }
  }

  /** What it waits for in vain lasts until it is deleted: the spec of a Pod does not change. */
  async #mayStart({ images }: Strict): Promise<boolean> {
    const message = unschedulable(this.pod);
    if (message !== undefined) {
      await this.#report({ unschedulable: message });
      return false;
    }
    const { client, signal } = this.#site;
    const name = claimOf(this.pod);
    // A scheduler binds no Pod to a PVC that is being deleted: the Pod would keep it from ever being deleted.
    const isMountable = async (): Promise<true | undefined> => {
      const claim = name && (await client.get(persistentVolumeClaims, { ...refOf(this.pod), name }));
      const usable = !name || (claim && claim.metadata.deletionTimestamp === undefined);
      return usable || this.stopping || signal.aborted ? true : undefined;
    };
    await eventually(`the PVC ${name}`, isMountable, { timeoutMs: MOUNT_MS, everyMs: STARTING_POLL_MS });
    const image = missingImage(this.pod, images);
    if (this.stopping || image === undefined) return !this.stopping;
    await bind(client, this.pod, signal);
    const waiting = { reason: 'ImagePullBackOff', message: `Back-off pulling image "${image}": not found` };
    await this.#report({ state: { waiting } });
    return false;
  }

  /** Runs the init containers, with the current spec of the Pod. */
  async #before(over: () => boolean): Promise<void> {
    const pod = await this.#present();
    await runBefore(this.#site, pod, { data: this.data, over, report: (init) => this.#report({ init }) });
  }

  async #present(): Promise<Pod> {
    const { client, signal } = this.#site;
    return (await insist(signal, () => client.get(pods, refOf(this.pod)))) ?? this.pod;
  }

  /** Resolves when its process has ended, also for a second caller. */
  end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#ending ??= this.#end(signal);
    return this.#ending;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.stopping = true;
    await this.child?.stop(signal);
    await this.closeFront();
    if (!claimOf(this.pod) && this.data) removeFolder(this.data);
  }

  async closeFront(): Promise<void> {
    this.#peerFront?.close();
    await this.#front?.close();
  }

  async loseData(rebooted: boolean): Promise<void> {
    this.#lost = true;
    this.#rebooted = rebooted;
    await this.child?.stop('SIGKILL');
  }

  tls(port: 'client' | 'peer'): PortTls | undefined {
    return portTls(this.#arguments(this.pod, ''), port);
  }

  async #openFront(host: string, rules: Rulebook): Promise<string> {
    const tls = this.tls('client');
    const target = `${tls ? 'https' : 'http'}://${this.address}:2379`;
    this.#front = await startGrpcProxy({ target, host, port: 2379, rules, ...(tls && proxyTls(tls)) });
    if (tls) this.#peerFront = await forwardPort(host, this.address, 2380);
    return host;
  }

  #arguments(pod: Pod, podIP: string): readonly string[] {
    return argumentsOf(pod, { address: this.address, data: this.data, podIP, mounts: this.#mounts });
  }

  async #start(podIP: string): Promise<void> {
    const { processes, hosts, etcd } = this.#site;
    const pod = await this.#present();
    if (this.stopping) return;
    const [command, words] = hosts.around(this.#host, etcd, this.#arguments(pod, podIP));
    // Processes are killed here, machines are not: what was written survives without fsync.
    const env = { ...process.env, ETCD_UNSAFE_NO_FSYNC: 'true', ...environment(pod, podIP) };
    const child = processes.start(refOf(pod).name, command, words, env);
    this.child = child;
    this.alive = true;
    void child.ended.then(() => {
      this.alive = false;
    });
    const { restarts, lastState } = this.#reported;
    await this.#report({ restarts: lastState ? restarts + 1 : 0, state: { running: { startedAt: now() } } });
    void this.#watchReadiness(child);
  }

  async #ended(): Promise<void> {
    if (this.stopping || this.#site.signal.aborted) return;
    const exitCode = (await this.child?.ended) ?? 137;
    const message = this.child?.log().slice(-LAST_WORDS) ?? ''; // what FallbackToLogsOnError keeps
    const terminated: ContainerState = { terminated: { exitCode, reason: 'Error', finishedAt: now(), message } };
    await this.#report({
      ready: false,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: terminated,
    });
  }

  async #watchReadiness(child: Child): Promise<void> {
    let over = false;
    void child.ended.then(() => {
      over = true;
    });
    const done = (): boolean => over || this.stopping || this.#site.signal.aborted;
    let failures = 0;
    while (!done()) {
      const url = readinessURL(this.pod, this.address);
      const serves = await fetch(url, { signal: AbortSignal.timeout(1000) }).then(
        (answer) => answer.ok,
        () => false,
      );
      failures = serves ? 0 : failures + 1;
      const ready = serves || (this.ready && failures < readyFor(this.pod));
      if (ready !== this.ready && !done()) await this.#report({ ready }).catch(quiet);
      await pause(ready ? READY_POLL_MS : STARTING_POLL_MS);
    }
  }

  async #report(change: Partial<Reported>): Promise<void> {
    const before = this.#reported;
    const readySince = (change.ready ?? before.ready) === before.ready ? before.readySince : now();
    this.#reported = { ...before, ...change, readySince };
    const { client, signal } = this.#site;
    const { uid } = this.pod.metadata;
    await insist(signal, () => {
      const body = { metadata: { uid }, status: podStatus(this.pod, this.#reported) }; // read at the time of the write
      return client.patch(pods, refOf(this.pod), body, { subresource: 'status' });
    });
  }
}

/** Retries while the server does not respond, as kubelets do: a status that is sent only once may be lost for ever. */
export async function insist<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await ask();
    } catch (error) {
      const refused = error instanceof ApiError && error.code >= 400 && error.code < 500 && error.code !== 429;
      if (refused || signal.aborted) throw error;
      await pause(INSIST_MS);
    }
}

/** From the binding on a delete is graceful: the Pod exists until its process has ended. */
export async function bind(client: HttpClient, pod: Pod, signal: AbortSignal): Promise<void> {
  if (pod.spec?.nodeName) return;
  const { namespace, name } = refOf(pod);
  const path = `${pathOf(pods, namespace, name)}/binding`;
  const body = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name, namespace },
    target: { kind: 'Node', name: NODE },
  };
  await insist(signal, () => client.transport.json<unknown>(path, { method: 'POST', body })).catch(
    async (error: unknown) => {
      // The first attempt may have been carried out.
      if (!isConflict(error) || !(await client.get(pods, { namespace, name }))?.spec?.nodeName) throw error;
    },
  );
}

const claimOf = (pod: Pod): string | undefined =>
  pod.spec?.volumes?.find((v) => v.name === 'data')?.persistentVolumeClaim?.claimName;

/** A PVC keeps its folder as long as it exists; a new PVC of the same name starts empty, and so does every Pod without one. */
async function dataFolder(client: HttpClient, folder: string, pod: Pod): Promise<string> {
  const name = claimOf(pod);
  const { namespace } = refOf(pod);
  const owner = name
    ? await eventually(`the PVC ${name}`, () => client.get(persistentVolumeClaims, { namespace, name }))
    : pod;
  const path = claimFolder(folder, owner);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}

export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true });

function emptyFolder(folder: string): void {
  removeFolder(folder);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}
