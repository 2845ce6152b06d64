/**
 * What a controller remembers of failed steps, per key: facts for the next reconcile, with back-off per row and object. Steps that
 * succeed again and again without a lasting effect count as failures, too.
 */
import { createHash } from 'node:crypto';
import { isRefusal } from '../kube/errors.ts';
import type { Fields } from '../kube/object.ts';
import { type BackoffOptions, backoffMs } from '../lib/backoff.ts';
import { isObject, pathsIn, sameJson } from '../lib/merge-patch.ts';
import type { Clock } from './clock.ts';
import { type Executed, isStale, LatchDropped, type Outcome } from './execute.ts';
import { type Failure, type NamedCall, type Plan, RetryLater, type Step, stepTarget, type UpkeepTask } from './plan.ts';

/** Failures that are further apart than this may have different causes: they do not count as one. */
export const REFUSED_AGAIN_MS = 30_000;
/** The same step may be executed this many times without a delay. */
const REPEATS = 3;
/** Two controllers that revert each other do so within seconds; a Pod that a person deletes every few minutes is recreated at once. */
const REPEATED_WITHIN_MS = 60_000;
/** An object of upkeep is stable: three times the same write within this time is a conflict with another writer. */
const UPKEEP_REPEATED_WITHIN_MS = 10 * 60_000;
/** A write that was reverted before, and lasts for this long, has settled. */
const SETTLED_MS = 10_000;
/** An upkeep call that is refused for now is retried within this time. */
const MAX_LATER_MS = 30_000;
/** A task may find its object changed this often in a row without a delay: its cache is late. */
const STALE_IN_A_ROW = 2;
const STEPS_BACKOFF: BackoffOptions = { firstMs: 100, maxMs: 60_000 };
const UPKEEP_BACKOFF: BackoffOptions = { firstMs: 500, maxMs: 5 * 60_000 };
/** Until a person installs other CRDs, another attempt only prepares again what cannot be done. */
const LATCH_BACKOFF: BackoffOptions = { firstMs: 15_000, maxMs: 5 * 60_000 };

/** An executed step without its uids: a Pod that is created again has another one. Times are of the monotonic clock. */
interface Repeat {
  readonly times: number;
  readonly at: number;
  /** Not executed again before. */
  readonly until: number;
  /** By which row of upkeep, and what. */
  readonly patched?: Patched;
}

interface Patched {
  readonly by: string;
  readonly fields: Fields;
}

/** `since` and `at` are times for people and rules; `retryAt` is of the monotonic clock. */
type Known = Omit<Failure, 'retryInMs'> & { readonly delayMs: number; readonly retryAt: number };

interface OfKey {
  /** Of the sequence of the last plan. */
  steps?: Known | undefined;
  /** Of the last latch that the API server has not kept. */
  latch?: Known | undefined;
  /** By row and target. */
  readonly upkeep: Map<string, Known>;
  /** How often in a row a task found its object changed. */
  readonly stale: Map<string, number>;
  readonly repeats: Map<string, Repeat>;
}

