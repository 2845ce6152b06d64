/**
 * What a controller remembers of failed steps, per key: facts for the next reconcile, with back-off per row and object. Steps that
 * succeed again and again without a lasting effect count as failures, too.
 */
import { createHash } from 'node:crypto';
import { isRefusal } from '../kube/errors.ts';
import { type BackoffOptions, backoffMs } from '../lib/backoff.ts';
import type { Clock } from './clock.ts';
import { type Executed, isStale, type Outcome } from './execute.ts';
import { type Failure, type NamedCall, type Plan, RetryLater, type Step, stepTarget, type UpkeepTask } from './plan.ts';

/** Failures that are further apart than this may have different causes: they do not count as one. */
export const REFUSED_AGAIN_MS = 30_000;
/** The same step may be executed this many times without a delay. */
const REPEATS = 3;
/** Two controllers that revert each other do so within seconds; a Pod that a person deletes every few minutes is recreated at once. */
const REPEATED_WITHIN_MS = 60_000;
/** An object of upkeep is stable: three times the same write within this time is a conflict with another writer. */
const UPKEEP_REPEATED_WITHIN_MS = 10 * 60_000;
const STEPS_BACKOFF: BackoffOptions = { firstMs: 100, maxMs: 60_000 };
const UPKEEP_BACKOFF: BackoffOptions = { firstMs: 500, maxMs: 5 * 60_000 };

/** An executed step without its uids: a Pod that is created again has another one. */
interface Repeat {
  readonly times: number;
  readonly at: number;
  /** Not executed again before. */
  readonly until: number;
}

interface OfKey {
  /** Of the sequence of the last plan. */
  steps?: Failure | undefined;
  /** By row and target. */
  readonly upkeep: Map<string, Failure>;
  readonly repeats: Map<string, Repeat>;
}

type What = Pick<Failure, 'in' | 'row' | 'target'>;
const of = ({ row, target }: UpkeepTask<NamedCall>) => ({ row, target });

/** When the controller reconciles again because of what it executed. */
export interface Next {
  /** Something was changed: reconcile at once, unless the same change is repeated. */
  readonly afterMs: number | undefined;
  /** The sequence failed: retried with the back-off of the queue. */
  readonly error?: Error;
}

