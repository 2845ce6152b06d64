/** Composes a plan from the answers of stages. Pure. */
import { sameJson } from '../lib/merge-patch.ts';
import {
  type Decision,
  type EventRecord,
  type Memory,
  type NamedCall,
  type NamedRule,
  NO_MEMORY,
  type Plan,
  type Step,
  stepTarget,
  type Upkeep,
  type UpkeepTask,
} from './plan.ts';

export interface Answer<Decided> {
  readonly name: string;
  readonly decision: Decided;
}

/** The first rule that decides wins. */
export function firstOf<Observed, Decided>(
  rules: readonly NamedRule<Observed, Decided>[],
  observed: Observed,
): Answer<Decided> | undefined {
  for (const { name, rule } of rules) {
    const decision = rule(observed);
    if (decision) return { name, decision };
  }
  return undefined;
}

/** Every row that decides contributes. */
export const allOf = <Observed, Decided>(
  rules: readonly NamedRule<Observed, Decided>[],
  observed: Observed,
): readonly Answer<Decided>[] =>
  rules.flatMap(({ name, rule }) => {
    const decision = rule(observed);
    return decision ? [{ name, decision }] : [];
  });

/** The parts of a plan that do not depend on the rule that decided. */
export interface Finished<Status extends object> {
  readonly status: Status;
  readonly events: readonly EventRecord[];
  readonly requeueAfterMs: number | undefined;
}

/** The plan of the first rule that decides, with its status, Events and requeue from `finish`. The last rule must always decide. */
export function planOf<Observed, Status extends object, Call extends NamedCall, Decided extends Decision<Status, Call>>(
  rules: readonly NamedRule<Observed, Decided>[],
  observed: Observed,
  finish: (decision: Decided) => Finished<Status>,
): Plan<Status, Call> {
  const answer = firstOf(rules, observed);
  if (!answer) throw new Error('no rule decided');
  return compose(answer, [], NO_MEMORY, finish);
}

/**
 * The answer of a stage and the tasks of upkeep in one plan. `finish` gets the latch of all of them: the status is written
 * together with it.
 */
export function compose<Status extends object, Call extends NamedCall, Decided extends Decision<Status, Call>>(
  { name, decision }: Answer<Decided>,
  upkeep: readonly Answer<Upkeep<Status, Call>>[],
  remembered: Memory,
  finish: (
    decision: Decided,
    latch: Partial<Status> | undefined,
    tasks: readonly UpkeepTask<Call>[],
  ) => Finished<Status>,
): Plan<Status, Call> {
  const tasks = tasksOfAll(upkeep, remembered);
  const waits = waitsForUpkeep(decision, upkeep, remembered);
  const own = waits ? [] : [decision];
  const latching = [...(waits ? [] : [{ name, decision }]), ...upkeep];
  const latch = mergeLatches(latching.flatMap((row) => row.decision.latch ?? []));
  const { status, events, requeueAfterMs } = finish(decision, latch, tasks);
  const delays = [
    requeueAfterMs,
    ...upkeep.map((row) => row.decision.requeueAfterMs),
    ...tasks.map((task) => (task.deferred === undefined ? undefined : retryInMs(task, remembered))),
  ].filter((ms) => ms !== undefined);
  return {
    rule: name,
    message: decision.message,
    ...(latch && { latch, latchedBy: latchedBy(latching) }),
    steps: waits ? [] : (decision.steps ?? []),
    ...(upkeep.length > 0 && {
      contributions: upkeep.map((row) => ({ row: row.name, message: row.decision.message })),
    }),
    ...(tasks.length > 0 && { upkeep: tasks }),
    status,
    events: [...[...own, ...upkeep.map((row) => row.decision)].flatMap((d) => d.event ?? []), ...events],
    ...(delays.length > 0 && { requeueAfterMs: Math.min(...delays) }),
  };
}

/** What a plan would change, each as a message; for objects that are only observed. */
export const changesOf = ({
  message,
  latch,
  steps,
  contributions = [],
}: Plan<object, NamedCall>): readonly string[] => [
  ...(steps.length > 0 || (latch && contributions.length === 0) ? [message] : []),
  ...contributions.map((row) => row.message),
];

