/** The reconcile loop of one controller: observe, decide, execute; never two reconciles of one key at a time. */
import { ApiError, isNotLeading } from '../kube/errors.ts';
import { isAtLeast, type Resource, refKey } from '../kube/object.ts';
import type { AnyStore } from '../kube/store.ts';
import { mergePatch } from '../lib/merge-patch.ts';
import { deadline } from './clock.ts';
import { changesOf } from './compose.ts';
import { type Executed, type ExecuteOptions, execute, isStale, type Subject, type Write } from './execute.ts';
import { Failures } from './failures.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import { type Memory, type NamedCall, type Plan, RetryLater, stepTarget } from './plan.ts';
import { type Priority, Queue } from './queue.ts';

/** The part of a controller that is specific to its kind. */
export interface Reconciler<Observed, Status extends object, Call extends NamedCall = never> {
  readonly name: string;
  readonly resource: Resource<Subject<Status>>;
  /** Reads all facts for one key; `undefined` when the object is deleted. `memory`: which steps of earlier reconciles failed. */
  readonly observe: (key: string, signal: AbortSignal, memory: Memory) => Promise<Observed | undefined>;
  readonly subject: (observed: Observed) => Subject<Status>;
  readonly decide: (observed: Observed) => Plan<Status, Call>;
  /**
   * Whether a plan may be executed, asked when nothing else can come between. For limits that several objects share; false: the
   * object is reconciled again, and observes that the limit was reached meanwhile.
   */
  readonly admit?: (observed: Observed, plan: Plan<Status, Call>) => boolean;
  /** Executes the calls of its plans. */
  readonly call?: (call: Call, signal: AbortSignal) => Promise<void>;
  /** Whether two statuses differ only in messages, which no client waits for: such a change is coalesced with the next one. */
  readonly isMinor?: (before: Status, after: Status) => boolean;
  /** Whether these status changes, written from a stale cache, would lead to a wrong decision. Latches always do. */
  readonly needsVersion?: (observed: Observed, changes: Partial<Status>) => boolean;
  /**
   * Kinds that only upkeep writes and reads. A late watch of one of them delays the rows of upkeep that write it, and no
   * other rule: a Service must not keep a member from being repaired.
   */
  readonly upkeepKinds?: readonly string[];
  /** Removes what the reconciler keeps in memory for a deleted object. */
  readonly forget?: (key: string) => void;
}

export interface ControllerOptions
  extends Omit<ExecuteOptions, 'onWrite' | 'call' | 'shouldCoalesce' | 'needsVersion'> {
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The caches that a reconcile reads from. */
  readonly stores: readonly AnyStore[];
  /** Plans are logged and counted, and not executed. */
  readonly observeOnly?: boolean;
}

export const RECONCILE_DEADLINE_MS = 30_000;
/** Enough to keep an API server busy, and few enough that the event loop handles a response for each within milliseconds. */
const CONCURRENCY = 24;
const SLOW_AFTER_MS = 200;
/** 96 of them for one namespace: see the queue. */
const MAX_RUNNING = 128;
const BACKOFF = { firstMs: 100, maxMs: 60_000 };
/** The watch of an upkeep kind usually shows a write within milliseconds: waiting saves a reconcile. */
const UPKEEP_BARRIER_MS = 500;
/**
 * A message-only status change is written with the next real one, or after this time. The message of a cluster repeats those
 * of its members, so it is at most twice as old. Creating three members takes 5 to 16 s and reports ten messages meanwhile.
 */
const COALESCE_MS = 10_000;
/** With `observeOnly`, nothing comes of a plan: polled more often, the same one would be decided again and again. */
const OBSERVE_ONLY_MS = 30_000;

/** What a reconcile wrote to one kind. */
interface Footprint {
  readonly namespace: string;
  /** The newest resourceVersion; the response to a patch that changed nothing has an older one. */
  readonly version: string | undefined;
  readonly deleted: readonly { readonly name: string; readonly uid: string }[];
}

const withWrite = (before: Footprint | undefined, write: Write): Footprint => {
  const { namespace, resourceVersion, deleted } = write;
  const [old, fresh] = [before?.version, resourceVersion];
  const version = old === undefined || (fresh !== undefined && isAtLeast(fresh, old)) ? fresh : old;
  return { namespace, version, deleted: [...(before?.deleted ?? []), ...(deleted ? [deleted] : [])] };
};

export class Controller<Observed, Status extends object, Call extends NamedCall> {
  readonly #reconciler: Reconciler<Observed, Status, Call>;
  readonly #options: ControllerOptions;
  readonly #queue: Queue;
  /** Per key, what its last reconcile wrote: the next one starts only when the caches have observed it. */
  readonly #written = new Map<string, Map<AnyStore, Footprint>>();
  readonly #lastRule = new Map<string, string>();
  readonly #failures: Failures;
  /** Per key, by when a message-only change of its status is written. */
  readonly #coalesced = new Map<string, number>();