type What = Pick<Failure, 'in' | 'row' | 'target'>;

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
    const all = known ? [known.latch, known.steps, ...known.upkeep.values()].filter((each) => each !== undefined) : [];
    return all.map((each) => {
      const { retryAt, delayMs: _, ...failure } = each;
      return { ...failure, retryInMs: this.#left(retryAt) };
    });
  }

  remove(key: string): void {
    this.#keys.delete(key);
  }

  /** How long a plan is not executed, because it was executed again and again without effect. */
  heldForMs<Call extends NamedCall>(key: string, plan: Plan<object, Call>): number {
    const { repeats } = this.#keys.get(key) ?? {};
    if (!repeats) return 0;
    return Math.max(0, ...identitiesOf(plan).map((id) => this.#left(repeats.get(id)?.until ?? 0)));
  }

  /** Records how a plan was executed. `heldMs`: its steps were not, for that long. */
  record<Call extends NamedCall>(key: string, plan: Plan<object, Call>, executed: Executed<Call>, heldMs = 0): Next {
    const known: OfKey = this.#keys.get(key) ?? { upkeep: new Map(), stale: new Map(), repeats: new Map() };
    this.#keys.set(key, known);
    const delays = executed.upkeep.map(({ task, outcome }) => this.#recordTask(known, task, outcome));
    delays.push(...this.#settle(known, (plan.upkeep ?? []).map(idOf)));
    delays.push(...this.#recordLatch(known, plan, executed));
    const next = heldMs > 0 ? { afterMs: heldMs } : this.#recordSteps(known, plan, executed);
    const { steps, latch, upkeep, stale, repeats } = known;
    if (!steps && !latch && upkeep.size + stale.size + repeats.size === 0) this.#keys.delete(key);
    const wait = [...delays, next.afterMs].filter((ms) => ms !== undefined);
    return { ...next, afterMs: wait.length === 0 ? undefined : Math.min(...wait) };
  }

  /** A row that wants no step for an object has what it wanted. What another writer reverts looks so only for a moment. */
  #settle({ upkeep, stale, repeats }: OfKey, wanted: readonly string[]): readonly number[] {
    for (const id of stale.keys()) if (!wanted.includes(id)) stale.delete(id);
    for (const [id, { at, until }] of repeats)
      if (this.#left(Math.max(at, until) + UPKEEP_REPEATED_WITHIN_MS) === 0) repeats.delete(id);
    return [...upkeep].flatMap(([id, { is, retryAt, delayMs }]) => {
      if (wanted.includes(id)) return [];
      const leftMs = is === 'overwritten' ? this.#left(retryAt - delayMs + SETTLED_MS) : 0;
      if (leftMs > 0) return [leftMs];
      upkeep.delete(id);
      return is === 'overwritten' ? [0] : []; // once more, for the status: this reconcile still had the failure
    });
  }

  /** It stays a failure until it is kept, or not attempted any more: meanwhile rules do not prepare what depends on it. */
  #recordLatch<Call extends NamedCall>(
    known: OfKey,
    plan: Plan<object, Call>,
    { dropped }: Executed<Call>,
  ): readonly number[] {
    if (dropped) {
      const what = { in: 'steps', row: plan.rule, target: 'the status' } as const;
      known.latch = { ...this.#failure(known.latch, what, undefined, dropped), fields: dropped.fields };
      return [this.#left(known.latch.retryAt)];
    }
    if (!known.latch) return [];
    const { fields = [], retryAt } = known.latch;
    const isKept = plan.latch !== undefined && fields.every((path) => (path.split('.')[1] ?? '') in (plan.latch ?? {}));
    const leftMs = isKept ? 0 : this.#left(retryAt + SETTLED_MS);
    if (leftMs > 0) return [leftMs];
    known.latch = undefined;
    return [0]; // once more, for the status: this reconcile still had the failure
  }

  #recordSteps<Call extends NamedCall>(
    known: OfKey,
    plan: Plan<object, Call>,
    { steps: outcome, dropped }: Executed<Call>,
  ): Next {
    if (outcome.is === 'failed') {
      const { step, error } = outcome;
      if (isStale(error)) return { afterMs: undefined, error };
      known.steps = this.#failure(known.steps, { in: 'steps', row: plan.rule, target: stepTarget(step) }, step, error);
      return error instanceof RetryLater && step.do === 'call'
        ? { afterMs: step.retryMs }
        : { afterMs: undefined, error };
    }
    known.steps = undefined;
    const ids = identitiesOf(plan, dropped === undefined);
    const worst = this.#repeat(known, ids, REPEATED_WITHIN_MS, STEPS_BACKOFF);
    if (!worst) return { afterMs: ids.length > 0 ? 0 : undefined };
    const [first] = plan.steps;
    const target = first ? stepTarget(first) : 'the status';
    known.steps = this.#overwritten({ in: 'steps', row: plan.rule, target }, worst);
    return { afterMs: this.#left(worst.until) };
  }

  #recordTask<Call extends NamedCall>(known: OfKey, task: UpkeepTask<Call>, outcome: Outcome<Call>): number {
    const id = idOf(task);
    const what = { in: 'upkeep', row: task.row, target: task.target } as const;
    if (outcome.is === 'failed') {
      const { step, error } = outcome;
      const stale = isStale(error) ? (known.stale.get(id) ?? 0) + 1 : 0;
      if (stale > 0) known.stale.set(id, stale);
      else known.stale.delete(id);
      // The cache was late. Again and again, it is a failure like any other, and must not hold up steps on the same object.
      if (stale > 0 && stale <= STALE_IN_A_ROW) return 0;
      const failure = this.#failure(known.upkeep.get(id), what, step, error);
      known.upkeep.set(id, failure);
      return this.#left(failure.retryAt);
    }
    known.stale.delete(id);
    const ids = task.steps.map((step) => identityOf(task.row, step));
    const patches = task.steps.map((step) => ('fields' in step ? { by: id, fields: step.fields } : undefined));
    for (const now of patches) if (now) withdraw(known.repeats, now);
    const worst = this.#repeat(known, ids, UPKEEP_REPEATED_WITHIN_MS, UPKEEP_BACKOFF, patches);
    if (worst) known.upkeep.set(id, this.#overwritten(what, worst));
    else known.upkeep.delete(id);
    return worst ? this.#left(worst.until) : 0;
  }

  /** Without a step: of the latch. */
  #failure<Call extends NamedCall>(
    before: Known | undefined,
    what: What,
    step: Step<Call> | undefined,
    error: Error,
  ): Known {
    const at = this.#clock.now();
    const later = error instanceof RetryLater ? error : undefined;
    const isDropped = error instanceof LatchDropped;
    const is = later ? 'later' : isDropped ? 'dropped' : isRefusal(error) ? 'refused' : 'failed';
    const kind = later?.kind;
    const continues = before !== undefined && before.kind === kind && at - before.at < againMs(before);
    const times = continues ? before.times + 1 : 1;
    const delayMs = this.#delayMs(what, step, later !== undefined, times);
    return {
      ...what,
      is,
      message: messageOf(error, step),
      ...(step?.do === 'call' && { call: step.call.name }),
      kind,
      times,
      since: continues ? before.since : at,
      at,
      delayMs,
      retryAt: this.#clock.monotonic() + delayMs,
    };
  }

  /** Steps that are refused for now are polled: a learner is promoted as soon as it has caught up. */
  #delayMs<Call extends NamedCall>(what: What, step: Step<Call> | undefined, later: boolean, times: number): number {
    if (!step) return backoffMs(times, this.#clock.random(), LATCH_BACKOFF);
    const inSteps = what.in === 'steps';
    if (later && step.do === 'call')
      return inSteps ? step.retryMs : Math.min(step.retryMs * 2 ** (times - 1), MAX_LATER_MS);
    return backoffMs(times, this.#clock.random(), inSteps ? STEPS_BACKOFF : UPKEEP_BACKOFF);
  }

  #overwritten(what: What, { times, until, at: writtenAt, patched }: Repeat): Known {
    const at = this.#clock.now();
    const message = `the operator has written ${namesOf(patched)} again and again, and it does not stay as written: another controller or an admission webhook changes it`;
    return { ...what, is: 'overwritten', message, times, since: at, at, delayMs: until - writtenAt, retryAt: until };
  }

  /** Counts what was executed; the repeat that is held back longest, if one is. */
  #repeat(
    { repeats }: OfKey,
    ids: readonly string[],
    withinMs: number,
    backoff: BackoffOptions,
    patches: readonly (Patched | undefined)[] = [],
  ): Repeat | undefined {
    const now = this.#clock.monotonic();
    for (const [i, id] of ids.entries()) {
      const before = repeats.get(id);
      const again = before !== undefined && now - Math.max(before.at, before.until) < withinMs;
      const times = again ? before.times + 1 : 1;
      const delay = times > REPEATS ? backoffMs(times - REPEATS, this.#clock.random(), backoff) : 0;
      const patched = patches[i];
      repeats.set(id, { times, at: now, until: now + delay, ...(patched && { patched }) });
    }
    const held = ids.flatMap((id) => repeats.get(id) ?? []).filter(({ until }) => until > now);
    return held.toSorted((a, b) => b.until - a.until)[0];
  }

  #left(until: number): number {
    return Math.max(0, until - this.#clock.monotonic());
  }
}

/**
 * A row that wants another value than before has reverted its earlier write itself. Without this, a cluster that is scaled up and
 * down four times in ten minutes would report another writer of its PodDisruptionBudget, and leave it outdated for minutes.
 */
function withdraw(repeats: Map<string, Repeat>, now: Patched): void {
  for (const [id, { patched }] of repeats)
    if (patched?.by === now.by && contradicts(patched.fields, now.fields)) repeats.delete(id);
}

const contradicts = (before: Fields, now: Fields): boolean =>
  Object.keys(now).some((name) => {
    const [was, is] = [before[name], now[name]];
    return isObject(was) && isObject(is) ? contradicts(was, is) : name in before && !sameJson(was, is);
  });

/** More fields would hide the message, and the API server rejects one that is too long. */
const MAX_NAMED = 5;
function namesOf(patched: Patched | undefined): string {
  const paths = patched ? pathsIn(patched.fields) : [];
  const more = paths.length > MAX_NAMED ? [`${paths.length - MAX_NAMED} more`] : [];
  return [...paths.slice(0, MAX_NAMED), ...more].join(', ') || 'it';
}

const idOf = ({ row, target }: { readonly row: string; readonly target: string }): string => `${row} ${target}`;

/** A failure that backs off for longer than REFUSED_AGAIN_MS is still the same one. */
const againMs = ({ delayMs }: Known): number => Math.max(REFUSED_AGAIN_MS, 2 * delayMs);

const messageOf = (error: Error, step: Step<NamedCall> | undefined): string => {
  if (error instanceof RetryLater || error instanceof LatchDropped || !step) return error.message;
  return isRefusal(error)
    ? `the API server refuses: ${error.serverMessage}`
    : `${stepTarget(step)} cannot be written: ${error.message}`;
};

/** A short hash: a step may contain a whole Pod, with megabytes of labels, and a thousand clusters have thirty thousand steps. */
const identityOf = (row: string, step: Step<NamedCall>): string => {
  const content = step.do === 'create' ? step.object : 'fields' in step ? step.fields : undefined;
  return shortHash(JSON.stringify([row, step.do, stepTarget(step), content]));
};

const shortHash = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 16);

/** The steps of a plan, and its latch without times, which are new in each attempt. */
const identitiesOf = (plan: Plan<object, NamedCall>, withLatch = true): readonly string[] => {
  const latch = withLatch && plan.latch ? JSON.stringify(plan.latch) : undefined;
  const timeless = latch?.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '');
  return [
    ...(timeless === undefined ? [] : [shortHash(`${plan.rule} latch ${timeless}`)]),
    ...plan.steps.map((step) => identityOf(plan.rule, step)),
  ];
};
