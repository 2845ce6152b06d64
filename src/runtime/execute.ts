/** Carries out a plan: latch, steps in order, status, Events. Stops at the first step that fails. */
import type { Client } from '../kube/client.ts';
import { type ApiError, isRefusal } from '../kube/errors.ts';
import type { Recorder } from '../kube/events.ts';
import type { KubeObject, Ref, Resource } from '../kube/object.ts';
import { mergePatch } from '../lib/merge-patch.ts';
import type { Fields, Plan, Seen, Step } from './plan.ts';

export interface ExecuteOptions {
  readonly client: Client;
  readonly recorder: Recorder;
  /** Every kind that plans speak about, by its name. */
  readonly resources: ReadonlyMap<string, Resource>;
  readonly onWrite: (write: Write) => void;
}

/** A write that happened: the cache must have seen this version before the next decision about the same key. */
export interface Write {
  readonly resource: Resource;
  readonly verb: string;
  readonly namespace: string;
  /** What the server answered with; a deletion that was carried out at once has none. */
  readonly resourceVersion: string | undefined;
  /** The object that is no more. */
  readonly gone?: { readonly name: string; readonly uid: string };
}

/** The object that a plan is about, with the status that the plan was made from. */
export type Subject<Status extends object> = KubeObject & { readonly status?: Status };

export async function execute<Status extends object>(
  plan: Plan<Status>,
  subject: Subject<Status>,
  resource: Resource<Subject<Status>>,
  options: ExecuteOptions,
  signal: AbortSignal,
): Promise<void> {
  let current = subject;
  const writeStatus = async (after: Partial<Status>): Promise<void> => {
    const status = mergePatch(current.status, after);
    if (!status) return;
    const { uid, resourceVersion, name = '', namespace = '' } = current.metadata;
    const body = { metadata: { uid, resourceVersion }, status };
    current = await options.client.patch(resource, { namespace, name }, body, { subresource: 'status', signal });
    report(options, resource, 'patch', current);
  };
  if (plan.latch) await writeStatus({ ...current.status, ...plan.latch });
  const refusal = await takeAll(plan.steps, options, signal);
  await writeStatus(plan.status);
  for (const notice of plan.notices) options.recorder.record(resource, subject, notice);
  if (!refusal) return;
  options.recorder.record(resource, subject, {
    type: 'Warning',
    reason: 'Refused',
    note: `refused by the API server: ${refusal.said}`,
  });
  throw refusal;
}

/** A step that is refused by policy must not keep the status from being told: it is returned, and thrown after that. */
async function takeAll(
  steps: readonly Step[],
  options: ExecuteOptions,
  signal: AbortSignal,
): Promise<ApiError | undefined> {
  try {
    for (const step of steps) await take(step, options, signal);
    return undefined;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return error;
  }
}

const report = (options: ExecuteOptions, resource: Resource, verb: string, object: KubeObject): void =>
  options.onWrite({
    resource,
    verb,
    namespace: object.metadata.namespace ?? '',
    resourceVersion: object.metadata.resourceVersion,
  });

async function take(step: Step, options: ExecuteOptions, signal: AbortSignal): Promise<void> {
  const { client } = options;
  switch (step.do) {
    case 'create': {
      const resource = resourceOf(options, step.object.kind);
      return report(options, resource, 'create', await client.create(resource, step.object, signal));
    }
    case 'apply': {
      const resource = resourceOf(options, step.to.kind);
      const object = await client.apply(resource, refOf(step.to), step.to.uid, step.fields, signal);
      return report(options, resource, 'apply', object);
    }
    case 'patch': {
      const resource = resourceOf(options, step.to.kind);
      const how = { signal, ...(step.subresource && { subresource: step.subresource }) };
      const body = withPreconditions(step.fields, step.to);
      return report(options, resource, 'patch', await client.patch(resource, refOf(step.to), body, how));
    }
    case 'delete': {
      const resource = resourceOf(options, step.what.kind);
      const { uid, resourceVersion, namespace, name } = step.what;
      const preconditions = { uid, ...(resourceVersion && { resourceVersion }) };
      const left = await client.delete(resource, refOf(step.what), preconditions, signal);
      if (left) return report(options, resource, 'delete', left);
      return options.onWrite({ resource, verb: 'delete', namespace, resourceVersion: undefined, gone: { name, uid } });
    }
  }
}

const refOf = (seen: Seen): Ref => ({ namespace: seen.namespace, name: seen.name });

/** The API server compares uid and resourceVersion of a patch with the object's, and refuses when they differ. */
function withPreconditions(fields: Fields, to: Seen): Fields {
  const metadata: object = fields['metadata'] ?? {};
  const { uid, resourceVersion } = to;
  return { ...fields, metadata: { ...metadata, uid, ...(resourceVersion && { resourceVersion }) } };
}

function resourceOf(options: ExecuteOptions, kind: string): Resource {
  const resource = options.resources.get(kind);
  if (!resource) throw new Error(`a plan speaks about ${kind}, which this operator does not know`);
  return resource;
}