const tasksOfAll = <Call extends NamedCall>(
  upkeep: readonly Answer<Upkeep<object, Call>>[],
  remembered: Memory,
): readonly UpkeepTask<Call>[] => inTurn(upkeep.flatMap((row) => tasksOf(row, remembered)));

/**
 * Whether the steps and the latch of a decision wait for the next reconcile: a step with a resourceVersion on an object that upkeep
 * patches in the same plan would get a 409.
 */
export const waitsForUpkeep = <Call extends NamedCall>(
  { steps = [] }: Pick<Decision<object, Call>, 'steps'>,
  upkeep: readonly Answer<Upkeep<object, Call>>[],
  remembered: Memory,
): boolean => tasksOfAll(upkeep, remembered).some((task) => task.deferred === undefined && touches(task, steps));

/** The watch sends an event when it shows the write; this is for a watch that is late for long. */
const UNCONFIRMED_RETRY_MS = 1_000;

const retryInMs = <Call extends NamedCall>({ row, target, deferred }: UpkeepTask<Call>, remembered: Memory) =>
  deferred === 'backOff' ? (failureOf(remembered, row, target)?.retryInMs ?? 0) : UNCONFIRMED_RETRY_MS;

const failureOf = ({ failures }: Memory, row: string, target: string) =>
  failures.find((failure) => failure.row === row && failure.target === target);

function tasksOf<Call extends NamedCall>(
  { name: row, decision }: Answer<Upkeep<object, Call>>,
  remembered: Memory,
): readonly UpkeepTask<Call>[] {
  return (decision.sequences ?? []).flatMap((steps) => {
    const [first] = steps;
    if (!first) return [];
    const target = stepTarget(first);
    const backsOff = (failureOf(remembered, row, target)?.retryInMs ?? 0) > 0;
    const unconfirmed = steps.some((step) => remembered.unconfirmed.includes(kindOf(step) ?? ''));
    const deferred = backsOff ? 'backOff' : unconfirmed ? 'unconfirmed' : undefined;
    return [{ row, target, steps, ...(deferred && { deferred }) }];
  });
}

/** Two rows that patch one object at the same time could get a 409: the first row goes first. */
function inTurn<Call extends NamedCall>(tasks: readonly UpkeepTask<Call>[]): readonly UpkeepTask<Call>[] {
  const isTaken = (task: UpkeepTask<Call>, i: number): boolean =>
    tasks.slice(0, i).some((other) => other.deferred === undefined && touches(other, task.steps));
  return tasks.map((task, i) => (!task.deferred && isTaken(task, i) ? { ...task, deferred: 'inTurn' } : task));
}

const kindOf = <Call extends NamedCall>(step: Step<Call>): string | undefined => {
  if (step.do === 'call') return undefined;
  if (step.do === 'create') return step.object.kind;
  return step.do === 'delete' ? step.what.kind : step.to.kind;
};

const touches = <Call extends NamedCall>(task: UpkeepTask<Call>, steps: readonly Step<Call>[]): boolean => {
  const touched = task.steps.filter((step) => step.do !== 'call').map(stepTarget);
  return steps.some((step) => step.do !== 'call' && touched.includes(stepTarget(step)));
};

const latchedBy = (
  rows: readonly { readonly name: string; readonly decision: { readonly latch?: object } }[],
): Readonly<Record<string, readonly string[]>> => {
  const fields = new Set(rows.flatMap(({ decision }) => Object.keys(decision.latch ?? {})));
  const namesFor = (field: string): readonly string[] =>
    rows.filter(({ decision }) => decision.latch && field in decision.latch).map(({ name }) => name);
  return Object.fromEntries([...fields].map((field) => [field, namesFor(field)]));
};

/** Two rows that latch one field differently would overwrite each other in every reconcile. */
function mergeLatches<Status extends object>(latches: readonly Partial<Status>[]): Partial<Status> | undefined {
  if (latches.length === 0) return undefined;
  return latches.reduce((merged, latch) => {
    const twice = Object.entries(latch).find(
      ([field, value]) => field in merged && !sameJson(Reflect.get(merged, field), value),
    );
    if (twice) throw new Error(`two rows latch status.${twice[0]} differently`);
    return { ...merged, ...latch };
  });
}