  constructor(reconciler: Reconciler<Observed, Status, Call>, options: ControllerOptions) {
    this.#reconciler = reconciler;
    this.#options = options;
    const { clock, metrics } = options;
    this.#failures = new Failures(clock);
    this.#queue = new Queue({
      clock,
      concurrency: CONCURRENCY,
      slowAfterMs: SLOW_AFTER_MS,
      maxRunning: MAX_RUNNING,
      backoff: BACKOFF,
      work: (key, onObserve) => this.#reconcile(key, onObserve),
      retryAfterMs: (error) => (error instanceof ApiError ? error.retryAfterMs : undefined),
      onStart: (waitedMs) => metrics.queueSeconds.observe({ controller: reconciler.name }, waitedMs / 1000),
    });
  }

  get name(): string {
    return this.#reconciler.name;
  }
  get depth(): number {
    return this.#queue.depth;
  }
  /** How long the oldest of the running reconciles has been running. */
  get oldestReconcileMs(): number {
    return this.#queue.oldestReconcileMs;
  }

  enqueue(key: string, priority: Priority = 'normal'): void {
    this.#queue.add(key, priority);
  }

  stop(): Promise<void> {
    return this.#queue.stop();
  }

  async #reconcile(key: string, onObserve: () => void): Promise<number | undefined> {
    const { clock, metrics, signal } = this.#options;
    const started = clock.monotonic();
    const { signal: limit, cancel } = deadline(clock, RECONCILE_DEADLINE_MS, signal);
    let rule = 'observe';
    let result = 'ok';
    try {
      const unconfirmed = await this.#barrier(key, limit);
      onObserve();
      const memory = { failures: this.#failures.of(key), unconfirmed };
      const observed = await this.#reconciler.observe(key, limit, memory);
      if (observed === undefined) return this.#removeKey(key);
      const decided = this.#reconciler.decide(observed);
      rule = decided.rule;
      const isNew = this.#logDecision(key, decided);
      if (this.#options.observeOnly) return this.#onlyCount(decided, isNew);
      const heldMs = this.#failures.heldForMs(key, decided);
      const plan = heldMs > 0 ? withoutSteps(decided, this.#reconciler.subject(observed).status) : decided;
      if (this.#reconciler.admit?.(observed, plan) === false) return 0;
      const executed = await this.#execute(key, plan, observed, limit);
      const next = this.#failures.record(key, plan, executed, heldMs);
      this.#logUpkeep(key, executed);
      if (executed.dropped) this.#options.log.warn({ controller: this.name, key, rule }, executed.dropped.message);
      if (next.error) throw next.error;
      return this.#requeueAfterMs(key, [next.afterMs, plan.requeueAfterMs]);
    } catch (error) {
      result = isStale(error) ? 'stale' : 'failed';
      return this.#failed(key, rule, error);
    } finally {
      cancel();
      metrics.reconciles.inc({ controller: this.name, rule, result });
      metrics.reconcileSeconds.observe({ controller: this.name }, (clock.monotonic() - started) / 1000);
    }
  }

  /**
   * Waits until the caches have observed our own writes: a stale cache would lead to the same write twice. Returns the kinds
   * of upkeep whose cache is late.
   */
  async #barrier(key: string, signal: AbortSignal): Promise<readonly string[]> {
    const footprints = this.#written.get(key);
    if (!footprints) return [];
    const late: string[] = [];
    for (const [store, footprint] of footprints) {
      const { kind } = store.resource;
      if (!this.#reconciler.upkeepKinds?.includes(kind)) await confirmed(store, footprint, signal);
      else if (!(await this.#isConfirmedSoon(store, footprint, signal))) {
        late.push(kind);
        continue;
      }
      footprints.delete(store);
    }
    if (footprints.size === 0) this.#written.delete(key);
    return late;
  }

  async #isConfirmedSoon(store: AnyStore, footprint: Footprint, signal: AbortSignal): Promise<boolean> {
    const { signal: limit, cancel } = deadline(this.#options.clock, UPKEEP_BARRIER_MS, signal);
    try {
      await confirmed(store, footprint, limit);
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      return false;
    } finally {
      cancel();
    }
  }

  /** The earliest of these delays, and in time for a coalesced status write. */
  #requeueAfterMs(key: string, delays: readonly (number | undefined)[]): number | undefined {
    const by = this.#coalesced.get(key);
    const left = by === undefined ? undefined : Math.max(0, by - this.#options.clock.monotonic());
    const known = [...delays, left].filter((ms) => ms !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  }

  /** Whether this is a message-only status change that has waited for less than COALESCE_MS. */
  #shouldCoalesce(key: string, before: Status | undefined, after: Status): boolean {
    const now = this.#options.clock.monotonic();
    const by = this.#coalesced.get(key) ?? now + COALESCE_MS;
    const minor = this.#reconciler.isMinor?.(before ?? ({} as Status), after) === true;
    const coalesce = minor && now < by && mergePatch(before, after) !== undefined;
    if (coalesce) this.#coalesced.set(key, by);
    else this.#coalesced.delete(key);
    return coalesce;
  }

  async #execute(
    key: string,
    plan: Plan<Status, Call>,
    observed: Observed,
    signal: AbortSignal,
  ): Promise<Executed<Call>> {
    const { stores } = this.#options;
    const onWrite = (write: Write): void => {
      const { resource, verb } = write;
      this.#options.metrics.writes.inc({ controller: this.name, kind: resource.kind, verb });
      const store = stores.find((s) => s.resource.kind === resource.kind);
      if (!store || (write.object && !store.selects(write.object))) return;
      const footprints = this.#written.get(key) ?? new Map<AnyStore, Footprint>();
      this.#written.set(key, footprints.set(store, withWrite(footprints.get(store), write)));
    };
    const subject = this.#reconciler.subject(observed);
    const { call, resource } = this.#reconciler;
    if (plan.latch) this.#coalesced.delete(key); // a latch is written together with the whole status
    const shouldCoalesce = (after: object): boolean => this.#shouldCoalesce(key, subject.status, after as Status);
    const needsVersion = (changes: object): boolean => this.#reconciler.needsVersion?.(observed, changes) === true;
    const options = { ...this.#options, onWrite, shouldCoalesce, needsVersion, ...(call && { call }) };
    return execute(plan, subject, resource, options, signal);
  }

  #removeKey(key: string): undefined {
    this.#written.delete(key);
    this.#lastRule.delete(key);
    this.#coalesced.delete(key);
    this.#failures.remove(key);
    this.#reconciler.forget?.(key);
  }

  #onlyCount(plan: Plan<Status, Call>, isNew: boolean): number {
    const { name: controller } = this;
    if (isNew && changesOf(plan).length > 0) this.#options.metrics.observedPlans.inc({ controller, rule: plan.rule });
    return Math.max(plan.requeueAfterMs ?? 0, OBSERVE_ONLY_MS);
  }

  /** Logs a decision at info once, not with every reconcile that makes the same decision. Returns whether it is another one. */
  #logDecision(key: string, plan: Plan<Status, Call>): boolean {
    const also = (plan.contributions ?? []).map(({ row, message }) => `${row}: ${message}`);
    const text = [`${plan.rule}: ${plan.message}`, ...also].join('; ');
    const isNew = this.#lastRule.get(key) !== text;
    const level = isNew ? 'info' : 'debug';
    this.#lastRule.set(key, text);
    const due = (plan.upkeep ?? []).filter((task) => !task.deferred);
    const steps = [...plan.steps, ...due.flatMap((task) => task.steps)].map((s) => `${s.do} ${stepTarget(s)}`);
    const { rule, message, latch } = plan;
    const latches = latch && { latch: Object.keys(latch) };
    const details = { controller: this.name, key, rule, message, ...(also.length > 0 && { also }), ...latches, steps };
    this.#options.log[level](details, this.#options.observeOnly ? `observe only, not executed: ${rule}` : rule);
    return isNew;
  }

  #logUpkeep(key: string, { upkeep }: Executed<Call>): void {
    for (const { task, outcome } of upkeep) {
      if (outcome.is !== 'failed') continue;
      const { row: rule, target } = task;
      const level = isStale(outcome.error) || outcome.error instanceof RetryLater ? 'debug' : 'warn';
      const details = { controller: this.name, key, rule, target, error: String(outcome.error) };
      this.#options.log[level](details, 'upkeep failed, retrying with back-off');
    }
  }

  #failed(key: string, rule: string, error: unknown): never {
    const { log, signal } = this.#options;
    const level = isStale(error) || isNotLeading(error) || signal.aborted ? 'debug' : 'warn';
    log[level]({ controller: this.name, key, rule, error: String(error) }, 'reconcile failed, retrying with back-off');
    throw error;
  }
}

/** A latch is persisted before its steps run, so it is held with them, and the status keeps its previous fields. */
function withoutSteps<Status extends object, Call extends NamedCall>(
  { latch = {}, ...plan }: Plan<Status, Call>,
  before: Status | undefined,
): Plan<Status, Call> {
  const status = { ...plan.status };
  for (const field of Object.keys(latch)) Reflect.set(status, field, Reflect.get(before ?? {}, field));
  return { ...plan, steps: [], status };
}

async function confirmed(store: AnyStore, written: Footprint, signal: AbortSignal): Promise<void> {
  const { namespace, version, deleted } = written;
  if (version !== undefined) await store.waitForVersion(namespace, version, signal);
  for (const { name, uid } of deleted) await store.waitForDeletion(refKey({ namespace, name }), uid, signal);
}
