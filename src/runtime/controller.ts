/** The reconcile loop of one controller: observe, decide, execute; never two reconciles of one key at a time. */
import { createHash } from 'node:crypto';
import { ApiError, isConflict, isNotLeading, isRefusal } from '../kube/errors.ts';
import { isAtLeast, type Resource, refKey } from '../kube/object.ts';
import type { AnyStore } from '../kube/store.ts';
import { backoffMs } from '../lib/backoff.ts';
import { mergePatch } from '../lib/merge-patch.ts';
import { type Clock, deadline } from './clock.ts';
import { type ExecuteOptions, execute, type Outcome, type Subject, TargetGone, type Write } from './execute.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import { type NamedCall, type Plan, type Refusal, SERVER_REFUSES, type Step } from './plan.ts';
import { type Priority, Queue } from './queue.ts';

/** Refusals that are further apart than this may have different causes: they do not count as one. */
export const REFUSED_AGAIN_MS = 30_000;

/** The part of a controller that is specific to its kind. */
export interface Reconciler<Observed, Status extends object, Call extends NamedCall = never> {
  readonly name: string;
  readonly resource: Resource<Subject<Status>>;
  /** Reads all facts for one key; `undefined` when the object is deleted. `refusal`: why a step of the last reconcile was refused. */
  readonly observe: (key: string, signal: AbortSignal, refusal: Refusal | undefined) => Promise<Observed | undefined>;
  readonly subject: (observed: Observed) => Subject<Status>;
  readonly decide: (observed: Observed) => Plan<Status, Call>;
  /** Executes the calls of its plans. */
  readonly call?: (call: Call, signal: AbortSignal) => Promise<void>;
  /** Whether two statuses differ only in messages, which no client waits for: such a change is coalesced with the next one. */
  readonly isMinor?: (before: Status, after: Status) => boolean;
  /** Whether these status changes, written from a stale cache, would lead to a wrong decision. Latches always do. */
  readonly needsVersion?: (observed: Observed, changes: Partial<Status>) => boolean;
  /** Removes what the reconciler keeps in memory for a deleted object. */
  readonly forget?: (key: string) => void;
}

export interface ControllerOptions
  extends Omit<ExecuteOptions, 'onWrite' | 'call' | 'shouldCoalesce' | 'needsVersion'> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The caches that a reconcile reads from. */
  readonly stores: readonly AnyStore[];
  readonly signal: AbortSignal;
}

export const RECONCILE_DEADLINE_MS = 30_000;
/** Enough to keep an API server busy, and few enough that the event loop handles a response for each within milliseconds. */
const CONCURRENCY = 24;
const SLOW_AFTER_MS = 200;
const MAX_RUNNING = 96;
const BACKOFF = { firstMs: 100, maxMs: 60_000 };
/** The same steps may be executed this many times in a row without a delay. */
const REPEATS = 3;
/**
 * A message-only status change is written with the next real one, or after this time. The message of a cluster repeats those
 * of its members, so it is at most twice as old. Creating three members takes 5 to 16 s and reports ten messages meanwhile.
 */
