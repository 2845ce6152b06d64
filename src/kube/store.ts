/**
 * A read cache of one kind, filled by watches. It has one shard per watched namespace, or a single one for all of them.
 *
 * Guarantees: readers see complete lists only, never half of one; a listener is called for every difference, also after a new
 * list; `waitForVersion` and `waitForDeletion` end when the cache shows the write.
 * Assumptions: readers do not modify objects, which are shared. A write that the selector excludes is never waited for (`selects`).
 * Caveats: the cache may be stale, by minutes while a watch is broken. `managedFields` are dropped: they are half of an object.
 */

import { sharing } from '../lib/sharing.ts';
import { isAtLeast, type KubeObject, keyOf, type Resource } from './object.ts';
import type { StoreEvent } from './watch-protocol.ts';

export type Listener<T> = (before: T | undefined, after: T | undefined) => void;

interface Shard<T> {
  live: Map<string, T>;
  /** A new snapshot that is still being received. */
  staged: Map<string, T> | undefined;
  version: string;
  synced: boolean;
  /** The API server does not know the kind: its CRD is not installed; or the operator may not read it. */
  missing: boolean;
}

interface Waiter {
  readonly holds: () => boolean;
  readonly resolve: () => void;
}

/** A cache of any kind. */
export type AnyStore = Pick<
  Store<KubeObject>,
  'resource' | 'synced' | 'missing' | 'size' | 'get' | 'selects' | 'onChange' | 'waitForVersion' | 'waitForDeletion'
>;

export const ALL_NAMESPACES = '';

/** Finds objects without a scan: by a label, or by a value computed from them. */
export interface Index<T> {
  readonly name: string;
  readonly of: (object: T) => string | undefined;
}
const byLabel = (name: string): Index<KubeObject> => ({ name, of: ({ metadata }) => metadata.labels?.[name] });

