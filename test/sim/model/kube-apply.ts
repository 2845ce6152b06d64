/**
 * Who set which field. Server-side apply sets what it names and removes what it named before and names no more, unless
 * somebody else has set it as well. Lists are taken whole: the operator owns the ones it applies entirely.
 */
import { isObject, type Json } from './kube-json.ts';

type Path = string;

/** The leaves of an object, without what names it and what the server sets. */
function leaves(value: unknown, path: readonly string[] = []): Map<Path, unknown> {
  if (!isObject(value) || (Object.keys(value).length === 0 && path.length > 0))
    return new Map([[path.join('\u0000'), value]]);
  const found = new Map<Path, unknown>();
  for (const [key, inner] of Object.entries(value)) {
    if (path.length === 0 && (key === 'apiVersion' || key === 'kind' || key === 'status')) continue;
    if (
      path.length === 1 &&
      path[0] === 'metadata' &&
      !['labels', 'annotations', 'finalizers', 'ownerReferences'].includes(key)
    )
      continue;
    for (const [at, leaf] of leaves(inner, [...path, key])) found.set(at, leaf);
  }
  return found;
}

export class Ownership {
  /** Fields set by create and patch, and those set by apply: the same name in both is two owners. */
  readonly #updated: ReadonlyMap<string, ReadonlySet<Path>>;
  readonly #applied: ReadonlyMap<string, ReadonlySet<Path>>;

  constructor(
    creator: string,
    object: Json,
    from?: {
      readonly updated: ReadonlyMap<string, ReadonlySet<Path>>;
      readonly applied: ReadonlyMap<string, ReadonlySet<Path>>;
    },
  ) {
    this.#updated = from?.updated ?? new Map([[creator, new Set(leaves(object).keys())]]);
    this.#applied = from?.applied ?? new Map();
  }

  applied(manager: string): ReadonlySet<Path> {
    return this.#applied.get(manager) ?? new Set();
  }

  othersOwn(path: Path, manager: string): boolean {
    for (const paths of this.#updated.values()) if (paths.has(path)) return true;
    for (const [other, paths] of this.#applied) if (other !== manager && paths.has(path)) return true;
    return false;
  }

  /** After a plain write: what it changed is its writer's, and nobody else's any more. */
  updated(manager: string, before: Json, after: Json): Ownership {
    const [was, is] = [leaves(before), leaves(after)];
    const changed = new Set(
      [...is].filter(([at, v]) => JSON.stringify(was.get(at)) !== JSON.stringify(v)).map(([at]) => at),
    );
    const without = (all: ReadonlyMap<string, ReadonlySet<Path>>) =>
      new Map([...all].map(([who, paths]) => [who, new Set([...paths].filter((p) => is.has(p) && !changed.has(p)))]));
    const updated = without(this.#updated);
    updated.set(manager, new Set([...(updated.get(manager) ?? []), ...changed]));
    return new Ownership(manager, after, { updated, applied: without(this.#applied) });
  }

  /** After a forced apply: what it names is its own; whoever had set another value there has lost it. */
  appliedBy(manager: string, before: Json, after: Json, named: ReadonlySet<Path>): Ownership {
    const [was, is] = [leaves(before), leaves(after)];
    const lost = (p: Path): boolean =>
      !is.has(p) || (named.has(p) && JSON.stringify(was.get(p)) !== JSON.stringify(is.get(p)));
    const without = (all: ReadonlyMap<string, ReadonlySet<Path>>) =>
      new Map([...all].map(([who, paths]) => [who, new Set([...paths].filter((p) => !lost(p)))]));
    return new Ownership(manager, after, {
      updated: without(this.#updated),
      applied: without(this.#applied).set(manager, new Set(named)),
    });
  }
}

export function applyFields(
  object: Json,
  fields: Json,
  ownership: Ownership,
  manager: string,
): { readonly after: Json; readonly owned: Ownership } {
  const after = structuredClone(object) as Record<string, unknown>;
  const wanted = leaves(fields);
  for (const path of ownership.applied(manager))
    if (!wanted.has(path) && !ownership.othersOwn(path, manager)) setAt(after, path.split('\u0000'), undefined);
  for (const [path, value] of wanted) setAt(after, path.split('\u0000'), structuredClone(value));
  return { after, owned: ownership.appliedBy(manager, object, after, new Set(wanted.keys())) };
}

function setAt(object: Record<string, unknown>, [key = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    if (value === undefined) delete object[key];
    else object[key] = value;
    return;
  }
  const inner = isObject(object[key]) ? { ...object[key] } : {};
  object[key] = inner;
  setAt(inner, rest, value);
}
