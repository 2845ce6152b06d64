/** Plans as short texts, for table tests. */
import type { Failure, Memory, NamedCall, Plan, Step } from '../../../src/runtime/plan.ts';

/** The steps of a plan; those of upkeep follow with the name of their row, deferred ones in brackets. */
export const textsOf = <Call extends NamedCall>(
  { steps, upkeep = [] }: Plan<object, Call>,
  text: (step: Step<Call>) => string,
): readonly string[] => [
  ...steps.map(text),
  ...upkeep.flatMap(({ row, steps: own, deferred }) =>
    own.map((step) => (deferred ? `(${row}: ${text(step)})` : `${row}: ${text(step)}`)),
  ),
];

/** A step of the last reconcile failed. */
export const remembering = (message: string, more: Partial<Failure> = {}): { readonly memory: Memory } => ({
  memory: {
    failures: [
      {
        in: 'steps',
        row: 'some row',
        target: 'some object',
        is: 'refused',
        message,
        times: 1,
        since: 0,
        at: 0,
        retryInMs: 0,
        ...more,
      },
    ],
    unconfirmed: [],
  },
});

/** The rule that decided, and the rows of upkeep that contributed. */
export const rowsOf = ({ rule, contributions = [] }: Plan<object, NamedCall>): readonly string[] => [
  rule,
  ...contributions.map(({ row }) => row),
];
