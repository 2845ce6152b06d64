/** What a reconcile decided: plain data, built by pure functions, executed by `execute`. */

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

export type Fields = Readonly<Record<string, unknown>>;

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

/** A step of the last reconcile that was refused, as a fact for the next one. */
export interface Refusal {
  readonly message: string;
  readonly kind?: string | undefined;
  /** Milliseconds since 1970: since then every reconcile was refused with this kind, without a long pause. */
  readonly since: number;
  /** When it was refused last. Reconciles that fail before their steps do not try again. */
  readonly at: number;
}

/** The prefix of a refusal by the API server, as a fact for the next reconcile. */
export const SERVER_REFUSES = 'the API server refuses';

export interface EventRecord {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

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

export interface Plan<Status extends object, Call extends NamedCall = never> {
  /** The name of the rule that decided. */
  readonly rule: string;
  readonly message: string;
  readonly latch?: Partial<Status>;
  readonly steps: readonly Step<Call>[];
  /** The whole status after this reconcile; only the difference is written. */
  readonly status: Status;
  readonly events: readonly EventRecord[];
  /** Reconcile again after this many milliseconds, even without an event. */
  readonly requeueAfterMs?: number;
}

/** A rule and its place in the order; the name is in the log, the metric and the tests. */
export interface NamedRule<Observed, Decided extends Decision<object, NamedCall>> {
  readonly name: string;
  readonly rule: (observed: Observed) => Decided | undefined;
}

/** The first rule that decides wins. The last rule of every list must always decide. */
function firstDecision<Observed, Decided extends Decision<object, NamedCall>>(
  rules: readonly NamedRule<Observed, Decided>[],
  observed: Observed,
): { readonly name: string; readonly decision: Decided } {
  for (const { name, rule } of rules) {
    const decision = rule(observed);
    if (decision) return { name, decision };
  }
  throw new Error('no rule decided');
}

/** The parts of a plan that do not depend on the rule that decided. */
export interface Finished<Status extends object> {
  readonly status: Status;
  readonly events: readonly EventRecord[];
  readonly requeueAfterMs: number | undefined;
}

/** The plan of the first rule that decides, with its status, Events and requeue from `finish`. */
export function planOf<Observed, Status extends object, Call extends NamedCall, Decided extends Decision<Status, Call>>(
  rules: readonly NamedRule<Observed, Decided>[],
  observed: Observed,
  finish: (decision: Decided) => Finished<Status>,
): Plan<Status, Call> {
  const { name, decision } = firstDecision(rules, observed);
  const { status, events, requeueAfterMs } = finish(decision);
  return {
    rule: name,
    message: decision.message,
    ...(decision.latch && { latch: decision.latch }),
    steps: decision.steps ?? [],
    status,
    events: [...(decision.event ? [decision.event] : []), ...events],
    ...(requeueAfterMs !== undefined && { requeueAfterMs }),
  };
}

interface Referable {
  readonly metadata: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
  };
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
