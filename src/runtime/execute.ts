/**
 * Executes a plan: the latch first, then the steps in order up to the first that fails, then upkeep, whose tasks fail one by one,
 * then the status and the Events.
 */
import type { Client } from '../kube/client.ts';
import { isConflict, isNotFound, isRefusal } from '../kube/errors.ts';
import type { Recorder } from '../kube/events.ts';
import type { KubeObject, Ref, Resource } from '../kube/object.ts';
import { mergePatch, missingIn } from '../lib/merge-patch.ts';
import { type Clock, deadline } from './clock.ts';
import type { Fields, NamedCall, ObjectRef, Plan, Step, UpkeepTask } from './plan.ts';

export interface ExecuteOptions<Call extends NamedCall = never> {
  readonly client: Client;
  readonly clock: Clock;
  /** Aborts when the process ends. */
  readonly signal: AbortSignal;
  readonly recorder: Recorder;
  /** Every kind that plans have steps for, by its name. */
  readonly resources: ReadonlyMap<string, Resource>;
  readonly onWrite: (write: Write) => void;
  /** Executes calls; rejects with RetryLater when the call has to be repeated later. */
  readonly call?: (call: Call, signal: AbortSignal) => Promise<void>;
  /** Whether a status change is coalesced with the next one, so that several become one write. */
  readonly shouldCoalesce: (after: object) => boolean;
  /** Whether the API server must refuse these status changes when the object has changed since it was observed. */
  readonly needsVersion: (changes: object) => boolean;
}

/** The object to be changed is deleted, and the cache has not observed that yet. */
export class TargetGone extends Error {
  override readonly name = 'TargetGone';
}

/**
 * The API server has accepted a latch and dropped fields of it, which its CRDs do not have. Without them, the next reconcile would
 * not know what this one has done.
 */
export class LatchDropped extends Error {
  override readonly name = 'LatchDropped';
  /** As `status.trust.peer`. */
  readonly fields: readonly string[];
  constructor(paths: readonly string[]) {
    const fields = paths.map((path) => `status.${path}`);
    super(
      `the API server drops ${fields.join(', ')}: the CRDs are older than the operator. Install the CRDs of its chart (crds.enabled=true), or those under templates/crds`,
    );
    this.fields = fields;
  }
}

const unlessGone = async <T>(ref: Ref, change: Promise<T>): Promise<T> => {
  try {
    return await change;
  } catch (error) {
    throw isNotFound(error) ? new TargetGone(`${ref.namespace}/${ref.name} is deleted`) : error;
  }
};

/** How a sequence of steps ended. */
export type Outcome<Call extends NamedCall> =
  | { readonly is: 'done' }
  | { readonly is: 'failed'; readonly step: Step<Call>; readonly error: Error };

/** The object has been changed or deleted since it was observed: the decision was made on a stale cache. */
export const isStale = (error: unknown): boolean => isConflict(error) || error instanceof TargetGone;

export interface Executed<Call extends NamedCall> {
  readonly steps: Outcome<Call>;
  /** Without those that were deferred. */
  readonly upkeep: readonly { readonly task: UpkeepTask<Call>; readonly outcome: Outcome<Call> }[];
  /** The steps that depend on these fields have failed with it. */
  readonly dropped?: LatchDropped;
}

/** Leaves time for upkeep within the deadline of a reconcile. */
const STEPS_LIMIT_MS = 15_000;
/**
 * Of a task that only writes objects: an admission webhook that hangs must not delay the status for long. Longer than the ten
 * seconds after which the API server ignores a webhook by default: a shorter limit would give up every write to it.
 */
const UPKEEP_LIMIT_MS = 12_000;
/** Calls have time limits of their own: enabling auth takes eight requests, and seconds where etcd has little CPU. */
const UPKEEP_CALLS_LIMIT_MS = 20_000;
const STATUS_LIMIT_MS = 10_000;

