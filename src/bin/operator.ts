/** The operator: flags → ports → controllers. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import { CLUSTER_LABEL, LEASE_NAME, MANAGED_SELECTOR } from '../api/names.ts';
import { clusterBrain, clusterResource, wireCluster } from '../cluster/controller.ts';
import { EtcdClient } from '../etcd/client.ts';
import { EventRecorder } from '../kube/events.ts';
import { HttpClient } from '../kube/http-client.ts';
import { identityFromKubeconfig, identityFromPod, readOwnNamespace } from '../kube/kubeconfig.ts';
import { Leadership } from '../kube/lease.ts';
import type { Resource } from '../kube/object.ts';
import { persistentVolumeClaims, podDisruptionBudgets, pods, services } from '../kube/resources.ts';
import { type AnyStore, Store } from '../kube/store.ts';
import { type CallReport, Transport } from '../kube/transport.ts';
import { memberBrain, memberResource, wireMember } from '../member/controller.ts';
import { systemClock as clock, sleep } from '../runtime/clock.ts';
import { Controller } from '../runtime/controller.ts';
import { alive, ready } from '../runtime/health.ts';
import { createLogger, type Logger } from '../runtime/log.ts';
import { serve, startCache, whenSynced } from '../runtime/manager.ts';
import { createMetrics, type Metrics } from '../runtime/metrics.ts';
import { Pulse } from '../runtime/pulse.ts';
import { type Flags, parseFlags, Usage } from './flags.ts';

const now = (): number => clock.now();
const RESOURCES: ReadonlyMap<string, Resource> = new Map(
  [clusterResource, memberResource, pods, services, persistentVolumeClaims, podDisruptionBudgets].map((r: Resource) => [
    r.kind,
    r,
  ]),
);

interface Process {
  readonly flags: Flags;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Who writes, in Leases and Events. */
  readonly identity: string;
  /** Aborts when the process is to end. */
  readonly signal: AbortSignal;
  readonly pulse: Pulse;
  /** What the probes are answered from, as far as it exists yet. */
  readonly parts: Parts;
}

interface Parts {
  stores: readonly AnyStore[];
  controllers: readonly { readonly name: string; readonly depth: number; readonly oldestPassMs: number }[];
  readonly deadWatches: string[];
}

interface Stores {
  readonly clusters: Store<EtcdCluster>;
  readonly members: Store<EtcdMember>;
  readonly services: Store<NonNullable<(typeof services)['object']>>;
  readonly pods: Store<NonNullable<(typeof pods)['object']>>;
  readonly volumes: Store<NonNullable<(typeof persistentVolumeClaims)['object']>>;
  readonly budgets: Store<NonNullable<(typeof podDisruptionBudgets)['object']>>;
}

function startStores(client: HttpClient, process: Process): Stores {
  const { flags, log, signal, metrics, pulse, parts } = process;
  const namespaces = flags.watchNamespaces;
  const stores: Stores = {
    clusters: new Store(clusterResource, namespaces),
    members: new Store(memberResource, namespaces, [CLUSTER_LABEL]),
    services: new Store(services, namespaces),
    pods: new Store(pods, namespaces),
    volumes: new Store(persistentVolumeClaims, namespaces),
    budgets: new Store(podDisruptionBudgets, namespaces),
  };
  const onDead = (kind: string, error: unknown): void => {
    log.error({ kind, error: String(error) }, 'a watch has ended: this is a bug');
    parts.deadWatches.push(kind);
  };
  const options = { client, clock, log, signal, metrics, pulse, onDead };
  const ours = { ...options, selector: MANAGED_SELECTOR };
  startCache(stores.clusters, options);
  startCache(stores.members, options);
  startCache(stores.services, ours);
  startCache(stores.pods, ours);
  startCache(stores.volumes, ours);
  startCache(stores.budgets, ours);
  parts.stores = Object.values(stores) as AnyStore[];
  return stores;
}

/** Starts both controllers; the answer stops them and waits for what they are doing. */
function startControllers(
  client: HttpClient,
  stores: Stores,
  process: Process,
  signal: AbortSignal,
): () => Promise<void> {
  const { flags, log, metrics, identity, parts } = process;
  const etcd = new EtcdClient(() => clock.monotonic(), {
    onCall: ({ method, outcome, ms }) => {
      metrics.etcdCalls.inc({ method, outcome });
      metrics.etcdSeconds.observe({ method }, ms / 1000);
    },
  });
  const onError = (error: unknown): void => log.warn({ error: String(error) }, 'an Event was not written');
  const recorder = new EventRecorder({ client, controller: 'etcd-operator', instance: identity, now, onError });
  const options = { client, recorder, resources: RESOURCES, clock, log, metrics, stores: parts.stores, signal };
  const images = { repository: flags.etcdImageRepository, allowed: flags.etcdImageAllowed };
  const ports = { client, etcd, now, images, ...stores };
  const cluster = new Controller(clusterBrain(ports), options);
  const member = new Controller(memberBrain(ports), options);
  parts.controllers = [cluster, member];
  metrics.gauges(parts);
  wireCluster(ports, (key) => cluster.enqueue(key));
  wireMember(ports, (key) => member.enqueue(key));
  for (const object of stores.clusters.all()) cluster.enqueue(`${object.metadata.namespace}/${object.metadata.name}`);
  for (const object of stores.members.all()) member.enqueue(`${object.metadata.namespace}/${object.metadata.name}`);
  return async () => {
    await Promise.all([cluster.stop(), member.stop()]);
    await recorder.flush();
    etcd.close();
  };
}

