/** The operator's port to Kubernetes. `HttpClient` implements it with a real API server, tests with a model. */
import type { Fields, KubeObject, Ref, Resource } from './object.ts';
import type { WireEvent } from './watch-protocol.ts';

export const FIELD_MANAGER = 'etcd-operator';

/** Deletion preconditions: the uid selects exactly this object, a resourceVersion exactly this state of it. */
export interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export interface Selection {
  /** Absent: all namespaces. */
  readonly namespace?: string;
  /** A label selector, as in `a=b,c`. */
  readonly selector?: string;
  /** A field selector, as in `regarding.name=a`. Each kind supports only some fields. */
  readonly fields?: string;
  readonly signal?: AbortSignal;
}

export interface ListPage<T> {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items: readonly T[];
}

export interface PatchOptions {
  readonly subresource?: 'status';
  readonly signal?: AbortSignal;
}

export interface WatchCall {
  readonly namespace?: string;
  readonly query: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface Client {
  get<T extends KubeObject>(resource: Resource<T>, ref: Ref, signal?: AbortSignal): Promise<T | undefined>;
  /** Page by page: parsing one large response would block the event loop. */
  pages<T extends KubeObject>(resource: Resource<T>, selection: Selection): AsyncIterable<ListPage<T>>;
  create<T extends KubeObject>(resource: Resource<T>, object: T, signal?: AbortSignal): Promise<T>;
  /** A server-side dry run: rejects as the creation would, and creates nothing. */
  dryRunCreate<T extends KubeObject>(resource: Resource<T>, object: T, signal?: AbortSignal): Promise<T>;
  /**
   * Server-side apply of the fields that the operator owns. The uid makes it an update of exactly that object: without
   * it, apply would take over a foreign object of the same name.
   */
  apply<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    uid: string,
    fields: Fields,
    signal?: AbortSignal,
  ): Promise<T>;
  /** Merge patch. With a resourceVersion, the API server refuses it (409) when the object has changed. */
  patch<T extends KubeObject>(resource: Resource<T>, ref: Ref, body: Fields, options?: PatchOptions): Promise<T>;
  /**
   * Deletes exactly the object that was read; an object that is already deleted is a success. Resolves to the object
   * while finalizers or a grace period keep it, and to undefined once it is deleted.
   */
  delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    preconditions: Preconditions,
    signal?: AbortSignal,
  ): Promise<T | undefined>;
  /** The events of one watch connection, until the API server or the signal ends it. */
  watch<T extends KubeObject>(resource: Resource<T>, call: WatchCall): AsyncIterable<WireEvent<T>>;
}

/** The same client, which creates each object as `shape` returns it. */
export const creating = (client: Client, shape: <T extends KubeObject>(object: T) => T): Client => ({
  get: (...call) => client.get(...call),
  pages: (...call) => client.pages(...call),
  create: (resource, object, signal) => client.create(resource, shape(object), signal),
  dryRunCreate: (resource, object, signal) => client.dryRunCreate(resource, shape(object), signal),
  apply: (...call) => client.apply(...call),
  patch: (...call) => client.patch(...call),
  delete: (...call) => client.delete(...call),
  watch: (...call) => client.watch(...call),
});

/** All pages of a list. Only for lists that are known to be short. */
export async function listAll<T extends KubeObject>(
  client: Pick<Client, 'pages'>,
  resource: Resource<T>,
  selection: Selection = {},
): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const page of client.pages(resource, selection)) found.push(...page.items);
  return found;
}
