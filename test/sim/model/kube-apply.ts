/**
 * Which manager owns which field. Server-side apply sets the fields that it contains and removes those that it contained
 * before, unless another manager owns them as well. A list item is removed with the manager that added it, whatever is in it.
 */
import { type Json, same } from './kube-json.ts';
import { type Leaf, leavesOf, withLeaf } from './kube-lists.ts';

type Owners = ReadonlyMap<string, ReadonlySet<string>>;

interface Write {
  readonly manager: string;
  readonly before: Json;
  readonly after: Json;
}

/** Plain writes are frequent and apply is rare: ownership is computed when needed, or when this many writes are pending. */
const MAX_PENDING = 8;

export class Ownership {
  readonly #kind: string;
  readonly #waiting: readonly Write[];
  /** Fields set by create and patch, and those set by apply: the same manager in both is two owners. */
  readonly #updated: Owners;
  readonly #applied: Owners;

  constructor(kind: string, waiting: readonly Write[] = [], updated: Owners = new Map(), applied: Owners = new Map()) {
    this.#kind = kind;
    this.#waiting = waiting;
    this.#updated = updated;
    this.#applied = applied;
  }

  /** After a plain write: its manager becomes the only owner of what it changed. */
  updated(manager: string, before: Json, after: Json): Ownership {
    const all = new Ownership(this.#kind, [...this.#waiting, { manager, before, after }], this.#updated, this.#applied);
    return all.#waiting.length > MAX_PENDING ? all.#settled() : all;
  }

  /** A forced apply: the object after it, and the owners of its fields. A manager with another value loses the field. */
  apply(manager: string, object: Json, fields: Json): { readonly after: Json; readonly owned: Ownership } {
    const { updated, applied } = this.#settled().#owners;
    const was = leavesOf(this.#kind, object);
    const wanted = leavesOf(this.#kind, fields);
    const others = [...updated.values(), ...[...applied].filter(([who]) => who !== manager).map(([, paths]) => paths)];
    let after: unknown = object;
    for (const path of applied.get(manager) ?? []) {
      const leaf = was.get(path);
      if (leaf && !wanted.has(path) && !others.some((paths) => paths.has(path)))
        after = withLeaf(after, leaf.way, undefined, true);
    }
    for (const { way, value } of wanted.values()) after = withLeaf(after, way, value, false);
    const is = leavesOf(this.#kind, after as Json);
    const lost = (path: string): boolean =>
      !is.has(path) || (wanted.has(path) && !sameLeaf(was.get(path), is.get(path)));
    const owned = without(applied, lost).set(manager, new Set(wanted.keys()));
    return { after: after as Json, owned: new Ownership(this.#kind, [], without(updated, lost), owned) };
  }

  get #owners(): { readonly updated: Owners; readonly applied: Owners } {
    return { updated: this.#updated, applied: this.#applied };
  }

  #settled(): Ownership {
    let [updated, applied] = [this.#updated, this.#applied];
    for (const { manager, before, after } of this.#waiting) {
      const [was, is] = [leavesOf(this.#kind, before), leavesOf(this.#kind, after)];
      const changed = new Set(
        [...is.keys()].filter((path) => !was.has(path) || !sameLeaf(was.get(path), is.get(path))),
      );
      const lost = (path: string): boolean => !is.has(path) || changed.has(path);
      const mine = without(updated, lost);
      updated = mine.set(manager, new Set([...(mine.get(manager) ?? []), ...changed]));
      applied = without(applied, lost);
    }
    return new Ownership(this.#kind, [], updated, applied);
  }
}

const sameLeaf = (a: Leaf | undefined, b: Leaf | undefined): boolean => same(a?.value, b?.value);

const without = (owners: Owners, lost: (path: string) => boolean): Map<string, ReadonlySet<string>> =>
  new Map([...owners].map(([who, paths]) => [who, new Set([...paths].filter((path) => !lost(path)))]));
