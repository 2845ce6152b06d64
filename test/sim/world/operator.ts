/** One operator process: the real caches and controllers, on servers that respond at random moments. */

import { Registry } from 'prom-client';
import { startControllers } from '../../../src/bin/controllers.ts';
import { parseFlags } from '../../../src/bin/flags.ts';
import { type Parts, type Process, startStores } from '../../../src/bin/stores.ts';
import type { Etcd } from '../../../src/etcd/client.ts';
import { guarded } from '../../../src/etcd/guarded.ts';
import type { Client } from '../../../src/kube/client.ts';
import { sleep } from '../../../src/runtime/clock.ts';
import { ApiServerHeartbeat } from '../../../src/runtime/heartbeat.ts';
import { createLogger, type Logger } from '../../../src/runtime/log.ts';
import { whenSynced } from '../../../src/runtime/manager.ts';
import { createMetrics, type Metrics } from '../../../src/runtime/metrics.ts';
import type { Ground } from './ground.ts';
import type { LeaseModel } from './lease.ts';

export const FLAGS = parseFlags(['--operator-image=registry.local/operator:v1'], {});
/** The same metrics for every process: no test reads them, and new ones for each process would only cost time. */
const METRICS: Metrics = {
  ...createMetrics(),
  get registry() {
    return new Registry(); // a name can be registered once
  },
  gauges: () => undefined,
  timestamps: () => undefined,
};
const SILENT = createLogger('silent');
const RETRY_MS = 2_000;

export interface Surroundings {
  readonly ground: Ground;
  readonly lease: LeaseModel;
  readonly client: (self: OperatorProcess) => Client;
  readonly etcd: (self: OperatorProcess) => Etcd;
  readonly keys: Process['keys'];
  readonly handshake: (self: OperatorProcess) => Process['handshake'];
}

export class OperatorProcess {
  readonly name: string;
  dead = false;
  acting = false;
  readonly #around: Surroundings;
  readonly #ended = new AbortController();

  constructor(name: string, around: Surroundings) {
    this.name = name;
    this.#around = around;
    void this.#run();
  }

  async #run(): Promise<void> {
    const { ground, lease, client, etcd, keys } = this.#around;
    const { signal } = this.#ended;
    const clock = ground.timeline.clockOf(this, ground.random);
    const parts: Parts = { stores: [], optional: [], controllers: [], deadWatches: [], outdated: [] };
    const log = ground.story ? storyteller(ground, this.name) : SILENT;
    const heartbeat = new ApiServerHeartbeat(clock);
    const handshake = this.#around.handshake(this);
    const process = { clock, log, identity: this.name, signal, heartbeat, parts };
    const self: Process = { ...process, flags: FLAGS, metrics: METRICS, keys, handshake };
    const port = client(this);
    const stores = startStores(port, self);
    try {
      await whenSynced(parts, clock, signal);
      while (!lease.take(this)) {
        await sleep(clock, RETRY_MS, signal);
        signal.throwIfAborted();
      }
    } catch (error) {
      if (this.dead) return; // killed while it was starting
      throw error;
    }
    ground.tell(() => `${this.name} holds the Lease`);
    this.acting = true;
    startControllers(
      port,
      guarded(etcd(this), () => lease.mayWrite(this)),
      stores,
      self,
      signal,
    );
  }

  /** Kills the process: nothing that it was about to do happens, unless the request was already sent. */
  kill(): void {
    if (this.dead) return;
    this.dead = true;
    this.acting = false;
    this.#around.lease.stopRenewing(this);
    this.#ended.abort();
  }

  /** Frozen like a process whose machine hangs: it will continue where it stopped. */
  freeze(): void {
    this.#around.lease.stopRenewing(this);
    this.#around.ground.timeline.stop(this);
  }
  /** False when another replica may hold the Lease by now: then it exits by itself, after what it does before it notices. */
  thaw(): boolean {
    this.#around.ground.timeline.resume(this);
    return this.#around.lease.speaks(this);
  }
}

/** The operator's log lines become part of the story. */
function storyteller(ground: Ground, name: string): Logger {
  const line = (fields: unknown, text?: string): void => {
    const { rule, why, steps, error, key } = fields as Readonly<Record<string, unknown>>;
    const parts = [
      key,
      rule,
      why,
      error,
      Array.isArray(steps) && steps.length > 0 ? `→ ${steps.join(', ')}` : undefined,
    ];
    ground.tell(() => `${name}: ${parts.filter(Boolean).join(' | ') || text}`);
  };
  const quiet = (): void => undefined;
  return { info: line, warn: line, error: line, debug: quiet } as unknown as Logger;
}
