/** What every object and every kind has. */
import type { ObjectMeta } from '../gen/kube.ts';
import { ApiError } from './errors.ts';

export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** A kind as it appears in the API server's paths. The type parameter is the type of its objects. */
export interface Resource<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  /** Never set: carries the type. */
  readonly object?: T;
}

export interface Ref {
  readonly namespace: string;
  readonly name: string;
}

/** Some fields of an object, for a patch. */
export type Fields = Readonly<Record<string, unknown>>;

export const apiVersionOf = (r: Resource): string => (r.group === '' ? r.version : `${r.group}/${r.version}`);

/** Decoded by the API server, "a%2Fb" would name a subresource, and ".." another collection: no object has such a name. */
function segment(name: string): string {
  if (/^(|[.]|[.][.])$|[/%]/.test(name))
    throw new ApiError('path', 400, { reason: 'BadRequest', message: `${JSON.stringify(name)} is not a name` });
  return encodeURIComponent(name);
}

export const pathOf = (r: Resource, namespace?: string, name?: string): string => {
  const base = r.group === '' ? `/api/${r.version}` : `/apis/${r.group}/${r.version}`;
  const scope = namespace === undefined || namespace === '' ? '' : `/namespaces/${segment(namespace)}`;
  return `${base}${scope}/${r.plural}${name === undefined ? '' : `/${segment(name)}`}`;
};

/** `namespace/name`: the key of an object in queues and caches. */
export const keyOf = (object: KubeObject): string => `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`;
export const refKey = (ref: Ref): string => `${ref.namespace}/${ref.name}`;
export function refOf(key: string): Ref {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** resourceVersions are numbers that do not fit a double: longer is newer, then digit by digit. */
export const isAtLeast = (version: string, wanted: string): boolean =>
  version.length === wanted.length ? version >= wanted : version.length > wanted.length;
