/** The operator's own parts in this process, on a clock that can be advanced: an hour of waiting takes seconds. */
import { startControllers } from '../../src/bin/controllers.ts';
import { parseFlags } from '../../src/bin/flags.ts';
import { OUTSIDE } from '../../src/bin/operator.ts';
import { type Process, startStores } from '../../src/bin/stores.ts';
import { EtcdClient } from '../../src/etcd/client.ts';
import { HttpClient } from '../../src/kube/http-client.ts';
import type { Identity } from '../../src/kube/identity.ts';
import { Transport } from '../../src/kube/transport.ts';
import { ApiServerHeartbeat } from '../../src/runtime/heartbeat.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { whenSynced } from '../../src/runtime/manager.ts';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { eventually, pause } from '../../test/support/servers/processes.ts';
import { SkippingClock } from './skipping-clock.ts';

const HOUR_MS = 60 * 60_000;
const STEP_MS = 30_000;
/** A response of etcd takes milliseconds, and the requeue that follows from it is immediate. */
const SETTLE_MS = 50;

export interface Hours {
  /** Resolves when an hour is over and the queue is idle. */
  hour(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts and waits until all work of the start is done. */
export async function startHours(through: Identity, namespace: string): Promise<Hours> {
  const clock = new SkippingClock();
  const over = new AbortController();
  const metrics = createMetrics();
  const process: Process = {
    flags: parseFlags([`--watch-namespace=${namespace}`], {}),
    clock,
    log: createLogger('error'),
    metrics,
    identity: 'bench',
    signal: over.signal,
    heartbeat: new ApiServerHeartbeat(clock),
    ...OUTSIDE,
    parts: { stores: [], optional: [], controllers: [], deadWatches: [], outdated: [] },
  };
  const client = new HttpClient(new Transport(() => Promise.resolve(through)));
  const etcd = new EtcdClient(() => clock.monotonic(), {
    now: () => clock.now(),
    backoff: { firstMs: 500, maxMs: 30_000 },
  });
  const stores = startStores(client, process);
  await whenSynced(process.parts, clock, over.signal);
  const stopControllers = startControllers(client, etcd, stores, process, over.signal);
  const { controllers } = process.parts;
  const idle = (): Promise<true> =>
    eventually(
      'an operator that is at rest',
      () => controllers.every((c) => c.depth === 0 && c.oldestReconcileMs === 0) || undefined,
      { everyMs: 5, seen: () => controllers.map((c) => [c.name, c.depth, c.oldestReconcileMs]) },
    );
  const forward = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      clock.skip(STEP_MS);
      await pause(SETTLE_MS);
      await idle();
    }
  };
  /** An operator that fails before it acts writes nothing either: its hour is no measurement. */
  const failures = async (): Promise<readonly unknown[]> =>
    (await metrics.reconciles.get()).values.filter(({ labels, value }) => labels.result === 'failed' && value > 0);
  await pause(1_000);
  await forward(10 * STEP_MS);
  return {
    hour: async () => {
      await forward(HOUR_MS);
      const failed = await failures();
      if (failed.length > 0) throw new Error(`reconciles of an idle cluster failed: ${JSON.stringify(failed)}`);
    },
    stop: async () => {
      await stopControllers();
      over.abort();
      etcd.close();
      await client.transport.close();
    },
  };
}
