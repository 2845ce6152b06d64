/** What the API server validates and sets on every object, whatever its kind. */
import type { Preconditions } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { KubeObject, Ref, Resource } from '../../../src/kube/object.ts';
import { type Json, same } from './kube-json.ts';

export const fail = (code: number, reason: string, message: string): ApiError =>
  new ApiError('model', code, { code, reason, message });
export const refused = (message: string): ApiError => fail(422, 'Invalid', message);

/** The metadata that a client may set; everything else is the server's. */
const OWN_METADATA = ['name', 'generateName', 'namespace', 'labels', 'annotations', 'finalizers', 'ownerReferences'];
const UNCOUNTED = ['ConfigMap', 'Secret', 'Service', 'PersistentVolumeClaim', 'Lease', 'Event'];
const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

export const isName = (name: string): boolean => NAME.test(name);
export const metaOf = (object: Json): Json => object['metadata'] as Json;
export const list = (value: unknown): readonly string[] => (value as readonly string[] | undefined) ?? [];
export const refOf = (meta: Json): Ref => ({
  namespace: (meta['namespace'] as string) ?? '',
  name: meta['name'] as string,
});
/** Whether the server counts the generations of this kind. */
export const counted = ({ kind }: Resource): boolean => !UNCOUNTED.includes(kind);

export function ownMetadata(given: Json): Json {
  const own: Record<string, unknown> = {};
  for (const key of OWN_METADATA) if (given[key] !== undefined) own[key] = given[key];
  return own;
}

/** The object that a client sent, with the metadata that only the server sets unchanged. */
export function withMetadata(before: Json, wanted: Json): Json {
  const [was, own] = [metaOf(before), ownMetadata(metaOf(wanted))];
  const added = list(own['finalizers']).some((each) => !list(was['finalizers']).includes(each));
  if (was['deletionTimestamp'] !== undefined && added)
    throw fail(
      403,
      'Forbidden',
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted',
    );
  const kept: Record<string, unknown> = { ...own };
  for (const key in was) if (!OWN_METADATA.includes(key)) kept[key] = was[key];
  return { ...wanted, metadata: kept };
}

/** A change of the spec increments the generation. */
export function withGeneration(resource: Resource, before: Json, after: Json): Json {
  if (!counted(resource) || same(after['spec'], before['spec'])) return after;
  return { ...after, metadata: { ...metaOf(after), generation: Number(metaOf(before)['generation']) + 1 } };
}

/** The status changes only through its subresource; a write to the object itself leaves it unchanged. */
export function withStatus(object: Json, status: unknown): Json {
  const { status: _, ...rest } = object;
  return status === undefined ? rest : { ...rest, status };
}

export function check(object: Json, wanted: Partial<Preconditions>, resource: Resource): void {
  const { uid = '', resourceVersion, name = '' } = (object as unknown as KubeObject).metadata;
  if (wanted.uid !== undefined && wanted.uid !== uid)
    throw fail(409, 'Conflict', `${resource.plural} "${name}": Precondition failed: UID: ${wanted.uid} is not ${uid}`);
  if (wanted.resourceVersion !== undefined && wanted.resourceVersion !== resourceVersion)
    throw fail(409, 'Conflict', `${resource.plural} "${name}": the object has been modified`);
}
