/**
 * A model of the API server behind the port of the real client: strict, small and deterministic. It has no timers and no
 * clock but a counter; the garbage collector runs when a test calls it, and caches receive changes when a test releases them.
 * `test/contract/kube.test.ts` and `kube-watch.test.ts` compare it with a real API server.
 */

import type { Pod, PodDisruptionBudget } from '../../../src/gen/kube.ts';
import type { ListPage, PatchOptions, Preconditions, Selection, WatchCall } from '../../../src/kube/client.ts';
import { FIELD_MANAGER } from '../../../src/kube/client.ts';
import { apiVersionOf, type KubeObject, keyOf, type Ref, type Resource, refKey } from '../../../src/kube/object.ts';
import { podDisruptionBudgets, pods } from '../../../src/kube/resources.ts';
import type { WireEvent } from '../../../src/kube/watch-protocol.ts';
import type { KubectlClient } from '../../support/kubectl/client.ts';
import { Ownership } from './kube-apply.ts';
import { budgetStatus, covers, mayEvict } from './kube-budgets.ts';
import { frozen, type Json, mergeInto, same } from './kube-json.ts';
import { ChangeLog } from './kube-log.ts';
import {
  check,
  counted,
  fail,
  isName,
  list,
  metaOf,
  ownMetadata,
  refOf,
  refused,
  withGeneration,
  withMetadata,
  withStatus,
} from './kube-object.ts';
import { fieldsMatch, labelsMatch } from './kube-selector.ts';

interface Stored {
  readonly resource: Resource;
  readonly object: Json;
  readonly ownership: Ownership;
}

export { refused } from './kube-object.ts';

export interface ModelOptions {
  /** Called with each object before it is stored: sets defaults, or throws what `refused` returns. */
  readonly admit?: (resource: Resource, object: KubeObject) => KubeObject;
  /** The wall clock, for deletionTimestamp. */
  readonly now?: () => number;
}

export class ModelApiServer implements KubectlClient {
  readonly #options: ModelOptions;
  /** By kind, then by namespace and name. */
  readonly #kinds = new Map<string, Map<string, Stored>>();
  readonly log = new ChangeLog();
  #names = 0;

  constructor(options: ModelOptions = {}) {
    this.#options = options;
  }

  get version(): string {
    return String(this.log.version);
  }

