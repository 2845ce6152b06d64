/** What really happened to the objects of every namespace, as the API server reports it: not what a client meant to do. */
import { etcdClusters, etcdMembers, QUARANTINE_LABEL, type Quarantine } from '../../src/api/names.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { persistentVolumeClaims, podDisruptionBudgets, pods, secrets, services } from '../../src/kube/resources.ts';
import { ALL_NAMESPACES, Store } from '../../src/kube/store.ts';
import { watch } from '../../src/kube/watcher.ts';
import { eventually, pause } from '../support/servers/processes.ts';

/** Every kind that the operator watches for a cluster. */
export const WATCHED: readonly Resource[] = [
  etcdClusters,
  etcdMembers,
  pods,
  persistentVolumeClaims,
  services,
  podDisruptionBudgets,
];
/** Every kind of object that a cluster consists of. */
const KINDS: readonly Resource[] = [...WATCHED, secrets];

export type Counts = Readonly<Record<string, number>>;
export type OnChange = (kind: string, before: KubeObject | undefined, after: KubeObject | undefined) => void;

interface Page {
  readonly present: Map<string, KubeObject>;
  readonly created: Set<string>;
  readonly deleted: Set<string>;
  readonly listeners: Set<OnChange>;
}

/** An operator that did not see the deletion of a cluster leaves its PVCs for a day, because it cannot read the deletionPolicy any more: they count as deleted. */
const LEFT: Quarantine = 'policy-unknown';
const unlessLeft = (object: KubeObject | undefined): KubeObject | undefined =>
  object?.metadata.labels?.[QUARANTINE_LABEL] === LEFT ? undefined : object;

export class Ledger {
  readonly #stores: readonly Store<KubeObject>[];
  readonly #pages = new Map<string, Page>();
  readonly #stop = new AbortController();

  constructor(client: HttpClient) {
    this.#stores = KINDS.map((resource) => {
      const store = new Store<KubeObject>(resource, []);
      store.onChange((before, after) => this.#note(resource.kind, unlessLeft(before), unlessLeft(after)));
      void watch({
        client,
        resource,
        signal: this.#stop.signal,
        emit: (event) => store.apply(ALL_NAMESPACES, event),
        onError: () => undefined,
        sleep: pause,
        random: Math.random,
      });
      return store;
    });
  }

  async synced(): Promise<this> {
    await eventually('the ledger', () => this.#stores.every((store) => store.synced) || undefined);
    return this;
  }

  stop(): void {
    this.#stop.abort();
  }

  objects(namespace: string): readonly KubeObject[] {
    return [...this.#page(namespace).present.values()];
  }

  ofKind<T extends KubeObject>(resource: Resource<T>, namespace: string): readonly T[] {
    return this.objects(namespace).filter((object): object is T => object.kind === resource.kind);
  }

  /** How many objects of each kind were created and deleted since the last `turn`. */
  counts(namespace: string): Counts {
    const { created, deleted } = this.#page(namespace);
    const sums: Record<string, number> = {};
    const add = (what: string, entries: Set<string>): void => {
      for (const entry of entries) {
        const name = `${what} ${entry.split(' ')[0]}`;
        sums[name] = (sums[name] ?? 0) + 1;
      }
    };
    add('created', created);
    add('deleted', deleted);
    return Object.fromEntries(Object.entries(sums).sort(([a], [b]) => a.localeCompare(b)));
  }

  /** Resets the counts. */
  turn(namespace: string): void {
    const { created, deleted } = this.#page(namespace);
    created.clear();
    deleted.clear();
  }

  onChange(namespace: string, listener: OnChange): () => void {
    const { listeners } = this.#page(namespace);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  #page(namespace: string): Page {
    const known = this.#pages.get(namespace);
    const page = known ?? { present: new Map(), created: new Set(), deleted: new Set(), listeners: new Set() };
    this.#pages.set(namespace, page);
    return page;
  }

  #note(kind: string, before: KubeObject | undefined, after: KubeObject | undefined): void {
    if (!before && !after) return;
    const page = this.#page((after ?? before)?.metadata.namespace ?? '');
    const entry = (object: KubeObject): string => `${kind} ${object.metadata.uid}`;
    if (after && after.metadata.uid !== before?.metadata.uid) page.created.add(entry(after));
    if (before && after?.metadata.uid !== before.metadata.uid) page.deleted.add(entry(before));
    if (before) page.present.delete(entry(before));
    if (after) page.present.set(entry(after), { ...after, kind });
    for (const listener of page.listeners) listener(kind, before, after);
  }
}
