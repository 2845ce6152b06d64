/** Structural sharing: similar JSON documents take little more memory than one of them, because equal parts are kept once. */
import { isObject } from './merge-patch.ts';

/**
 * A value equal to `fresh`, which reuses the parts of `known` that are equal. Neither is changed; callers must not change the
 * result in place, because its parts are shared.
 */
export function sharing<T>(fresh: T, known: unknown): T {
  if (fresh === known) return known as T; // also for equal strings: the copy in `fresh` can be collected
  if (Array.isArray(fresh)) return (Array.isArray(known) ? sharedList(fresh, known) : fresh) as T;
  if (!isObject(fresh) || !isObject(known)) return fresh;
  const copy: Record<string, unknown> = { ...fresh };
  const keys = Object.keys(copy);
  let same = keys.length === Object.keys(known).length;
  for (const key of keys) {
    const part = sharing(copy[key], known[key]);
    copy[key] = part;
    same &&= part === known[key] && Object.hasOwn(known, key);
  }
  return (same ? known : copy) as T;
}

function sharedList(fresh: readonly unknown[], known: readonly unknown[]): readonly unknown[] {
  const parts = fresh.map((part, i) => sharing(part, known[i]));
  return fresh.length === known.length && parts.every((part, i) => part === known[i]) ? known : parts;
}
