/** The client port against a real API server. */

import {
  type Client,
  FIELD_MANAGER,
  type ListPage,
  type PatchOptions,
  type Preconditions,
  type Selection,
  type WatchCall,
} from './client.ts';
import { ApiError, isNotFound } from './errors.ts';
import { apiVersionOf, type Fields, type KubeObject, pathOf, type Ref, type Resource } from './object.ts';
import { Semaphore } from './semaphore.ts';
import type { Call, Transport } from './transport.ts';
import type { WireEvent } from './watch-protocol.ts';

const PAGE = 500;
/**
 * Limit of concurrent creations per kind. An API server allocates the addresses of Services one after the other; five
 * hundred concurrent creations delay each other until all of them time out, are undone and retried.
 */
const CREATES_AT_ONCE = 32;

/** Whether a write may be sent, and for how long one that waits for its connection may still be sent. */
export interface Fence {
  readonly open: () => boolean;
  readonly remainingMs: () => number;
}

export class HttpClient implements Client {
  readonly transport: Transport;
  readonly #fence: Fence | undefined;
  readonly #fieldManager: string;
  readonly #creates = new Map<string, Semaphore>();

  constructor(transport: Transport, fence?: Fence, fieldManager = FIELD_MANAGER) {
    this.transport = transport;
    this.#fence = fence;
    this.#fieldManager = fieldManager;
  }

  /** The same connections, with writes only while the fence is open. */
  guardedBy(fence: Fence): HttpClient {
    return new HttpClient(this.transport, fence, this.#fieldManager);
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: Ref, signal?: AbortSignal): Promise<T | undefined> {
    // An earlier operator accepted references with an empty name: a GET without a name would list the whole kind.
    if (ref.name === '') return undefined;
    try {
      return await this.transport.json<T>(pathOf(resource, ref.namespace, ref.name), signal ? { signal } : {});
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async *pages<T extends KubeObject>(resource: Resource<T>, selection: Selection): AsyncGenerator<ListPage<T>> {
    let next = '';
    do {
      const page: ListPage<T> = await this.transport.json<ListPage<T>>(pathOf(resource, selection.namespace), {
        query: {
          limit: String(PAGE),
          ...(selection.selector && { labelSelector: selection.selector }),
          ...(selection.fields && { fieldSelector: selection.fields }),
          ...(next !== '' && { continue: next }),
        },
        ...(selection.signal && { signal: selection.signal }),
      });
      yield page;
      next = page.metadata.continue ?? '';
    } while (next !== '');
  }

  create<T extends KubeObject>(resource: Resource<T>, object: T, signal?: AbortSignal): Promise<T> {
    const path = pathOf(resource, object.metadata.namespace);
    const call: Call = { method: 'POST', body: object, query: { fieldManager: this.#fieldManager } };
    const semaphore = this.#creates.get(resource.plural) ?? new Semaphore(CREATES_AT_ONCE);
    this.#creates.set(resource.plural, semaphore);
    return semaphore.run(() => this.#write(path, call, signal), signal);
  }

  dryRunCreate<T extends KubeObject>(resource: Resource<T>, object: T, signal?: AbortSignal): Promise<T> {
    const query = { fieldManager: this.#fieldManager, dryRun: 'All' };
    return this.#write(pathOf(resource, object.metadata.namespace), { method: 'POST', body: object, query }, signal);
  }

  apply<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    uid: string,
    fields: Fields,
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
    const query = { fieldManager: this.#fieldManager, force: 'true' };
    return this.#write(path, { method: 'PATCH', body, query, contentType: 'application/apply-patch+yaml' }, signal);
  }

  patch<T extends KubeObject>(resource: Resource<T>, ref: Ref, body: Fields, options: PatchOptions = {}): Promise<T> {
    const path = pathOf(resource, ref.namespace, ref.name) + (options.subresource ? `/${options.subresource}` : '');
    const query = { fieldManager: this.#fieldManager };
    const call: Call = { method: 'PATCH', body, query, contentType: 'application/merge-patch+json' };
    return this.#write(path, call, options.signal);
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    preconditions: Preconditions,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    const path = pathOf(resource, ref.namespace, ref.name);
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions, propagationPolicy: 'Background' };
    try {
      const answer = await this.#write<T>(path, { method: 'DELETE', body }, signal);
      return isNotBeingDeleted(answer) ? answer : undefined;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return undefined;
    }
  }

  watch<T extends KubeObject>(resource: Resource<T>, call: WatchCall): AsyncIterable<WireEvent<T>> {
    const { query, signal } = call;
    return this.transport.lines<WireEvent<T>>(pathOf(resource, call.namespace), { query, signal });
  }

  /**
   * The fence is checked when the request is sent, not only here. A write that waits for its connection is aborted when
   * the fence closes: it would arrive after another replica has become the leader.
   */
  #write<T>(path: string, call: Call, signal: AbortSignal | undefined): Promise<T> {
    const fence = this.#fence;
    const fenced = fence && { limitMs: Math.max(0, Math.floor(fence.remainingMs())), maySend: fence.open };
    return asConflict(this.transport.json<T>(path, { ...call, ...fenced, ...(signal && { signal }) }));
  }
}

/**
 * A write with the uid of an object that was recreated meanwhile is a conflict like any other. The API server reports
 * 422, an attempt to change the uid, and users would read that a policy refused something.
 */
async function asConflict<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const isOther = !(error instanceof ApiError) || error.code !== 422;
    if (isOther || !error.serverMessage.includes('metadata.uid: Invalid value')) throw error;
    throw new ApiError('write', 409, { reason: 'Conflict', message: error.serverMessage }, { cause: error });
  }
}

/**
 * The API server responds to a deletion with the object while a finalizer holds it, and with a Status or the last state
 * once it is deleted.
 */
const isNotBeingDeleted = (answer: KubeObject): boolean =>
  answer.kind !== 'Status' &&
  answer.metadata.deletionTimestamp !== undefined &&
  ((answer.metadata.finalizers?.length ?? 0) > 0 || (answer.metadata.deletionGracePeriodSeconds ?? 0) > 0);