/** managedFields is half of an object, and the operator does not read it. */
function trimmed<T extends KubeObject>(object: T): T {
  if (object.metadata.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

export class Store<T extends KubeObject> {
  readonly resource: Resource<T>;
  /** Of the form `label=value`: only objects with this label are cached. */
  readonly selector: string | undefined;
  readonly #shards: ReadonlyMap<string, Shard<T>>;
  readonly #listeners: Listener<T>[] = [];
  readonly #deletionListeners: ((last: T) => void)[] = [];
  readonly #indexes = new Map<string, { readonly of: Index<T>['of']; readonly buckets: Map<string, Map<string, T>> }>();
  readonly #syncListeners: (() => void)[] = [];
  readonly #waiters = new Set<Waiter>();
  #latest: T | undefined;

  constructor(
    resource: Resource<T>,
    namespaces: readonly string[],
    indexes: readonly (string | Index<T>)[] = [],
    selector?: string,
  ) {
    this.resource = resource;
    this.selector = selector;
    const names = namespaces.length === 0 ? [ALL_NAMESPACES] : namespaces;
    const empty = (): Shard<T> => ({ live: new Map(), staged: undefined, version: '', synced: false, missing: false });
    this.#shards = new Map(names.map((name) => [name, empty()]));
    for (const index of indexes) {
      const { name, of } = typeof index === 'string' ? byLabel(index) : index;
      this.#indexes.set(name, { of, buckets: new Map() });
    }
  }

  /** Whether the watch selects an object like this one; waiting for any other would never end. */
  selects({ metadata }: KubeObject): boolean {
    const [label = '', value] = this.selector?.split('=') ?? [];
    return this.selector === undefined || metadata.labels?.[label] === value;
  }

  get shards(): readonly string[] {
    return [...this.#shards.keys()];
  }
  get synced(): boolean {
    return [...this.#shards.values()].every((s) => s.synced);
  }
  get missing(): boolean {
    return [...this.#shards.values()].some((s) => s.missing);
  }
  get size(): number {
    return [...this.#shards.values()].reduce((n, s) => n + s.live.size, 0);
  }

  onChange(listener: Listener<T>): void {
    this.#listeners.push(listener);
  }

  /** Called before the listeners of `onChange`, with the last state of an object, as the event of its deletion has it; not for an object that a new list lacks. */
  onDeletion(listener: (last: T) => void): void {
    this.#deletionListeners.push(listener);
  }

  /** Called whenever a complete snapshot was received, even an empty one. */
  onSynced(listener: () => void): void {
    this.#syncListeners.push(listener);
  }

  apply(shardName: string, event: StoreEvent<T>): void {
    const shard = this.#shards.get(shardName);
    if (!shard) throw new Error(`no shard ${shardName}`);
    switch (event.type) {
      case 'restart':
        shard.staged = new Map();
        return;
      case 'missing':
        shard.missing = true;
        this.#notify();
        return;
      case 'synced':
        this.#replace(shard);
        break;
      case 'progress':
        break;
      case 'put':
        this.#put(shard, keyOf(event.object), trimmed(event.object));
        break;
      case 'delete':
        if (!shard.staged) for (const listener of this.#deletionListeners) listener(event.object);
        this.#set(shard, keyOf(event.object), undefined);
        break;
    }
    shard.missing = false;
    if (shard.staged) return;
    const version = 'object' in event ? event.object.metadata.resourceVersion : event.resourceVersion;
    if (version !== undefined && isAtLeast(version, shard.version)) shard.version = version;
    this.#notify();
    if (event.type === 'synced') for (const listener of this.#syncListeners) listener();
  }

  /** Objects of one kind are much alike, and versions of one object even more: equal parts are stored once. */
  #put(shard: Shard<T>, key: string, object: T): void {
    const kept = sharing(sharing(object, this.#latest), shard.live.get(key));
    this.#latest = kept;
    this.#set(shard, key, kept);
  }

  #set(shard: Shard<T>, key: string, after: T | undefined): void {
    const map = shard.staged ?? shard.live;
    const before = map.get(key);
    if (after) map.set(key, after);
    else map.delete(key);
    if (!shard.staged && (before || after)) this.#changed(key, before, after);
  }

  #replace(shard: Shard<T>): void {
    const previous = shard.live;
    shard.live = shard.staged ?? new Map();
    shard.staged = undefined;
    shard.synced = true;
    for (const [key, object] of shard.live) {
      const old = previous.get(key);
      if (!old || old.metadata.resourceVersion !== object.metadata.resourceVersion) this.#changed(key, old, object);
    }
    for (const [key, object] of previous) if (!shard.live.has(key)) this.#changed(key, object, undefined);
  }

  #changed(key: string, before: T | undefined, after: T | undefined): void {
    for (const { of, buckets } of this.#indexes.values()) {
      const [was, is] = [bucketOf(before, of), bucketOf(after, of)];
      if (was !== undefined && was !== is) {
        buckets.get(was)?.delete(key);
        if (buckets.get(was)?.size === 0) buckets.delete(was);
      }
      if (is !== undefined && after) buckets.set(is, (buckets.get(is) ?? new Map<string, T>()).set(key, after));
    }
    for (const listener of this.#listeners) listener(before, after);
  }

  get(key: string): T | undefined {
    for (const shard of this.#shards.values()) {
      const found = shard.live.get(key);
      if (found) return found;
    }
    return undefined;
  }

  *all(): Iterable<T> {
    for (const shard of this.#shards.values()) yield* shard.live.values();
  }

  /** The objects of a namespace with this value of an indexed label, or of another index, sorted by name. */
  byIndex(namespace: string, label: string, value: string): readonly T[] {
    const index = this.#indexes.get(label);
    if (!index) throw new Error(`${this.resource.plural} are not indexed by ${label}`);
    const bucket = index.buckets.get(`${namespace}/${value}`);
    return [...(bucket ?? [])].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  /**
   * Resolves when this cache has received the given version of an object in the namespace: read your writes. Does not
   * wait for a kind whose CRD was deleted, and with it all its objects.
   */
  async waitForVersion(namespace: string, version: string, signal: AbortSignal): Promise<void> {
    const shard = this.#shards.get(namespace) ?? this.#shards.get(ALL_NAMESPACES);
    if (shard) await this.#until(() => shard.missing || isAtLeast(shard.version, version), signal);
  }

  /**
   * Resolves when this cache no longer has an object with that uid: a deletion is a write without a resourceVersion.
   */
  async waitForDeletion(key: string, uid: string, signal: AbortSignal): Promise<void> {
    await this.#until(() => this.missing || this.get(key)?.metadata.uid !== uid, signal);
  }

  async #until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    if (holds()) return;
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = { holds, resolve: () => finish(resolve) };
      const onAbort = (): void => finish(() => reject(signal.reason as Error));
      const finish = (settle: () => void): void => {
        signal.removeEventListener('abort', onAbort);
        this.#waiters.delete(waiter);
        settle();
      };
      signal.addEventListener('abort', onAbort);
      this.#waiters.add(waiter);
    });
  }

  #notify(): void {
    for (const waiter of this.#waiters) if (waiter.holds()) waiter.resolve();
  }
}

const bucketOf = <T extends KubeObject>(object: T | undefined, of: Index<T>['of']): string | undefined => {
  const value = object && of(object);
  return value === undefined ? undefined : `${object?.metadata.namespace ?? ''}/${value}`;
};
