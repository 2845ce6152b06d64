/**
 * A model of the API server behind the same port as the real client: strict, small and deterministic. It has no timers and no
 * clock but a counter; the garbage collector runs when it is told to. Caches see changes when they are let to.
 * `test/contract/kube.test.ts` holds it to what a real API server does.
 */
import type { Client, ListPage, PatchOptions, Preconditions, Selection, WatchCall } from '../../../src/kube/client.ts';
import { FIELD_MANAGER } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { apiVersionOf, type KubeObject, keyOf, type Ref, type Resource } from '../../../src/kube/object.ts';
import type { WireEvent } from '../../../src/kube/watch-protocol.ts';
import { applyFields, Ownership } from './kube-apply.ts';
import { type Json, mergeInto, same } from './kube-json.ts';
import { ChangeLog } from './kube-log.ts';
import { labelsMatch } from './kube-selector.ts';

interface Stored {
  readonly resource: Resource;
  readonly object: Json;
  readonly ownership: Ownership;
}

export interface ModelOptions {
  /** Called with each object before it is stored: defaults it, or throws what `refused` makes. */
  readonly admit?: (resource: Resource, object: KubeObject) => KubeObject;
  /** The time of day, for deletionTimestamp. */
  readonly now?: () => number;
}

const metaOf = (object: Json): Json => object['metadata'] as Json;
const fail = (code: number, reason: string, message: string): ApiError =>
  new ApiError('model', code, { code, reason, message });
export const refused = (message: string): ApiError => fail(422, 'Invalid', message);

/** What a client may set on an object's metadata; everything else is the server's. */
const OWN_METADATA = ['name', 'generateName', 'namespace', 'labels', 'annotations', 'finalizers', 'ownerReferences'];
const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

export class ModelApiServer implements Client {
  readonly #options: ModelOptions;
  readonly #stored = new Map<string, Stored>();
  readonly log = new ChangeLog();
  #names = 0;

  constructor(options: ModelOptions = {}) {
    this.#options = options;
  }

  get version(): string {
    return String(this.log.version);
  }

