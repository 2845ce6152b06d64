/** Reads and writes of single objects and pages of lists, typed per kind. */
import { isNotFound } from './errors.ts';
import { apiVersionOf, type KubeObject, pathOf, type Ref, type Resource } from './object.ts';
import type { Call, Transport } from './transport.ts';

export const FIELD_MANAGER = 'etcd-operator';
const PAGE = 500;

export interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export interface ListPage<T> {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items: readonly T[];
}

/** Thrown instead of a write when this process may not write any more. */
export class NotLeading extends Error {
  override readonly name = 'NotLeading';
  constructor() {
    super('this process no longer holds the lease: it must not write');
  }
}

export class Client {
  readonly #transport: Transport;
  readonly #mayWrite: () => boolean;

  /** `mayWrite` is asked right before every write: a process that was paused must not act on what it knew before. */
  constructor(transport: Transport, mayWrite: () => boolean = () => true) {
    this.#transport = transport;
    this.#mayWrite = mayWrite;
  }

  /** The same connections, with another answer to whether writes are allowed. */
  guardedBy(mayWrite: () => boolean): Client {
    return new Client(this.#transport, mayWrite);
  }

  get transport(): Transport {
    return this.#transport;
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: Ref, signal?: AbortSignal): Promise<T | undefined> {
    try {
      return await this.#transport.json<T>(pathOf(resource, ref.namespace, ref.name), signal ? { signal } : {});
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Page by page, so that no answer is large enough to hold up the loop. */
  async *pages<T extends KubeObject>(
    resource: Resource<T>,
    options: { readonly namespace?: string; readonly selector?: string; readonly signal?: AbortSignal },
  ): AsyncGenerator<ListPage<T>> {
    let next = '';
    do {
      const page: ListPage<T> = await this.#transport.json<ListPage<T>>(pathOf(resource, options.namespace), {
        query: {
          limit: String(PAGE),
          ...(options.selector && { labelSelector: options.selector }),
          ...(next !== '' && { continue: next }),
        },
        ...(options.signal && { signal: options.signal }),
      });
      yield page;
      next = page.metadata.continue ?? '';
    } while (next !== '');
  }

  create<T extends KubeObject>(resource: Resource<T>, object: T, signal?: AbortSignal): Promise<T> {
    const path = pathOf(resource, object.metadata.namespace);
    return this.#write(path, { method: 'POST', body: object, query: { fieldManager: FIELD_MANAGER } }, signal);
  }

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
  ): Promise<T> {
    const { metadata, ...rest } = fields;
    const body = {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      ...rest,
      metadata: { ...(metadata as object), name: ref.name, namespace: ref.namespace, uid },
    };
    const path = pathOf(resource, ref.namespace, ref.name);
    const query = { fieldManager: FIELD_MANAGER, force: 'true' };
    return this.#write(path, { method: 'PATCH', body, query, contentType: 'application/apply-patch+yaml' }, signal);
  }

  /** Merge patch. With a resourceVersion in it, it is refused when the object has moved on. */
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    body: Readonly<Record<string, unknown>>,
    options: { readonly subresource?: 'status'; readonly signal?: AbortSignal } = {},
  ): Promise<T> {
    const path = pathOf(resource, ref.namespace, ref.name) + (options.subresource ? `/${options.subresource}` : '');
    const query = { fieldManager: FIELD_MANAGER };
    const call: Call = { method: 'PATCH', body, query, contentType: 'application/merge-patch+json' };
    return this.#write(path, call, options.signal);
  }

  /** Deletes exactly the object that was looked at. An object that is gone already is a success. */
  async delete(resource: Resource, ref: Ref, preconditions: Preconditions, signal?: AbortSignal): Promise<void> {
    const path = pathOf(resource, ref.namespace, ref.name);
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions, propagationPolicy: 'Background' };
    try {
      await this.#write(path, { method: 'DELETE', body }, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  #write<T>(path: string, call: Call, signal: AbortSignal | undefined): Promise<T> {
    if (!this.#mayWrite()) return Promise.reject(new NotLeading());
    return this.#transport.json<T>(path, { ...call, ...(signal && { signal }) });
  }
}