async function leadership(client: HttpClient, { flags, log, identity }: Process): Promise<Leadership | undefined> {
  if (!flags.leaderElect) return undefined;
  const namespace = flags.namespace ?? (await readOwnNamespace());
  if (namespace === undefined) throw new Usage('--leader-elect needs a namespace: set POD_NAMESPACE or --namespace', 2);
  return new Leadership({
    client,
    identity,
    ref: { namespace, name: LEASE_NAME },
    monotonic: () => clock.monotonic(),
    now: () => new Date(clock.now()),
    sleep: (ms, signal) => sleep(clock, ms, signal),
    onError: (error) => log.warn({ error: String(error) }, 'the lease could not be renewed'),
  });
}

/** Until the process is told to end (0), or must not act any more (1). */
async function lead(client: HttpClient, stores: Stores, process: Process): Promise<number> {
  const { log, metrics, signal } = process;
  const lease = await leadership(client, process);
  if (lease) {
    log.info('waiting for the lease');
    await lease.acquire(signal);
  }
  metrics.leader.set(1);
  log.info('acting');
  const stopActing = new AbortController();
  const acting = AbortSignal.any([signal, stopActing.signal]);
  const stopControllers = startControllers(lease ? client.guardedBy(lease) : client, stores, process, acting);
  const end = await (lease?.keep(signal) ?? untilAborted(signal));
  stopActing.abort();
  await Promise.race([stopControllers(), sleep(clock, 5_000, AbortSignal.timeout(5_000))]);
  if (end === 'lost') {
    log.error('the lease was lost: another process may be acting, so this one ends');
    return 1;
  }
  await lease?.release().catch((error: unknown) => log.warn({ error: String(error) }, 'the lease was not released'));
  return 0;
}

const untilAborted = (signal: AbortSignal): Promise<'leaving'> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve('leaving');
    signal.addEventListener('abort', () => resolve('leaving'), { once: true });
  });

function connect(flags: Flags, metrics: Metrics, pulse: Pulse): HttpClient {
  const monotonic = (): number => clock.monotonic();
  const source = flags.kubeconfig
    ? identityFromKubeconfig({ files: [flags.kubeconfig], env: process.env, monotonic })
    : identityFromPod(process.env, monotonic);
  const onCall = ({ verb, resource, code, ms }: CallReport): void => {
    if (code > 0) pulse.heard();
    metrics.apiRequests.inc({ verb, resource, code });
    metrics.apiSeconds.observe({ verb }, ms / 1000);
  };
  return new HttpClient(new Transport(source, { onCall, monotonic }));
}

/** Resolves to what closes them. */
async function servePages({ flags, metrics, pulse, parts }: Process): Promise<() => void> {
  const unsynced = (): readonly string[] => parts.stores.filter((s) => !s.synced).map((s) => s.resource.kind);
  const probes = {
    '/healthz': () =>
      alive({
        deadWatches: parts.deadWatches,
        oldestPassMs: Math.max(0, ...parts.controllers.map((c) => c.oldestPassMs)),
      }),
    '/readyz': () => ready({ unsynced: unsynced(), silentMs: pulse.silentMs }),
  };
  const metricsPage = async () => ({ code: 200, text: await metrics.registry.metrics() });
  const servers = await Promise.all([
    serve(flags.healthProbeBindAddress, probes),
    serve(flags.metricsBindAddress, { '/metrics': metricsPage }),
  ]);
  return () => {
    for (const server of servers) {
      server?.closeAllConnections();
      server?.close();
    }
  };
}

/** Runs until the signal; resolves to the exit code. */
export async function runOperator(flags: Flags, log: Logger, signal: AbortSignal): Promise<number> {
  const metrics = createMetrics();
  const pulse = new Pulse(clock);
  const client = connect(flags, metrics, pulse);
  await client.transport.identity().catch((error: unknown) => {
    throw new Usage(
      `cannot tell where the API server is: ${error instanceof Error ? error.message : String(error)}`,
      2,
    );
  });
  const identity = `${hostname()}_${randomUUID()}`;
  const parts: Parts = { stores: [], controllers: [], deadWatches: [] };
  const self: Process = { flags, log, metrics, identity, signal, pulse, parts };
  const stores = startStores(client, self);
  const closePages = await servePages(self);
  void pulse.keep(() => client.transport.json('/version', { signal, timeoutMs: 10_000 }), signal);
  try {
    await whenSynced(parts.stores, clock, signal);
    return await lead(client, stores, self);
  } catch (error) {
    if (signal.aborted) return 0;
    throw error;
  } finally {
    closePages();
    await client.transport.close();
  }
}

/** The process: everything about exit codes and signals is here. */
export async function main(args: readonly string[]): Promise<number> {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop.abort());
  try {
    const flags = parseFlags(args, process.env);
    const log = createLogger(flags.logLevel);
    log.info({ node: process.version, watching: flags.watchNamespaces }, 'starting');
    return await runOperator(flags, log, stop.signal);
  } catch (error) {
    if (!(error instanceof Usage)) throw error;
    process[error.exitCode === 0 ? 'stdout' : 'stderr'].write(`${error.message}\n`);
    return error.exitCode;
  }
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));