  #id(resource: Resource, ref: Ref): string {
    return `${resource.plural}.${resource.group}/${ref.namespace}/${ref.name}`;
  }

  #find(resource: Resource, ref: Ref): Stored {
    const found = this.#stored.get(this.#id(resource, ref));
    if (!found) throw fail(404, 'NotFound', `${resource.plural} "${ref.name}" not found`);
    return found;
  }

  /** What is stored of a kind, as it is: for those who look at the world from outside. Nobody may change it. */
  peek<T extends KubeObject>(resource: Resource<T>): readonly T[] {
    const found: T[] = [];
    for (const each of this.#stored.values())
      if (each.resource.plural === resource.plural && each.resource.group === resource.group)
        found.push(each.object as unknown as T);
    return found;
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: Ref, signal?: AbortSignal): Promise<T | undefined> {
    signal?.throwIfAborted();
    return structuredClone(this.#stored.get(this.#id(resource, ref))?.object) as T | undefined;
  }

  async *pages<T extends KubeObject>(resource: Resource<T>, selection: Selection): AsyncGenerator<ListPage<T>> {
    yield { metadata: { resourceVersion: this.version }, items: this.#select(resource, selection) as unknown as T[] };
  }

  #select(resource: Resource, { namespace, selector }: Selection): Json[] {
    return [...this.#stored.values()]
      .filter((s) => s.resource.plural === resource.plural && s.resource.group === resource.group)
      .map((s) => s.object)
      .filter((o) => namespace === undefined || metaOf(o)['namespace'] === namespace)
      .filter((o) => labelsMatch(o as unknown as KubeObject, selector))
      .sort((a, b) => (keyOf(a as unknown as KubeObject) < keyOf(b as unknown as KubeObject) ? -1 : 1))
      .map((o) => structuredClone(o));
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const { metadata, status: _, ...rest } = structuredClone(object) as unknown as Json;
    const given = metadata as Json;
    if (given['resourceVersion'])
      throw fail(400, 'BadRequest', 'resourceVersion should not be set on objects to be created');
    const name = (given['name'] as string) || ((given['generateName'] as string) ?? '') + this.#suffix();
    if (!NAME.test(name)) throw refused(`metadata.name: Invalid value: ${JSON.stringify(name)}`);
    const ref = { namespace: (given['namespace'] as string) ?? '', name };
    if (this.#stored.has(this.#id(resource, ref)))
      throw fail(409, 'AlreadyExists', `${resource.plural} "${name}" already exists`);
    const own = Object.fromEntries(OWN_METADATA.flatMap((k) => (k in given ? [[k, given[k]]] : [])));
    const uid = `00000000-0000-4000-8000-${String(this.log.version + 1).padStart(12, '0')}`;
    const whole = {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      ...rest,
      metadata: { ...own, name, uid, generation: 1, creationTimestamp: this.#time() },
    } as unknown as Json;
    const admitted = this.#admit(resource, whole);
    return this.#put(resource, ref, admitted, new Ownership(FIELD_MANAGER, admitted), 'ADDED') as unknown as T;
  }

  async apply<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    uid: string,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<T> {
    const { object, ownership } = this.#find(resource, ref);
    this.#check(object, { uid }, resource);
    const { after, owned } = applyFields(object, fields, ownership, FIELD_MANAGER);
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
    this.#check(object, given, resource);
    const merged = mergeInto(object, structuredClone(body)) as Json;
    const after =
      options.subresource === 'status'
        ? { ...object, ...('status' in merged && { status: merged['status'] }) }
        : withStatus(merged, object['status']);
    return this.#update(resource, ref, object, after, ownership.updated(FIELD_MANAGER, object, after)) as unknown as T;
  }

  /** Everything that changes an existing object ends here. */
  #update(resource: Resource, ref: Ref, before: Json, wanted: Json, ownership: Ownership): Json {
    const own = metaOf(wanted);
    const was = metaOf(before);
    const kept = Object.fromEntries(Object.entries(was).filter(([k]) => !OWN_METADATA.includes(k)));
    const set = Object.fromEntries(OWN_METADATA.flatMap((k) => (own[k] !== undefined ? [[k, own[k]]] : [])));
    const added = list(set['finalizers']).filter((f) => !list(was['finalizers']).includes(f));
    if (was['deletionTimestamp'] !== undefined && added.length > 0)
      throw fail(
        403,
        'Forbidden',
        'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted',
      );
    const after = this.#admit(resource, { ...wanted, metadata: { ...set, ...kept } });
    const withGeneration = same(after['spec'], before['spec'])
      ? after
      : ({ ...after, metadata: { ...metaOf(after), generation: Number(was['generation']) + 1 } } as Json);
    if (same(withGeneration, before)) return structuredClone(before); // a write that changes nothing is none
    const finished = was['deletionTimestamp'] !== undefined && list(set['finalizers']).length === 0;
    if (finished && was['deletionGracePeriodSeconds'] === undefined) return this.#remove(resource, ref, withGeneration);
    return this.#put(resource, ref, withGeneration, ownership, 'MODIFIED');
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    preconditions: Preconditions,
  ): Promise<T | undefined> {
    const found = this.#stored.get(this.#id(resource, ref));
    if (!found) return undefined;
    const { object, ownership } = found;
    this.#check(object, preconditions, resource);
    const meta = metaOf(object);
    // A Pod that runs somewhere stays until its kubelet has ended it.
    const graceful = resource.kind === 'Pod' && (object['spec'] as Json | undefined)?.['nodeName'] !== undefined;
    if (list(meta['finalizers']).length === 0 && !graceful) {
      this.#remove(resource, ref, object);
      return undefined;
    }
    if (meta['deletionTimestamp'] !== undefined) return structuredClone(object) as unknown as T;
    const marked = { ...meta, deletionTimestamp: this.#time(), ...(graceful && { deletionGracePeriodSeconds: 30 }) };
    return this.#put(resource, ref, { ...object, metadata: marked }, ownership, 'MODIFIED') as unknown as T;
  }

  /** What a kubelet does when the process of a Pod has ended. */
  finishPod(resource: Resource, ref: Ref): void {
    const found = this.#stored.get(this.#id(resource, ref));
    if (!found) return;
    const { deletionGracePeriodSeconds: _, ...meta } = metaOf(found.object);
    if (list(meta['finalizers']).length === 0) this.#remove(resource, ref, found.object);
    else this.#put(resource, ref, { ...found.object, metadata: meta }, found.ownership, 'MODIFIED');
  }

  async evict(ref: Ref, preconditions: Preconditions): Promise<void> {
    await this.delete({ group: '', version: 'v1', plural: 'pods', kind: 'Pod' }, ref, preconditions);
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
    return this.log.watch<T>(resource, selection, { initial, since: query['resourceVersion'], signal: call.signal });
  }

  /** One round of the garbage collector: what is controlled by nobody that exists goes. True when something went. */
  async collectGarbage(): Promise<boolean> {
    const uids = new Set([...this.#stored.values()].map((s) => metaOf(s.object)['uid']));
    let some = false;
    const all = Array.from(this.#stored.values());
    for (const { resource, object } of all) {
      const meta = metaOf(object);
      const owners = (meta['ownerReferences'] as readonly { readonly uid: string }[] | undefined) ?? [];
      if (owners.length === 0 || owners.some((o) => uids.has(o.uid)) || meta['deletionTimestamp'] !== undefined)
        continue;
      await this.delete(resource, refOf(meta), { uid: meta['uid'] as string });
      some = true;
    }
    return some;
  }

  #check(object: Json, wanted: Partial<Preconditions>, resource: Resource): void {
    const { uid = '', resourceVersion, name = '' } = (object as unknown as KubeObject).metadata;
    if (wanted.uid !== undefined && wanted.uid !== uid)
      throw fail(
        409,
        'Conflict',
        `${resource.plural} "${name}": Precondition failed: UID: ${wanted.uid} is not ${uid}`,
      );
    if (wanted.resourceVersion !== undefined && wanted.resourceVersion !== resourceVersion)
      throw fail(409, 'Conflict', `${resource.plural} "${name}": the object has been modified`);
  }

  #admit(resource: Resource, object: Json): Json {
    const admitted = this.#options.admit?.(resource, object as unknown as KubeObject) ?? object;
    return structuredClone(admitted) as unknown as Json;
  }

  #put(resource: Resource, ref: Ref, object: Json, ownership: Ownership, type: 'ADDED' | 'MODIFIED'): Json {
    const before = this.#stored.get(this.#id(resource, ref))?.object;
    const stored = this.log.stamped(object);
    this.#stored.set(this.#id(resource, ref), { resource, object: stored, ownership });
    this.log.append(resource, type, stored, before);
    return structuredClone(stored);
  }

  #remove(resource: Resource, ref: Ref, last: Json): Json {
    const before = this.#stored.get(this.#id(resource, ref))?.object;
    this.#stored.delete(this.#id(resource, ref));
    const stamped = this.log.stamped(last);
    this.log.append(resource, 'DELETED', stamped, before);
    return structuredClone(stamped);
  }

  #suffix(): string {
    return (++this.#names).toString(36).padStart(5, '0');
  }

  #time(): string {
    return new Date(this.#options.now?.() ?? 0).toISOString().replace(/\.\d+Z$/, 'Z');
  }
}

const list = (value: unknown): readonly string[] => (value as readonly string[] | undefined) ?? [];
const refOf = (meta: Json): Ref => ({ namespace: (meta['namespace'] as string) ?? '', name: meta['name'] as string });

/** The status has its own way in; through the front door it stays as it was. */
function withStatus(object: Json, status: unknown): Json {
  const { status: _, ...rest } = object;
  return status === undefined ? rest : { ...rest, status };
}
