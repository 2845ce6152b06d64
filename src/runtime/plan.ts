/** What a pass decided: plain data, made by pure functions, carried out by `execute`. */

/** An object as it was seen; the uid makes a decision about it void when it is another object by now. */
export interface Seen {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Also void when the object has changed at all. */
  readonly resourceVersion?: string;
}

export interface NewObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}

export type Fields = Readonly<Record<string, unknown>>;

export type Step =
  | { readonly do: 'create'; readonly object: NewObject }
  /** Server-side apply: these fields are ours, whoever changed them. */
  | { readonly do: 'apply'; readonly to: Seen; readonly fields: Fields }
  | { readonly do: 'patch'; readonly to: Seen; readonly fields: Fields; readonly subresource?: 'status' }
  | { readonly do: 'delete'; readonly what: Seen }
  /** Anything outside Kubernetes, carried out by the controller's own `call`. When it is refused for now, it is tried again. */
  | { readonly do: 'call'; readonly call: Call; readonly retryMs: number };

/** A change that the controller makes itself; what else it says is between its rules and its `call`. */
export interface Call {
  /** For logs: what is done, and to what. */
  readonly name: string;
  readonly target: string;
}

/** How a call ends when nothing is wrong but the moment: the words are a fact for the next pass. */
export class NotNow extends Error {
  override readonly name = 'NotNow';
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
  /** When it was refused last. Reconciles that fail before their steps do not ask again. */
  readonly at: number;
}

/** How a refusal by the API server begins, as a fact for the next pass. */
export const SERVER_REFUSES = 'the API server refuses';

export interface Notice {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

export interface Plan<Status extends object> {
  /** Which rule answered. */
  readonly rule: string;
  /** Why, in words for people: the same in the log and in the condition. */
  readonly why: string;
  /** Status fields that must be durable before any step is taken. */
  readonly latch?: Partial<Status>;
  readonly steps: readonly Step[];
  /** The whole status after this pass; written only where it differs. */
  readonly status: Status;
  readonly notices: readonly Notice[];
  /** Look again after this many milliseconds, even if nothing happens. */
  readonly wakeAfter?: number;
}

/** How a rule answers: `undefined` means "not my case". */
export interface Answer<Status extends object> {
  readonly why: string;
  readonly latch?: Partial<Status>;
  readonly steps?: readonly Step[];
  /** Something happened that no condition tells. */
  readonly notice?: Notice;
  readonly wakeAfter?: number;
}

/** A rule and its place in the order; the name is in the log, the metric and the tests. */
export interface NamedRule<Observed, Status extends object, Said extends Answer<Status> = Answer<Status>> {
  readonly name: string;
  readonly rule: (observed: Observed) => Said | undefined;
}

/** The first rule that answers. The last rule of every list must answer always. */
function firstAnswer<Observed, Status extends object, Said extends Answer<Status>>(
  rules: readonly NamedRule<Observed, Status, Said>[],
  observed: Observed,
): { readonly name: string; readonly answer: Said } {
  for (const { name, rule } of rules) {
    const answer = rule(observed);
    if (answer) return { name, answer };
  }
  throw new Error('no rule answered');
}

/** The plan of the first rule that answers. `told` adds what holds for every rule: the status, Events, an earlier look. */
export function planOf<Observed, Status extends object, Said extends Answer<Status>>(
  rules: readonly NamedRule<Observed, Status, Said>[],
  observed: Observed,
  told: (
    name: string,
    answer: Said,
  ) => { readonly status: Status; readonly notices: readonly Notice[]; readonly wakeAfter: number | undefined },
): Plan<Status> {
  const { name, answer } = firstAnswer(rules, observed);
  const { status, notices, wakeAfter } = told(name, answer);
  return {
    rule: name,
    why: answer.why,
    ...(answer.latch && { latch: answer.latch }),
    steps: answer.steps ?? [],
    status,
    notices: [...(answer.notice ? [answer.notice] : []), ...notices],
    ...(wakeAfter !== undefined && { wakeAfter }),
  };
}

/** The target of a step, from an object that was looked at. */
export const seen = (
  kind: string,
  object: {
    readonly metadata: {
      readonly name?: string;
      readonly namespace?: string;
      readonly uid?: string;
      readonly resourceVersion?: string;
    };
  },
  strictly: 'this version' | 'any version' = 'any version',
): Seen => ({
  kind,
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name ?? '',
  uid: object.metadata.uid ?? '',
  ...(strictly === 'this version' &&
    object.metadata.resourceVersion !== undefined && { resourceVersion: object.metadata.resourceVersion }),
});
