/** What a reconcile decided: plain data, built by pure functions, executed by `execute`. */
import type { EventText as EventRecord } from '../kube/event-ledger.ts';
import type { Fields } from '../kube/object.ts';

/** An object as the cache had it. The API server refuses a step on it when the uid, or the resourceVersion, has changed. */
export interface ObjectRef {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Present where the step must also be refused when the object has changed at all. */
  readonly resourceVersion?: string;
}

export interface NewObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}

export type { Fields };

/** A call outside the Kubernetes API. Each controller has a closed union of them, and executes it with an exhaustive switch. */
export interface NamedCall {
  /** For logs: what is done, and to what. */
  readonly name: string;
  readonly target: string;
}

export type Step<Call extends NamedCall = never> =
  | { readonly do: 'create'; readonly object: NewObject }
  /** Server-side apply with force: the operator takes these fields over from any other field manager. */
  | { readonly do: 'apply'; readonly to: ObjectRef; readonly fields: Fields }
  | { readonly do: 'patch'; readonly to: ObjectRef; readonly fields: Fields; readonly subresource?: 'status' }
  | { readonly do: 'delete'; readonly what: ObjectRef }
  /** Retried after `retryMs` when it rejects with RetryLater. */
  | { readonly do: 'call'; readonly call: Call; readonly retryMs: number };

/** A call was refused for now and nothing has failed: the message is a fact for the next reconcile. */
export class RetryLater extends Error {
  override readonly name = 'RetryLater';
  /** What kind of refusal it is, where the next reconcile decides by it. */
  readonly kind: string | undefined;
  constructor(message: string, kind?: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * A step that failed, or that had no lasting effect, as a fact for the next reconcile: a rule decides by it, and the status
 * reports it. It is kept per row and object, so that one object that cannot be written holds nothing else up.
 */
export interface Failure {
  /** Of the sequence of a plan, or of a task of upkeep. */
  readonly in: 'steps' | 'upkeep';
  /** The row of a stage whose step it was. */
  readonly row: string;
  /** Kind and name of the object, or the name and target of a call. */
  readonly target: string;
  /**
   * refused: a policy, a quota or an admission webhook; a user has to change something. later: a call was refused for now.
   * overwritten: the write succeeded again and again, and the object still differs. dropped: the API server has accepted a
   * latch, and does not have it. failed: everything else.
   */
  readonly is: 'refused' | 'later' | 'overwritten' | 'dropped' | 'failed';
  readonly message: string;
  /** The name of the call, if the step was one. */
  readonly call?: string;
  /** What kind of refusal a call was rejected with, where the next reconcile decides by it. */
  readonly kind?: string | undefined;
  /** The paths in the status that the API server does not have. */
  readonly fields?: readonly string[];
  /** How many times in a row. */
  readonly times: number;
  /** Milliseconds since 1970: since then it has failed in the same way, without a long pause. */
  readonly since: number;
  /** When it failed last. Reconciles that fail before their steps do not try again. */
  readonly at: number;
  /** How long it is not attempted again; 0 when it is due. Not a time: the wall clock may be set back by hours. */
  readonly retryInMs: number;
}

/** What a controller remembers of earlier reconciles of one key. */
export interface Memory {
  readonly failures: readonly Failure[];
  /** Kinds whose cache has not shown the last write yet: rows of upkeep that write them wait, all others go on. */
  readonly unconfirmed: readonly string[];
}

export const NO_MEMORY: Memory = { failures: [], unconfirmed: [] };

/** All failures in one sentence, for a status; `undefined` if there are none. */
export const failureMessage = (failures: readonly Failure[]): string | undefined =>
  failures.length === 0 ? undefined : [...new Set(failures.map(({ message }) => message))].join('; ');

export type { EventRecord };

/** What one rule decided; `undefined` instead of it means that the rule does not apply. */
export interface Decision<Status extends object, Call extends NamedCall = never> {
  /** For users: what is being done or waited for, and why. The same text is in the log and in the condition. */
  readonly message: string;
  /** Status fields that must be durable before any step runs. */
  readonly latch?: Partial<Status>;
  /** Run in order; the first failure ends the sequence. */
  readonly steps?: readonly Step<Call>[];
  /** For what no condition reports. */
  readonly event?: EventRecord;
  readonly requeueAfterMs?: number;
}

/** What one row of upkeep decided. Its sequences are independent of each other and of every other row: each has its own outcome. */
export interface Upkeep<Status extends object, Call extends NamedCall = never>
  extends Omit<Decision<Status, Call>, 'steps'> {
  /** Each runs in order and ends at its first failure. Its first step names the object that a failure is reported for. */
  readonly sequences?: readonly (readonly Step<Call>[])[];
}

/** A row of upkeep whose steps are independent of each other; `undefined` if there are none. */
export const independent = <Call extends NamedCall>(
  message: string,
  steps: readonly Step<Call>[],
): Upkeep<never, Call> | undefined =>
  steps.length === 0 ? undefined : { message, sequences: steps.map((step) => [step]) };

export interface UpkeepTask<Call extends NamedCall = never> {
  readonly row: string;
  readonly target: string;
  readonly steps: readonly Step<Call>[];
  /**
   * Why it is wanted, but not run in this reconcile: it failed or was overwritten a moment ago, the cache has not shown the
   * last write of its kind, or another row writes the same object.
   */
  readonly deferred?: 'backOff' | 'unconfirmed' | 'inTurn';
}

export interface Plan<Status extends object, Call extends NamedCall = never> {
  /** The name of the rule that decided. */
  readonly rule: string;
  readonly message: string;
  readonly latch?: Partial<Status>;
  /** By latched field, the rules and rows whose steps depend on it. Absent: all of them. */
  readonly latchedBy?: Readonly<Record<string, readonly string[]>>;
  readonly steps: readonly Step<Call>[];
  /** What rows of upkeep decided besides. */
  readonly contributions?: readonly { readonly row: string; readonly message: string }[];
  /** Run after the steps, also if one of them failed. */
  readonly upkeep?: readonly UpkeepTask<Call>[];
  /** The whole status after this reconcile; only the difference is written. */
  readonly status: Status;
  readonly events: readonly EventRecord[];
  /** Reconcile again after this many milliseconds, even without an event. */
  readonly requeueAfterMs?: number;
}

/** A rule and its place in the order; the name is in the log, the metric and the tests. */
export interface NamedRule<Observed, Decided> {
  readonly name: string;
  readonly rule: (observed: Observed) => Decided | undefined;
}

interface Referable {
  readonly metadata: Partial<Omit<ObjectRef, 'kind'>>;
}

/** The target of a step. With the resourceVersion, the step is refused when the object has changed since it was observed. */
export const refTo = (
  kind: string,
  { metadata: { namespace = '', name = '', uid = '', resourceVersion } }: Referable,
  precondition: { readonly resourceVersion?: boolean } = {},
): ObjectRef => ({
  kind,
  namespace,
  name,
  uid,
  ...(precondition.resourceVersion && resourceVersion !== undefined && { resourceVersion }),
});

/** Kind and name of the object that a step writes, or name and target of its call. */
export const stepTarget = (step: Step<NamedCall>): string => {
  if (step.do === 'create') return `${step.object.kind} ${step.object.metadata.name ?? ''}`;
  if (step.do === 'call') return `${step.call.name} ${step.call.target}`;
  const target = step.do === 'delete' ? step.what : step.to;
  return `${target.kind} ${target.name}`;
};