  #stored({ plural, group }: Resource): Map<string, Stored> {
    const name = `${plural}.${group}`;
    const stored = this.#kinds.get(name) ?? new Map<string, Stored>();
    if (stored.size === 0) this.#kinds.set(name, stored);
    return stored;
  }

  #find(resource: Resource, ref: Ref): Stored {
    const found = this.#stored(resource).get(refKey(ref));
    if (!found) throw fail(404, 'NotFound', `${resource.plural} "${ref.name}" not found`);
    return found;
  }

  /** The stored objects of a kind, without a copy: for observers outside of the simulation. */
  peek<T extends KubeObject>(resource: Resource<T>): readonly T[] {
    return Array.from(this.#stored(resource).values(), ({ object }) => object as unknown as T);
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: Ref, signal?: AbortSignal): Promise<T | undefined> {
    signal?.throwIfAborted();
    return this.#stored(resource).get(refKey(ref))?.object as T | undefined;
  }

  async *pages<T extends KubeObject>(resource: Resource<T>, selection: Selection): AsyncGenerator<ListPage<T>> {
    yield { metadata: { resourceVersion: this.version }, items: this.#select(resource, selection) };
  }

  #select<T extends KubeObject>(resource: Resource<T>, { namespace, selector, fields }: Selection): T[] {
    return this.peek(resource)
      .filter((o) => namespace === undefined || o.metadata.namespace === namespace)
      .filter((o) => labelsMatch(o, selector) && fieldsMatch(o, fields))
      .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const { ref, admitted } = this.#accepted(resource, object);
    const owned = new Ownership(resource.kind).updated(FIELD_MANAGER, {}, admitted);
    return this.#put(resource, ref, admitted, owned, 'ADDED') as unknown as T;
  }

  async dryRunCreate<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.#accepted(resource, object).admitted as unknown as T;
  }

  /** The object as it would be stored. */
  #accepted(resource: Resource, object: KubeObject): { readonly ref: Ref; readonly admitted: Json } {
    const { metadata, status: _, ...rest } = object as unknown as Json;
    const given = metadata as Json;
    if (given['resourceVersion'])
      throw fail(400, 'BadRequest', 'resourceVersion should not be set on objects to be created');
    const name = (given['name'] as string) || ((given['generateName'] as string) ?? '') + this.#suffix();
    if (!isName(name)) throw refused(`metadata.name: Invalid value: ${JSON.stringify(name)}`);
    const ref = { namespace: (given['namespace'] as string) ?? '', name };
    if (this.#stored(resource).has(refKey(ref)))
      throw fail(409, 'AlreadyExists', `${resource.plural} "${name}" already exists`);
    const uid = `00000000-0000-4000-8000-${String(this.log.version + 1).padStart(12, '0')}`;
    const whole = {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      ...rest,
      metadata: {
        ...ownMetadata(given),
        name,
        uid,
        ...(counted(resource) && { generation: 1 }),
        creationTimestamp: this.#time(),
      },
    } as unknown as Json;
    return { ref, admitted: this.#admit(resource, whole) };
  }

  /** Stores an object as another API server had it, with its uid, its status and its timestamps. */
  load<T extends KubeObject>(resource: Resource<T>, object: T): void {
    const whole = object as unknown as Json;
    const owned = new Ownership(resource.kind).updated(FIELD_MANAGER, {}, whole);
    this.#put(resource, refOf(metaOf(whole)), whole, owned, 'ADDED');
  }

  async apply<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    uid: string,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<T> {
    const { object, ownership } = this.#find(resource, ref);
    check(object, { uid }, resource);
    const { after, owned } = ownership.apply(FIELD_MANAGER, object, fields);
    return this.#update(resource, ref, object, after, owned) as unknown as T;
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    body: Readonly<Record<string, unknown>>,
    options: PatchOptions = {},
  ): Promise<T> {
    const { object, ownership } = this.#find(resource, ref);
    const given = (body['metadata'] ?? {}) as Json;
    check(object, given, resource);
    const merged = mergeInto(object, body) as Json;
    const after =
      options.subresource === 'status'
        ? { ...object, ...('status' in merged && { status: merged['status'] }) }
        : withStatus(merged, object['status']);
    const owned = options.subresource ? ownership : ownership.updated(FIELD_MANAGER, object, after);
    return this.#update(resource, ref, object, after, owned) as unknown as T;
  }

  /** Every change of an existing object goes through here. */
  #update(resource: Resource, ref: Ref, before: Json, wanted: Json, ownership: Ownership): Json {
    const after = withGeneration(resource, before, this.#admit(resource, withMetadata(before, wanted)));
    if (same(after, before)) return before; // a write that changes nothing creates no new version
    const was = metaOf(before);
    const finished = was['deletionTimestamp'] !== undefined && list(metaOf(after)['finalizers']).length === 0;
    if (finished && !was['deletionGracePeriodSeconds']) return this.#remove(resource, ref, after);
    return this.#put(resource, ref, after, ownership, 'MODIFIED');
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    preconditions: Preconditions,
  ): Promise<T | undefined> {
    const found = this.#stored(resource).get(refKey(ref));
    if (!found) return undefined;
    const { object, ownership } = found;
    check(object, preconditions, resource);
    const meta = metaOf(object);
    // A Pod with a node exists until its kubelet has ended it.
    const graceful = resource.kind === 'Pod' && (object['spec'] as Json | undefined)?.['nodeName'] !== undefined;
    if (list(meta['finalizers']).length === 0 && !graceful) {
      this.#remove(resource, ref, object);
      return undefined;
    }
    if (meta['deletionTimestamp'] !== undefined) return object as unknown as T;
    const marked = {
      ...meta,
      ...(counted(resource) && { generation: Number(meta['generation']) + 1 }),
      deletionTimestamp: this.#time(),
      ...(graceful && { deletionGracePeriodSeconds: 30 }),
    };
    return this.#put(resource, ref, { ...object, metadata: marked }, ownership, 'MODIFIED') as unknown as T;
  }

  /** What a kubelet does when the process of a Pod has ended. */
  finishPod(resource: Resource, ref: Ref): void {
    const found = this.#stored(resource).get(refKey(ref));
    if (!found) return;
    const { deletionGracePeriodSeconds: _, ...meta } = metaOf(found.object);
    if (list(meta['finalizers']).length === 0) this.#remove(resource, ref, found.object);
    else this.#put(resource, ref, { ...found.object, metadata: meta }, found.ownership, 'MODIFIED');
  }

  async evict(ref: Ref, preconditions: Preconditions): Promise<void> {
    const found = this.#stored(pods).get(refKey(ref));
    if (!found) return;
    check(found.object, preconditions, pods);
    const pod = found.object as unknown as Pod;
    const verdict = mayEvict(
      pod,
      this.peek(podDisruptionBudgets).filter((budget) => covers(budget, pod)),
    );
    if (verdict.is === 'refused')
      throw fail(verdict.code, verdict.code === 429 ? 'TooManyRequests' : 'InternalError', verdict.message);
    if (verdict.is === 'counted') this.#count(verdict.budget, ref.name);
    await this.delete(pods, ref, preconditions);
  }

  /** The eviction counts immediately, not only when the disruption controller observes it. */
  #count({ metadata, status }: PodDisruptionBudget, pod: string): void {
    const { disruptionsAllowed = 0, disruptedPods = {} } = status ?? {};
    const granted = { ...disruptedPods, [pod]: this.#time() };
    const next = { ...status, disruptionsAllowed: disruptionsAllowed - 1, disruptedPods: granted };
    this.#setStatus(podDisruptionBudgets, refOf(metadata as unknown as Json), next);
  }

  #setStatus(resource: Resource, ref: Ref, status: unknown): boolean {
    const { object, ownership } = this.#find(resource, ref);
    return this.#update(resource, ref, object, { ...object, status }, ownership) !== object;
  }

  /** One round of the disruption controller. True when it changed a status. */
  countDisruptions(): boolean {
    let some = false;
    for (const budget of this.peek(podDisruptionBudgets)) {
      const covered = this.peek(pods).filter((pod) => covers(budget, pod));
      const status = budgetStatus(budget, covered, this.#now());
      if (this.#setStatus(podDisruptionBudgets, refOf(budget.metadata as Json), status)) some = true;
    }
    return some;
  }

  async scale(resource: Resource, ref: Ref, replicas: number): Promise<void> {
    await this.patch(resource, ref, { spec: { replicas } });
  }

  watch<T extends KubeObject>(resource: Resource<T>, call: WatchCall): AsyncIterable<WireEvent<T>> {
    const { query, namespace } = call;
    const selection = {
      ...(namespace !== undefined && { namespace }),
      ...(query['labelSelector'] !== undefined && { selector: query['labelSelector'] }),
    };
    const initial = query['sendInitialEvents'] === 'true' ? this.#select(resource, selection) : undefined;
    const bookmarks = query['allowWatchBookmarks'] === 'true';
    const since = initial ? this.version : (query['resourceVersion'] ?? this.version);
    return this.log.watch<T>(resource, selection, { initial, since, bookmarks, signal: call.signal });
  }

  /** One round of the garbage collector: deletes what has no owner that exists. True when it deleted something. */
  async collectGarbage(): Promise<boolean> {
    const all = [...this.#kinds.values()].flatMap((stored) => [...stored.values()]);
    const owned = all.filter(({ object }) => metaOf(object)['ownerReferences'] !== undefined);
    if (owned.length === 0) return false;
    const uids = new Set(all.map(({ object }) => metaOf(object)['uid']));
    let some = false;
    for (const { resource, object } of owned) {
      const meta = metaOf(object);
      const owners = meta['ownerReferences'] as readonly { readonly uid: string }[];
      const left = owners.filter(({ uid }) => uids.has(uid));
      if (left.length === owners.length || meta['deletionTimestamp'] !== undefined) continue;
      const uid = meta['uid'] as string;
      if (left.length === 0) await this.delete(resource, refOf(meta), { uid });
      else await this.patch(resource, refOf(meta), { metadata: { ownerReferences: left } });
      some = true;
    }
    return some;
  }

  #admit(resource: Resource, object: Json): Json {
    const whole = frozen(object);
    const admitted = this.#options.admit?.(resource, whole as unknown as KubeObject) ?? whole;
    return frozen(admitted) as unknown as Json;
  }

  #put(resource: Resource, ref: Ref, object: Json, ownership: Ownership, type: 'ADDED' | 'MODIFIED'): Json {
    const all = this.#stored(resource);
    const before = all.get(refKey(ref))?.object;
    const stored = frozen(this.log.stamped(object));
    all.set(refKey(ref), { resource, object: stored, ownership });
    this.log.append(resource, type, stored, before);
    return stored;
  }

  #remove(resource: Resource, ref: Ref, last: Json): Json {
    const all = this.#stored(resource);
    const before = all.get(refKey(ref))?.object;
    all.delete(refKey(ref));
    const stamped = frozen(this.log.stamped(last));
    this.log.append(resource, 'DELETED', stamped, before);
    return stamped;
  }

  #suffix(): string {
    return (++this.#names).toString(36).padStart(5, '0');
  }

  #now(): number {
    return this.#options.now?.() ?? 0;
  }

  #time(): string {
    return new Date(this.#now()).toISOString().replace(/\.\d+Z$/, 'Z');
  }
}
