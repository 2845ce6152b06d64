/** The operator: flags → ports → controllers. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { LEASE_NAME } from '../api/names.ts';
import { SNAPSHOT_AGENT } from '../domain/agent-task.ts';
import { HANDSHAKE_TIMEOUT_MS } from '../domain/timing.ts';
import { EtcdClient } from '../etcd/client.ts';
import { guarded } from '../etcd/guarded.ts';
import { servedFingerprint } from '../etcd/handshake.ts';
import { etcdMetrics } from '../etcd/metrics.ts';
import { type Fence, HttpClient } from '../kube/http-client.ts';
import { identityFromKubeconfig, identityFromPod, readOwnNamespace } from '../kube/kubeconfig.ts';
import { Leadership } from '../kube/lease.ts';
import { type CallReport, Transport } from '../kube/transport.ts';
import { systemKeySource } from '../pki/key-source.ts';
import { systemClock as clock, sleep } from '../runtime/clock.ts';
import { alive, ready } from '../runtime/health.ts';
import { ApiServerHeartbeat } from '../runtime/heartbeat.ts';
import { createLogger, type Logger } from '../runtime/log.ts';
import { missingKinds, serve, whenSynced } from '../runtime/manager.ts';
import { createMetrics, LATENCY, type Metrics } from '../runtime/metrics.ts';
import { baselineMetrics } from './baseline-metrics.ts';
import { startControllers } from './controllers.ts';
import { reportCrashes } from './crash.ts';
import { type Flags, parseFlags, Usage } from './flags.ts';
import { removePermissions } from './obsolete-permissions.ts';
import { whenCurrent } from './outdated-crds.ts';
import { type Parts, type Process, type Stores, startStores } from './stores.ts';

async function leadership(client: HttpClient, { flags, log, identity }: Process): Promise<Leadership | undefined> {
  if (!flags.leaderElect || flags.observeOnly) return undefined;
  const namespace = flags.namespace ?? (await readOwnNamespace());
  if (namespace === undefined) throw new Usage('--leader-elect needs a namespace: set POD_NAMESPACE or --namespace', 2);
  return new Leadership({
    client,
    identity,
    ref: { namespace, name: LEASE_NAME },
    monotonic: () => clock.monotonic(),
    now: () => new Date(clock.now()),
    sleep: (ms, signal) => sleep(clock, ms, signal),
    onError: (error) => log.warn({ error: String(error) }, 'could not renew the Lease'),
  });
}

/** Refuses every write and every change of etcd, also one that no plan has. */
const CLOSED: Fence = { open: () => false, remainingMs: () => 0 };

/** Leads until the process is stopped (0) or loses the Lease (1). */
async function lead(client: HttpClient, stores: Stores, process: Process): Promise<number> {
  const { flags, log, metrics, signal } = process;
  const lease = await leadership(client, process);
  if (lease) {
    log.info('waiting for the lease');
    await lease.acquire(signal);
  }
  metrics.leader.set(flags.observeOnly ? 0 : 1);
  log.info(flags.observeOnly ? 'observing only: nothing is changed' : 'acting');
  const stopActing = new AbortController();
  const acting = AbortSignal.any([signal, stopActing.signal]);
  const etcd = connectEtcd(metrics);
  const fence = flags.observeOnly ? CLOSED : lease;
  const ports = fence ? ([client.guardedBy(fence), guarded(etcd, fence.open)] as const) : ([client, etcd] as const);
  const stopControllers = startControllers(...ports, stores, process, acting);
  if (lease && flags.obsoletePermissions !== undefined) {
    const ref = { name: flags.obsoletePermissions, namespace: lease.namespace };
    void removePermissions(client.guardedBy(lease), ref, { clock, log, signal: acting });
  }
  const end = await (lease?.keep(signal) ?? untilAborted(signal));
  stopActing.abort();
  await Promise.race([stopControllers(), sleep(clock, 5_000, AbortSignal.timeout(5_000))]);
  etcd.close();
  if (end === 'lost') {
    log.error('lost the Lease: another process may be the leader, so this one exits');
    return 1;
  }
  await lease?.release().catch((error: unknown) => log.warn({ error: String(error) }, 'could not release the Lease'));
  return 0;
}

const untilAborted = (signal: AbortSignal): Promise<'leaving'> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve('leaving');
    signal.addEventListener('abort', () => resolve('leaving'), { once: true });
  });

/** Back-off between calls to a member that is unreachable, sends an invalid response or closes the connection. */
const ETCD_BACKOFF = { firstMs: 500, maxMs: 30_000 };

function connectEtcd({ registry }: Metrics): EtcdClient {
  const { onCall, watch } = etcdMetrics(registry, LATENCY);
  const etcd = new EtcdClient(() => clock.monotonic(), { now: () => clock.now(), backoff: ETCD_BACKOFF, onCall });
  watch(() => etcd.sessions());
  return etcd;
}

