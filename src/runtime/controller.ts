/** The loop of one controller: observe, decide, execute; one key at a time, many keys at once. */
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

/** Two refusals that are further apart may have had different causes. */
export const REFUSED_AGAIN_MS = 30_000;

/** What a controller is, apart from the loop. */
export interface Reconciler<Observed, Status extends object, Call extends NamedCall = never> {
  readonly name: string;
  readonly resource: Resource<Subject<Status>>;
  /** All facts for one key; `undefined` when the object is gone. A refusal says who refused the last step, and why. */
  readonly observe: (key: string, signal: AbortSignal, refusal: Refusal | undefined) => Promise<Observed | undefined>;
  readonly subject: (observed: Observed) => Subject<Status>;
  readonly decide: (observed: Observed) => Plan<Status, Call>;
  /** Carries out the calls of its plans. */
  readonly call?: (call: Call, signal: AbortSignal) => Promise<void>;
  /** Whether a client can wait for nothing in which two statuses differ: such a change is coalesced with the next one. */
  readonly isMinor?: (before: Status, after: Status) => boolean;
  /** Whether these changes of a status, written from a stale view, would lead to a wrong decision. Latches always do. */
  readonly needsVersion?: (observed: Observed, changes: Partial<Status>) => boolean;
  /** Lets go of what was kept for a key. */
  readonly forget?: (key: string) => void;
}

export interface ControllerOptions extends Omit<ExecuteOptions, 'onWrite' | 'call' | 'mayWait' | 'needsVersion'> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The caches that a pass reads from. */
  readonly stores: readonly AnyStore[];
  readonly signal: AbortSignal;
}

export const RECONCILE_DEADLINE_MS = 30_000;
/** Enough to keep an API server busy, and few enough that a loop turn with an answer for each takes milliseconds. */
const CONCURRENCY = 24;
const SLOW_AFTER_MS = 200;
const MAX_RUNNING = 96;
const BACKOFF = { firstMs: 100, maxMs: 60_000 };
/** So often the same steps may follow each other without a pause. */
const REPEATS = 3;
/**
 * A message-only status change is written with the next real one, or after this time. The message of a cluster repeats those
 * of its members: with both, no message is older than a minute.
 */
const COALESCE_MS = 30_000;

/** What was written to one kind. */
interface Footprint {
  readonly namespace: string;
  /** The newest version; a patch that changed nothing answers with an older one. */
  readonly version: string | undefined;
  readonly gone: readonly { readonly name: string; readonly uid: string }[];
}

const withWrite = (before: Footprint | undefined, write: Write): Footprint => {
  const { namespace, resourceVersion, gone } = write;
  const [old, fresh] = [before?.version, resourceVersion];
  const version = old === undefined || (fresh !== undefined && isAtLeast(fresh, old)) ? fresh : old;
  return { namespace, version, gone: [...(before?.gone ?? []), ...(gone ? [gone] : [])] };
};

export class Controller<Observed, Status extends object, Call extends NamedCall> {
  readonly #brain: Reconciler<Observed, Status, Call>;
  readonly #options: ControllerOptions;
  readonly #queue: Queue;
  /** Per key, what its last pass wrote: the caches must have seen it before the next one. */
  readonly #written = new Map<string, Map<AnyStore, Footprint>>();
  readonly #lastRule = new Map<string, string>();
  /** Per key, how often the same steps were taken in a row: somebody undoes them, or they do not help. */
  readonly #repeats = new Map<string, { readonly steps: string; readonly times: number }>();
  /** Per key, who refused a step of the last pass, and why: a fact for the next one. */
  readonly #refusals = new Map<string, Refusal>();
  /** Per key, by when a message-only change of its status is written. */
  readonly #coalesced = new Map<string, number>();

