/** JSON documents that are much alike, in little more memory than one of them: equal parts are kept once. */

/**
 * The same value as `fresh`, made from parts of `known` wherever those are equal. Neither is changed, and since nobody changes
 * what was shared, nobody can tell the difference.
 */
export function sharing<T>(fresh: T, known: unknown): T {
  if (fresh === known) return known as T; // two texts of the same words are one from now on
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

const isObject = (v: unknown): v is Readonly<Record<string, unknown>> =>
  typeof v === 'object' && v !== null && !Array.isArray(v);
