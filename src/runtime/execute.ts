/** Carries out a plan: what must be durable first, steps in order, status, Events. Stops at the first step that fails. */
import type { Client } from '../kube/client.ts';
import { type ApiError, isNotFound, isRefusal } from '../kube/errors.ts';
import type { Recorder } from '../kube/events.ts';
import type { KubeObject, Ref, Resource } from '../kube/object.ts';
import { mergePatch } from '../lib/merge-patch.ts';
import { type Fields, type NamedCall, type ObjectRef, type Plan, RetryLater, type Step } from './plan.ts';

export interface ExecuteOptions<Call extends NamedCall = never> {
  readonly client: Client;
  readonly recorder: Recorder;
  /** Every kind that plans speak about, by its name. */
  readonly resources: ReadonlyMap<string, Resource>;
  readonly onWrite: (write: Write) => void;
  /** Carries out calls; rejects with RetryLater when the moment is wrong. */
  readonly call?: (call: Call, signal: AbortSignal) => Promise<void>;
  /** Whether a change of status can wait a little, so that several become one write. */
  readonly mayWait: (after: object) => boolean;
  /** Whether these changes of a status must be refused when the object has changed since it was observed. */
  readonly needsVersion: (changes: object) => boolean;
}

/** What was to be changed is gone: the cache does not know it yet. */
export class TargetGone extends Error {
  override readonly name = 'Vanished';
}

const unlessGone = async <T>(ref: Ref, change: Promise<T>): Promise<T> => {
  try {
    return await change;
  } catch (error) {
    throw isNotFound(error) ? new TargetGone(`${ref.namespace}/${ref.name} is gone`) : error;
  }
};

/** How it went, if not all was done. */
export type Outcome =
  | { readonly is: 'done' }
  /** Nothing is wrong but the moment. */
  | {
      readonly is: 'retryLater';
      readonly message: string;
      readonly kind: string | undefined;
      readonly retryMs: number;
    };

/** A write that happened: the cache must have seen this version before the next decision about the same key. */
export interface Write {
  readonly resource: Resource;
  readonly verb: string;
  readonly namespace: string;
  /** What the server answered with; a deletion that was carried out at once has none. */
  readonly resourceVersion: string | undefined;
  /** The object as it is now. */
  readonly object?: KubeObject;
  /** The object that is no more. */
  readonly gone?: { readonly name: string; readonly uid: string };
}

/** The object that a plan is about, with the status that the plan was made from. */
export type Subject<Status extends object> = KubeObject & { readonly status?: Status };

export async function execute<Status extends object, Call extends NamedCall>(
  plan: Plan<Status, Call>,
  subject: Subject<Status>,
  resource: Resource<Subject<Status>>,
  options: ExecuteOptions<Call>,
  signal: AbortSignal,
): Promise<Outcome> {
  let current = subject;
  const writeStatus = async (after: Partial<Status>): Promise<void> => {
    const status = mergePatch(current.status, after);
    if (!status) return;
    const { uid, resourceVersion, name = '', namespace = '' } = current.metadata;
    const ref = { namespace, name };
    // Only what must not be written from a stale view has the resourceVersion as its precondition. The cluster controller
    // patches fields of an EtcdMember that the member controller does not write: each would be a 409 (2-3 per new cluster).
    const metadata = { uid, ...((plan.latch || options.needsVersion(status)) && { resourceVersion }) };
    const body = { metadata, status };
    current = await unlessGone(ref, options.client.patch(resource, ref, body, { subresource: 'status', signal }));
    report(options, resource, 'patch', current);
  };
  const tell = (): void => {
    for (const notice of plan.events) options.recorder.record(resource, subject, notice);
  };
  // The status says nothing that is not so before the steps: with a latch it is one write. What is told of it is told with it:
  // after a step that fails, the next pass would find nothing new in it.
  if (plan.latch) await writeStatus({ ...plan.status, ...plan.latch }).then(tell);
  const { outcome, refusal } = await runSteps(plan.steps, options, signal);
  if (!plan.latch && !options.mayWait(plan.status)) await writeStatus(plan.status);
  if (!plan.latch) tell();
  if (!refusal) return outcome;
  options.recorder.record(resource, subject, {
    type: 'Warning',
    reason: 'Refused',
    note: `refused by the API server: ${refusal.said}`,
  });
  throw refusal;
}

/** A step that is refused must not keep the status from being told: a refusal by policy is thrown after that. */
async function runSteps<Call extends NamedCall>(
  steps: readonly Step<Call>[],
  options: ExecuteOptions<Call>,
  signal: AbortSignal,
): Promise<{ readonly outcome: Outcome; readonly refusal?: ApiError }> {
  for (const step of steps)
    try {
      await runStep(step, options, signal);
    } catch (error) {
      if (error instanceof RetryLater && step.do === 'call')
        return { outcome: { is: 'retryLater', message: error.message, kind: error.kind, retryMs: step.retryMs } };
      if (!isRefusal(error)) throw error;
      return { outcome: { is: 'done' }, refusal: error };
    }
  return { outcome: { is: 'done' } };
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
      const object = await unlessGone(
        step.to,
        client.apply(resource, refOf(step.to), step.to.uid, step.fields, signal),
      );
      return report(options, resource, 'apply', object);
    }
    case 'patch': {
      const resource = resourceOf(options, step.to.kind);
      const how = { signal, ...(step.subresource && { subresource: step.subresource }) };
      const body = withPreconditions(step.fields, step.to);
      return report(
        options,
        resource,
        'patch',
        await unlessGone(step.to, client.patch(resource, refOf(step.to), body, how)),
      );
    }
    case 'delete': {
      const resource = resourceOf(options, step.what.kind);
      const { uid, resourceVersion, namespace, name } = step.what;
      const preconditions = { uid, ...(resourceVersion && { resourceVersion }) };
      const left = await client.delete(resource, refOf(step.what), preconditions, signal);
      if (left) return report(options, resource, 'delete', left);
      return options.onWrite({ resource, verb: 'delete', namespace, resourceVersion: undefined, gone: { name, uid } });
    }
    case 'call': {
      if (!options.call) throw new Error(`a plan calls ${step.call.name}, and this controller makes no calls`);
      return options.call(step.call, signal);
    }
  }
}

const refOf = (seen: ObjectRef): Ref => ({ namespace: seen.namespace, name: seen.name });

/** The API server compares uid and resourceVersion of a patch with the object's, and refuses when they differ. */
function withPreconditions(fields: Fields, to: ObjectRef): Fields {
  const metadata: object = fields['metadata'] ?? {};
  const { uid, resourceVersion } = to;
  return { ...fields, metadata: { ...metadata, uid, ...(resourceVersion && { resourceVersion }) } };
}

function resourceOf(options: Pick<ExecuteOptions, 'resources'>, kind: string): Resource {
  const resource = options.resources.get(kind);
  if (!resource) throw new Error(`a plan speaks about ${kind}, which this operator does not know`);
  return resource;
}