  constructor(brain: Reconciler<Observed, Status, Call>, options: ControllerOptions) {
    this.#brain = brain;
    this.#options = options;
    const { clock, metrics } = options;
    this.#queue = new Queue({
      clock,
      concurrency: CONCURRENCY,
      slowAfterMs: SLOW_AFTER_MS,
      maxRunning: MAX_RUNNING,
      backoff: BACKOFF,
      work: (key, looking) => this.#pass(key, looking),
      retryAfterMs: (error) => (error instanceof ApiError ? error.retryAfterMs : undefined),
      onStart: (waitedMs) => metrics.queueSeconds.observe({ controller: brain.name }, waitedMs / 1000),
    });
  }

  get name(): string {
    return this.#brain.name;
  }
  get depth(): number {
    return this.#queue.depth;
  }
  /** How long the longest of the running passes has been at it. */
  get oldestReconcileMs(): number {
    return this.#queue.oldestReconcileMs;
  }

  enqueue(key: string, reason: Priority = 'change'): void {
    this.#queue.add(key, reason);
  }

  stop(): Promise<void> {
    return this.#queue.stop();
  }

  async #pass(key: string, looking: () => void): Promise<number | undefined> {
    const { clock, metrics, signal } = this.#options;
    const started = clock.monotonic();
    const { signal: limit, cancel } = deadline(clock, RECONCILE_DEADLINE_MS, signal);
    let rule = 'observe';
    let result = 'ok';
    try {
      await this.#barrier(key, limit);
      looking();
      const observed = await this.#brain.observe(key, limit, this.#refusals.get(key));
      if (observed === undefined) return this.#forget(key);
      const plan = this.#brain.decide(observed);
      rule = plan.rule;
      this.#tell(key, plan);
      return this.#wake(key, plan, await this.#execute(key, plan, observed, limit));
    } catch (error) {
      result = isStale(error) ? 'stale' : 'failed';
      return this.#failed(key, rule, error);
    } finally {
      cancel();
      metrics.reconciles.inc({ controller: this.name, rule, result });
      metrics.reconcileSeconds.observe({ controller: this.name }, (clock.monotonic() - started) / 1000);
    }
  }

  /** A write of ours that the cache has not seen yet would be decided about a second time. */
  async #barrier(key: string, signal: AbortSignal): Promise<void> {
    const footprints = this.#written.get(key);
    if (!footprints) return;
    for (const [store, { namespace, version, gone }] of footprints) {
      if (version !== undefined) await store.waitForVersion(namespace, version, signal);
      for (const { name, uid } of gone) await store.waitForDeletion(refKey({ namespace, name }), uid, signal);
    }
    this.#written.delete(key);
  }

  /** When to look again: at once after a change, and in time for a coalesced status. */
  #wake(key: string, plan: Plan<Status, Call>, outcome: Outcome): number | undefined {
    const again = this.#lookAgain(key, plan, outcome);
    const by = this.#coalesced.get(key);
    if (by === undefined) return again;
    const left = Math.max(0, by - this.#options.clock.monotonic());
    return again === undefined ? left : Math.min(again, left);
  }

  #lookAgain(key: string, plan: Plan<Status, Call>, outcome: Outcome): number | undefined {
    if (outcome.is === 'retryLater') {
      this.#refused(key, outcome.message, outcome.kind);
      return outcome.retryMs;
    }
    this.#refusals.delete(key);
    return plan.steps.length > 0 || plan.latch ? this.#pauseAfter(key, plan) : plan.requeueAfterMs;
  }

  #refused(key: string, message: string, kind?: string): void {
    const at = this.#options.clock.now();
    const before = this.#refusals.get(key);
    const goesOn = before !== undefined && before.kind === kind && at - before.at < REFUSED_AGAIN_MS;
    this.#refusals.set(key, { message, kind, since: goesOn ? before.since : at, at });
  }

  /** None, unless the very same steps were taken before, again and again: two that undo each other must not do it at full speed. */
  #pauseAfter(key: string, plan: Plan<Status, Call>): number {
    // A whole Pod may be in there, for each member, with megabytes of labels.
    const steps = createHash('sha256').update(JSON.stringify(plan.steps)).digest('base64');
    const before = this.#repeats.get(key);
    const times = before?.steps === steps ? before.times + 1 : 1;
    this.#repeats.set(key, { steps, times });
    return times > REPEATS ? backoffMs(times - REPEATS, this.#options.clock.random(), BACKOFF) : 0;
  }

  /** Whether this is a message-only change of the status that has not waited for long. */
  #mayWait(key: string, before: Status | undefined, after: Status): boolean {
    const now = this.#options.clock.monotonic();
    const by = this.#coalesced.get(key) ?? now + COALESCE_MS;
    const minor = this.#brain.isMinor?.(before ?? ({} as Status), after) === true;
    const waits = minor && now < by && mergePatch(before, after) !== undefined;
    if (waits) this.#coalesced.set(key, by);
    else this.#coalesced.delete(key);
    return waits;
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
    const subject = this.#brain.subject(observed);
    const { call, resource } = this.#brain;
    if (plan.latch) this.#coalesced.delete(key); // it is written with the whole status
    const mayWait = (after: object): boolean => this.#mayWait(key, subject.status, after as Status);
    const needsVersion = (changes: object): boolean => this.#brain.needsVersion?.(observed, changes) === true;
    const options = { ...this.#options, onWrite, mayWait, needsVersion, ...(call && { call }) };
    return execute(plan, subject, resource, options, signal);
  }

  #forget(key: string): undefined {
    this.#written.delete(key);
    this.#lastRule.delete(key);
    this.#refusals.delete(key);
    this.#coalesced.delete(key);
    this.#repeats.delete(key);
    this.#brain.forget?.(key);
  }

  /** A decision is told once, not with every pass that comes to the same one. */
  #tell(key: string, plan: Plan<Status, Call>): void {
    const text = `${plan.rule}: ${plan.message}`;
    const level = this.#lastRule.get(key) === text ? 'debug' : 'info';
    this.#lastRule.set(key, text);
    const steps = plan.steps.map((s) => `${s.do} ${stepTarget(s)}`);
    this.#options.log[level]({ controller: this.name, key, rule: plan.rule, why: plan.message, steps }, plan.rule);
  }

  #failed(key: string, rule: string, error: unknown): never {
    const { log, signal } = this.#options;
    if (isRefusal(error)) this.#refused(key, `${SERVER_REFUSES}: ${error.said}`);
    const level = isStale(error) || isNotLeading(error) || signal.aborted ? 'debug' : 'warn';
    log[level]({ controller: this.name, key, rule, error: String(error) }, 'pass failed, will try again');
    throw error;
  }
}

/** What was decided on is another one by now, or gone. */
const isStale = (error: unknown): boolean => isConflict(error) || error instanceof TargetGone;

const stepTarget = (step: Step<NamedCall>): string => {
  if (step.do === 'create') return `${step.object.kind} ${step.object.metadata.name ?? ''}`;
  if (step.do === 'call') return `${step.call.name} ${step.call.target}`;
  const target = step.do === 'delete' ? step.what : step.to;
  return `${target.kind} ${target.name}`;
};