export class Failures {
  readonly #clock: Clock;
  readonly #keys = new Map<string, OfKey>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(key: string): readonly Failure[] {
    const known = this.#keys.get(key);
    return known ? [...(known.steps ? [known.steps] : []), ...known.upkeep.values()] : [];
  }

  remove(key: string): void {
    this.#keys.delete(key);
  }

  /** How long the steps of a plan are not executed, because they were executed again and again without effect. */
  heldForMs<Call extends NamedCall>(key: string, plan: Plan<object, Call>): number {
    const { repeats } = this.#keys.get(key) ?? {};
    if (!repeats) return 0;
    const until = plan.steps.map((step) => repeats.get(identityOf(plan.rule, step))?.until ?? 0);
    return Math.max(0, ...until.map((at) => at - this.#clock.now()));
  }

  /** Records how a plan was executed. `heldMs`: its steps were not, for that long. */
  record<Call extends NamedCall>(key: string, plan: Plan<object, Call>, executed: Executed<Call>, heldMs = 0): Next {
    const known: OfKey = this.#keys.get(key) ?? { upkeep: new Map(), repeats: new Map() };
    this.#keys.set(key, known);
    const tasks = plan.upkeep ?? [];
    const delays = executed.upkeep.map(({ task, outcome }) => this.#recordTask(known, task, outcome));
    for (const [id, { is, retryAt }] of known.upkeep) {
      if (tasks.some((task) => idOf(task) === id)) continue;
      // A row that wants no step for an object has what it wanted. What another writer reverts looks so for a moment.
      const leftMs = is === 'overwritten' ? retryAt - this.#clock.now() : 0;
      if (leftMs > 0) delays.push(leftMs);
      else known.upkeep.delete(id);
    }
    const next = heldMs > 0 ? { afterMs: heldMs } : this.#recordSteps(known, plan, executed.steps);
    this.#expire(known);
    if (known.steps === undefined && known.upkeep.size + known.repeats.size === 0) this.#keys.delete(key);
    const wait = [...delays, next.afterMs].filter((ms) => ms !== undefined);
    return { ...next, afterMs: wait.length === 0 ? undefined : Math.min(...wait) };
  }

  #recordSteps<Call extends NamedCall>(known: OfKey, plan: Plan<object, Call>, outcome: Outcome<Call>): Next {
    if (outcome.is === 'failed') {
      const { step, error } = outcome;
      if (isStale(error)) return { afterMs: undefined, error };
      known.steps = this.#failure(known.steps, { in: 'steps', row: plan.rule, target: stepTarget(step) }, step, error);
      return error instanceof RetryLater && step.do === 'call'
        ? { afterMs: step.retryMs }
        : { afterMs: undefined, error };
    }
    known.steps = undefined;
    const held = plan.steps.map((step) => this.#repeat(known, plan.rule, step, REPEATED_WITHIN_MS, STEPS_BACKOFF));
    const [worst] = held.toSorted((a, b) => b.until - a.until);
    const now = this.#clock.now();
    if (worst && worst.until > now) {
      const [step] = plan.steps;
      if (step) known.steps = this.#overwritten({ in: 'steps', row: plan.rule, target: stepTarget(step) }, worst);
      return { afterMs: worst.until - now };
    }
    return { afterMs: plan.steps.length > 0 || plan.latch ? 0 : undefined };
  }

  #recordTask<Call extends NamedCall>(known: OfKey, task: UpkeepTask<Call>, outcome: Outcome<Call>): number {
    const id = idOf(task);
    const now = this.#clock.now();
    if (outcome.is === 'failed') {
      if (isStale(outcome.error)) return 0;
      const { step, error } = outcome;
      const failure = this.#failure(known.upkeep.get(id), { ...of(task), in: 'upkeep' }, step, error);
      known.upkeep.set(id, failure);
      return failure.retryAt - now;
    }
    const held = task.steps.map((step) =>
      this.#repeat(known, task.row, step, UPKEEP_REPEATED_WITHIN_MS, UPKEEP_BACKOFF),
    );
    const [worst] = held.toSorted((a, b) => b.until - a.until);
    if (!worst || worst.until <= now) {
      known.upkeep.delete(id);
      return 0;
    }
    known.upkeep.set(id, this.#overwritten({ ...of(task), in: 'upkeep' }, worst));
    return worst.until - now;
  }

  #failure<Call extends NamedCall>(before: Failure | undefined, what: What, step: Step<Call>, error: Error): Failure {
    const at = this.#clock.now();
    const later = error instanceof RetryLater ? error : undefined;
    const is = later ? 'later' : isRefusal(error) ? 'refused' : 'failed';
    const kind = later?.kind;
    const continues = before !== undefined && before.kind === kind && at - before.at < againMs(before);
    const times = continues ? before.times + 1 : 1;
    const backoff = what.in === 'steps' ? STEPS_BACKOFF : UPKEEP_BACKOFF;
    const delay = later && step.do === 'call' ? step.retryMs : backoffMs(times, this.#clock.random(), backoff);
    return {
      ...what,
      is,
      message: messageOf(error, what.target),
      ...(step.do === 'call' && { call: step.call.name }),
      kind,
      times,
      since: continues ? before.since : at,
      at,
      retryAt: at + delay,
    };
  }

  #overwritten(what: What, { times, until, at }: Repeat): Failure {
    const message =
      'the operator has written it again and again, and it does not stay as written: another controller or an admission webhook changes it';
    return { ...what, is: 'overwritten', message, times, since: at, at, retryAt: until };
  }

  #repeat<Call extends NamedCall>(
    { repeats }: OfKey,
    row: string,
    step: Step<Call>,
    withinMs: number,
    backoff: BackoffOptions,
  ): Repeat {
    const id = identityOf(row, step);
    const now = this.#clock.now();
    const before = repeats.get(id);
    const again = before !== undefined && now - Math.max(before.at, before.until) < withinMs;
    const times = again ? before.times + 1 : 1;
    const delay = times > REPEATS ? backoffMs(times - REPEATS, this.#clock.random(), backoff) : 0;
    const repeat = { times, at: now, until: now + delay };
    repeats.set(id, repeat);
    return repeat;
  }

  #expire({ repeats }: OfKey): void {
    const now = this.#clock.now();
    for (const [id, { at, until }] of repeats)
      if (now - Math.max(at, until) > UPKEEP_REPEATED_WITHIN_MS) repeats.delete(id);
  }
}

const idOf = ({ row, target }: { readonly row: string; readonly target: string }): string => `${row} ${target}`;

/** A failure that backs off for longer than REFUSED_AGAIN_MS is still the same one. */
const againMs = ({ at, retryAt }: Failure): number => Math.max(REFUSED_AGAIN_MS, 2 * (retryAt - at));

const messageOf = (error: Error, target: string): string => {
  if (error instanceof RetryLater) return error.message;
  return isRefusal(error)
    ? `the API server refuses: ${error.serverMessage}`
    : `${target} cannot be written: ${error.message}`;
};

/** A short hash: a step may contain a whole Pod, with megabytes of labels, and a thousand clusters have thirty thousand steps. */
const identityOf = (row: string, step: Step<NamedCall>): string => {
  const content = step.do === 'create' ? step.object : 'fields' in step ? step.fields : undefined;
  const text = JSON.stringify([row, step.do, stepTarget(step), content]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
};
