/** JSON as the API server stores it: stored objects are frozen and shared, never copied and never changed. */
export type Json = { readonly [key: string]: unknown };

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Results of `frozen`, which are reused as they are. */
const known = new WeakSet<object>();

/** A frozen copy without undefined values. Parts that are frozen already are shared. */
export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || known.has(value)) return value;
  const copy = Array.isArray(value) ? value.map(frozen) : copyOf(value as unknown as Json);
  Object.freeze(copy);
  known.add(copy);
  return copy as T;
}

function copyOf(value: Json): Json {
  const copy: Record<string, unknown> = {};
  for (const key in value) if (value[key] !== undefined) copy[key] = frozen(value[key]);
  return copy;
}

/** RFC 7396: null removes, objects are merged, everything else replaces. */
export function mergeInto(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete merged[key];
    else merged[key] = mergeInto(merged[key], value);
  return merged;
}

/** Equal except for the order of keys and for undefined values. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((each, i) => same(each, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  for (const key in a) if (!same(a[key], b[key])) return false;
  for (const key in b) if (b[key] !== undefined && a[key] === undefined) return false;
  return true;
}