/** A successful write: the cache must have observed it before the next reconcile of the same key. */
export interface Write {
  readonly resource: Resource;
  readonly verb: string;
  readonly namespace: string;
  /** Of the response; an object that was deleted at once has none. */
  readonly resourceVersion: string | undefined;
  /** The object in the response. */
  readonly object?: KubeObject;
  /** The object that was deleted at once. */
  readonly deleted?: { readonly name: string; readonly uid: string };
}

/** The object that is reconciled, with the status that the plan was decided from. */
export type Subject<Status extends object> = KubeObject & { readonly status?: Status };

export async function execute<Status extends object, Call extends NamedCall>(
  plan: Plan<Status, Call>,
  subject: Subject<Status>,
  resource: Resource<Subject<Status>>,
  options: ExecuteOptions<Call>,
  signal: AbortSignal,
): Promise<Executed<Call>> {
  let current = subject;
  const writeStatus = async (after: Partial<Status>): Promise<void> => {
    const status = mergePatch(current.status, after);
    if (!status) return;
    // Not the deadline of the reconcile: a status that is not written is the failure that hides all others.
    const { signal: limit, cancel } = deadline(options.clock, STATUS_LIMIT_MS, options.signal);
    const { uid, resourceVersion, name = '', namespace = '' } = current.metadata;
    const ref = { namespace, name };
    // Only fields that must not be written from a stale cache get a resourceVersion precondition. The cluster controller
    // patches fields of an EtcdMember that the member controller does not write: each would be a 409 (2-3 per new cluster).
    const metadata = { uid, ...((plan.latch || options.needsVersion(status)) && { resourceVersion }) };
    const body = { metadata, status };
    const how = { subresource: 'status', signal: limit } as const;
    current = await unlessGone(ref, options.client.patch(resource, ref, body, how)).finally(cancel);
    report(options, resource, 'patch', current);
  };
  const recordEvents = (): void => {
    for (const event of plan.events) options.recorder.record(resource, subject, event);
  };
  // The status is true before the steps run, so a latch and the status are one write. Its Events are recorded with it: after a
  // step that fails, the next reconcile would find no difference, and the Events would be lost.
  if (plan.latch) await writeStatus({ ...plan.status, ...plan.latch }).then(recordEvents);
  const dropped = droppedFrom(plan, current);
  const steps =
    dropped && dependsOn(plan, plan.rule, dropped)
      ? failedAtFirst(plan.steps, dropped)
      : await runSequence(plan.steps, options, signal, STEPS_LIMIT_MS);
  // The reconcile has taken too long: what was not tried has not failed.
  const due = signal.aborted ? [] : (plan.upkeep ?? []).filter((task) => !task.deferred);
  const upkeep = await Promise.all(
    due.map(async (task) => {
      if (dropped && dependsOn(plan, task.row, dropped)) return { task, outcome: failedAtFirst(task.steps, dropped) };
      const limitMs = task.steps.some((step) => step.do === 'call') ? UPKEEP_CALLS_LIMIT_MS : UPKEEP_LIMIT_MS;
      return { task, outcome: await runSequence(task.steps, options, signal, limitMs) };
    }),
  );
  for (const { error } of [steps, ...upkeep.map(({ outcome }) => outcome)].flatMap(failed))
    if (isRefusal(error)) {
      const note = `refused by the API server: ${error.serverMessage}`;
      options.recorder.record(resource, subject, { type: 'Warning', reason: 'Refused', note });
    }
  if (dropped) {
    const note = dropped.message;
    options.recorder.record(resource, subject, { type: 'Warning', reason: 'StatusFieldsDropped', note });
  }
  // Decided from a stale cache, the status may be wrong; the next reconcile follows at once.
  if (plan.latch || failed(steps).some(({ error }) => isStale(error)))
    return { steps, upkeep, ...(dropped && { dropped }) };
  if (!options.shouldCoalesce(plan.status)) await writeStatus(plan.status);
  recordEvents();
  return { steps, upkeep };
}

/** Compared with the response: an API server whose CRDs lack a field drops it without an error. */
function droppedFrom<Status extends object>(
  { latch }: Pick<Plan<Status>, 'latch'>,
  { status }: Subject<Status>,
): LatchDropped | undefined {
  const paths = latch ? missingIn(status, { ...latch }) : [];
  return paths.length === 0 ? undefined : new LatchDropped(paths);
}