function connect(flags: Flags, metrics: Metrics, heartbeat: ApiServerHeartbeat): HttpClient {
  const monotonic = (): number => clock.monotonic();
  const source = flags.kubeconfig
    ? identityFromKubeconfig(flags.kubeconfig, process.env, monotonic)
    : identityFromPod(process.env, monotonic);
  const onCall = ({ verb, resource, code, ms }: CallReport): void => {
    if (code > 0) heartbeat.responded();
    metrics.apiRequests.inc({ verb, resource, code });
    metrics.apiSeconds.observe({ verb }, ms / 1000);
  };
  return new HttpClient(new Transport(source, { onCall, monotonic }));
}

/** Serves the probes and the metrics; resolves to a function that closes the servers. */
async function servePages({ flags, metrics, heartbeat, parts }: Process): Promise<() => void> {
  const unsynced = () => parts.stores.filter((s) => !s.synced && !s.missing).map((s) => s.resource.kind);
  const probes = {
    '/healthz': () =>
      alive({
        deadWatches: parts.deadWatches,
        oldestReconcileMs: Math.max(0, ...parts.controllers.map((c) => c.oldestReconcileMs)),
      }),
    '/readyz': () => {
      const { needed: missing, notes } = missingKinds(parts);
      const { sinceResponseMs } = heartbeat;
      const { outdated } = parts;
      return ready({ unsynced: unsynced(), missing, outdated, notes, sinceResponseMs, observeOnly: flags.observeOnly });
    },
  };
  const metricsPage = async () => ({
    code: 200,
    text: `${await metrics.registry.metrics()}\n${await baselineMetrics(metrics.registry)}`,
  });
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

/** The system's random source, and connections to members that read their certificates. */
export const OUTSIDE: Pick<Process, 'keys' | 'handshake'> = {
  keys: systemKeySource,
  handshake: (endpoint, tls) => servedFingerprint(endpoint, tls, HANDSHAKE_TIMEOUT_MS),
};

/** Runs until the signal; resolves to the exit code. */
export async function runOperator(flags: Flags, log: Logger, signal: AbortSignal): Promise<number> {
  const metrics = createMetrics();
  const heartbeat = new ApiServerHeartbeat(clock);
  const client = connect(flags, metrics, heartbeat);
  await client.transport.identity().catch((error: unknown) => {
    throw new Usage(`cannot find the API server: ${error instanceof Error ? error.message : String(error)}`, 2);
  });
  const identity = `${hostname()}_${randomUUID()}`;
  const parts: Parts = { stores: [], optional: [], controllers: [], deadWatches: [], outdated: [] };
  const self: Process = { flags, clock, log, metrics, identity, signal, heartbeat, ...OUTSIDE, parts };
  const stores = startStores(client, self);
  const closePages = await servePages(self);
  void heartbeat.keep(() => client.transport.json('/version', { signal, timeoutMs: 10_000 }), signal);
  try {
    await whenSynced(parts, clock, signal);
    // One that only observes writes no field that could be lost, and runs beside an earlier operator and its CRDs.
    if (!flags.observeOnly)
      await whenCurrent(client.transport, self, (outdated) => {
        parts.outdated = outdated;
      });
    return await lead(client, stores, self);
  } catch (error) {
    if (signal.aborted) return 0;
    throw error;
  } finally {
    closePages();
    await client.transport.close();
  }
}

/** Empty when the file is missing, as it may be outside of Linux. */
function readResolvConf(): string {
  try {
    return readFileSync('/etc/resolv.conf', 'utf8');
  } catch {
    return '';
  }
}

/** The process, with its exit codes and signals. */
export async function main(args: readonly string[]): Promise<number> {
  // Without it V8 keeps the heap of a burst for good: 180 MiB after a hundred new clusters instead of 105. NODE_OPTIONS does not
  // accept this flag.
  setFlagsFromString('--optimize-for-size');
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop.abort());
  try {
    const flags = parseFlags(args, process.env, readResolvConf());
    const log = createLogger(flags.logLevel);
    log.info({ node: process.version, watching: flags.watchNamespaces }, 'starting');
    return await runOperator(flags, log, stop.signal);
  } catch (error) {
    if (!(error instanceof Usage)) throw error;
    process[error.exitCode === 0 ? 'stdout' : 'stderr'].write(`${error.message}\n`);
    return error.exitCode;
  }
}

/** The bundle beside this one: its libraries would cost the operator memory. */
const agentURL = (): string =>
  new URL(import.meta.url.endsWith('.ts') ? 'agent.ts' : 'agent.mjs', import.meta.url).href;

if (import.meta.main && process.argv[2] === SNAPSHOT_AGENT) {
  const { main: agent } = (await import(agentURL())) as { readonly main: () => Promise<never> };
  await agent();
}
if (import.meta.main) {
  reportCrashes();
  process.exit(await main(process.argv.slice(2)));
}