const COALESCE_MS = 10_000;

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
  /** Per key, how often the same steps were executed in a row: another controller reverts them, or they have no effect. */
  readonly #repeats = new Map<string, { readonly steps: string; readonly times: number }>();
  /** Per key, why a step of the last reconcile was refused: a fact for the next one. */
  readonly #refusals = new Map<string, Refusal>();
  /** Per key, by when a message-only change of its status is written. */
  readonly #coalesced = new Map<string, number>();

  constructor(reconciler: Reconciler<Observed, Status, Call>, options: ControllerOptions) {
    this.#reconciler = reconciler;
    this.#options = options;
    const { clock, metrics } = options;
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
      await this.#barrier(key, limit);
      onObserve();
      const observed = await this.#reconciler.observe(key, limit, this.#refusals.get(key));
      if (observed === undefined) return this.#removeKey(key);
      const plan = this.#reconciler.decide(observed);
      rule = plan.rule;
      this.#logDecision(key, plan);
      return this.#requeueAfterMs(key, plan, await this.#execute(key, plan, observed, limit));
    } catch (error) {
      result = isStale(error) ? 'stale' : 'failed';
      return this.#failed(key, rule, error);
    } finally {
      cancel();
      metrics.reconciles.inc({ controller: this.name, rule, result });
      metrics.reconcileSeconds.observe({ controller: this.name }, (clock.monotonic() - started) / 1000);
    }
  }

  /** Waits until the caches have observed our own writes: a stale cache would lead to the same write twice. */
  async #barrier(key: string, signal: AbortSignal): Promise<void> {
    const footprints = this.#written.get(key);
    if (!footprints) return;
    for (const [store, { namespace, version, deleted }] of footprints) {
      if (version !== undefined) await store.waitForVersion(namespace, version, signal);
      for (const { name, uid } of deleted) await store.waitForDeletion(refKey({ namespace, name }), uid, signal);
    }
    this.#written.delete(key);
  }

  /** When to requeue: at once after a change, and in time for a coalesced status write. */
  #requeueAfterMs(key: string, plan: Plan<Status, Call>, outcome: Outcome): number | undefined {
    const again = this.#requeueAfterSteps(key, plan, outcome);
    const by = this.#coalesced.get(key);
    if (by === undefined) return again;
    const left = Math.max(0, by - this.#options.clock.monotonic());
    return again === undefined ? left : Math.min(again, left);
  }

  #requeueAfterSteps(key: string, plan: Plan<Status, Call>, outcome: Outcome): number | undefined {
    if (outcome.is === 'retryLater') {
      this.#recordRefusal(key, outcome.message, outcome.kind);
      return outcome.retryMs;
    }
    this.#refusals.delete(key);
    return plan.steps.length > 0 || plan.latch ? this.#repeatDelayMs(key, plan) : plan.requeueAfterMs;
  }

  #recordRefusal(key: string, message: string, kind?: string): void {
    const at = this.#options.clock.now();
    const before = this.#refusals.get(key);
    const continues = before !== undefined && before.kind === kind && at - before.at < REFUSED_AGAIN_MS;
    this.#refusals.set(key, { message, kind, since: continues ? before.since : at, at });
  }

  /** 0, unless the same steps are repeated: two controllers that revert each other must not do so at full speed. */
  #repeatDelayMs(key: string, plan: Plan<Status, Call>): number {
    // Hashed, because the steps may contain a whole Pod for each member, with megabytes of labels.
    const steps = createHash('sha256').update(JSON.stringify(plan.steps)).digest('base64');
    const before = this.#repeats.get(key);
    const times = before?.steps === steps ? before.times + 1 : 1;
    this.#repeats.set(key, { steps, times });
    return times > REPEATS ? backoffMs(times - REPEATS, this.#options.clock.random(), BACKOFF) : 0;
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

  async #execute(key: string, plan: Plan<Status, Call>, observed: Observed, signal: AbortSignal): Promise<Outcome> {
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
    this.#refusals.delete(key);
    this.#coalesced.delete(key);
    this.#repeats.delete(key);
    this.#reconciler.forget?.(key);
  }

  /** Logs a decision at info once, not with every reconcile that makes the same decision. */
  #logDecision(key: string, plan: Plan<Status, Call>): void {
    const text = `${plan.rule}: ${plan.message}`;
    const level = this.#lastRule.get(key) === text ? 'debug' : 'info';
    this.#lastRule.set(key, text);
    const steps = plan.steps.map((s) => `${s.do} ${stepTarget(s)}`);
    this.#options.log[level]({ controller: this.name, key, rule: plan.rule, message: plan.message, steps }, plan.rule);
  }

  #failed(key: string, rule: string, error: unknown): never {
    const { log, signal } = this.#options;
    if (isRefusal(error)) this.#recordRefusal(key, `${SERVER_REFUSES}: ${error.serverMessage}`);
    const level = isStale(error) || isNotLeading(error) || signal.aborted ? 'debug' : 'warn';
    log[level]({ controller: this.name, key, rule, error: String(error) }, 'reconcile failed, retrying with back-off');
    throw error;
  }
}

/** The object has been changed or deleted since it was observed. */
const isStale = (error: unknown): boolean => isConflict(error) || error instanceof TargetGone;

const stepTarget = (step: Step<NamedCall>): string => {
  if (step.do === 'create') return `${step.object.kind} ${step.object.metadata.name ?? ''}`;
  if (step.do === 'call') return `${step.call.name} ${step.call.target}`;
  const target = step.do === 'delete' ? step.what : step.to;
  return `${target.kind} ${target.name}`;
};