const dependsOn = ({ latchedBy }: Pick<Plan<object>, 'latchedBy'>, row: string, { fields }: LatchDropped): boolean =>
  !latchedBy || fields.some((field) => latchedBy[field.split('.')[1] ?? '']?.includes(row));

const failedAtFirst = <Call extends NamedCall>([step]: readonly Step<Call>[], error: Error): Outcome<Call> =>
  step ? { is: 'failed', step, error } : { is: 'done' };

const failed = <Call extends NamedCall>(outcome: Outcome<Call>) => (outcome.is === 'failed' ? [outcome] : []);

/** Returns the failure instead of throwing it: the status that reports the state is written before the reconcile is retried. */
async function runSequence<Call extends NamedCall>(
  steps: readonly Step<Call>[],
  options: ExecuteOptions<Call>,
  signal: AbortSignal,
  limitMs: number,
): Promise<Outcome<Call>> {
  if (steps.length === 0) return { is: 'done' };
  const { signal: limit, cancel } = deadline(options.clock, limitMs, signal);
  try {
    for (const step of steps)
      try {
        await runStep(step, options, limit);
      } catch (error) {
        return { is: 'failed', step, error: error instanceof Error ? error : new Error(String(error)) };
      }
    return { is: 'done' };
  } finally {
    cancel();
  }
}

const report = (options: Pick<ExecuteOptions, 'onWrite'>, resource: Resource, verb: string, object: KubeObject): void =>
  options.onWrite({
    resource,
    verb,
    namespace: object.metadata.namespace ?? '',
    resourceVersion: object.metadata.resourceVersion,
    object,
  });

async function runStep<Call extends NamedCall>(
  step: Step<Call>,
  options: ExecuteOptions<Call>,
  signal: AbortSignal,
): Promise<void> {
  const { client } = options;
  switch (step.do) {
    case 'create': {
      const resource = resourceOf(options, step.object.kind);
      return report(options, resource, 'create', await client.create(resource, step.object, signal));
    }
    case 'apply': {
      const resource = resourceOf(options, step.to.kind);
      const applied = client.apply(resource, refOf(step.to), step.to.uid, step.fields, signal);
      return report(options, resource, 'apply', await unlessGone(step.to, applied));
    }
    case 'patch': {
      const resource = resourceOf(options, step.to.kind);
      const how = { signal, ...(step.subresource && { subresource: step.subresource }) };
      const body = withPreconditions(step.fields, step.to);
      const patched = client.patch(resource, refOf(step.to), body, how);
      return report(options, resource, 'patch', await unlessGone(step.to, patched));
    }
    case 'delete': {
      const resource = resourceOf(options, step.what.kind);
      const { uid, resourceVersion, namespace, name } = step.what;
      const preconditions = { uid, ...(resourceVersion && { resourceVersion }) };
      const left = await client.delete(resource, refOf(step.what), preconditions, signal);
      if (left) return report(options, resource, 'delete', left);
      const deleted = { name, uid };
      return options.onWrite({ resource, verb: 'delete', namespace, resourceVersion: undefined, deleted });
    }
    case 'call': {
      if (!options.call) throw new Error(`a plan calls ${step.call.name}, and this controller executes no calls`);
      return options.call(step.call, signal);
    }
  }
}

const refOf = (to: ObjectRef): Ref => ({ namespace: to.namespace, name: to.name });

/** The API server compares uid and resourceVersion of a patch with those of the object, and responds with 409 when they differ. */
function withPreconditions(fields: Fields, to: ObjectRef): Fields {
  const metadata: object = fields['metadata'] ?? {};
  const { uid, resourceVersion } = to;
  return { ...fields, metadata: { ...metadata, uid, ...(resourceVersion && { resourceVersion }) } };
}

function resourceOf(options: Pick<ExecuteOptions, 'resources'>, kind: string): Resource {
  const resource = options.resources.get(kind);
  if (!resource) throw new Error(`a plan has a step for the kind ${kind}, which is not registered`);
  return resource;
}
