/** What the rest of the operator may ask of Kubernetes. `HttpClient` answers from a real API server, tests from a model. */
import type { KubeObject, Ref, Resource } from './object.ts';
import type { WireEvent } from './watch-protocol.ts';

export const FIELD_MANAGER = 'etcd-operator';

/** What a deletion is about: exactly this object, and with a version, exactly this state of it. */
export interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export interface Selection {
  /** All namespaces without one. */
  readonly namespace?: string;
  /** Labels, as in `a=b,c`. */
  readonly selector?: string;
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
  /** Page by page, so that no answer is large enough to hold up the loop. */
  pages<T extends KubeObject>(resource: Resource<T>, selection: Selection): AsyncIterable<ListPage<T>>;
  create<T extends KubeObject>(resource: Resource<T>, object: T, signal?: AbortSignal): Promise<T>;
  /**
   * Server-side apply of the fields that we own. The uid makes it an update of exactly that object: without it, apply would
   * take over whatever has the name.
   */
  apply<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    uid: string,
    fields: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<T>;
  /** Merge patch. With a resourceVersion in it, it is refused when the object has moved on. */
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    body: Readonly<Record<string, unknown>>,
    options?: PatchOptions,
  ): Promise<T>;
  /**
   * Deletes exactly the object that was looked at; one that is gone already is a success. Resolves to the object if it stays
   * for a while (finalizers, a grace period), and to nothing when it is gone.
   */
  delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    preconditions: Preconditions,
    signal?: AbortSignal,
  ): Promise<T | undefined>;
  /** Asks for a Pod's removal in a way that a PodDisruptionBudget can refuse (429). */
  evict(ref: Ref, preconditions: Preconditions, signal?: AbortSignal): Promise<void>;
  /** Sets the number of replicas of anything that can be scaled. */
  scale(resource: Resource, ref: Ref, replicas: number, signal?: AbortSignal): Promise<void>;
  /** The events of one watch connection, until the server or the signal ends it. */
  watch<T extends KubeObject>(resource: Resource<T>, call: WatchCall): AsyncIterable<WireEvent<T>>;
}

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
