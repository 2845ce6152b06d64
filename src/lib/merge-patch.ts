/** JSON merge patches (RFC 7386): the smallest one that turns one document into another. */

export const isObject = (v: unknown): v is Readonly<Record<string, unknown>> =>
  typeof v === 'object' && v !== null && !Array.isArray(v);

/** Whether two JSON values are the same; a key that is `undefined` counts as absent, the order of keys does not count. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((v, i) => sameJson(v, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((k) => sameJson(a[k], b[k]));
}

/**
 * The paths of what `part` has and `whole` does not have as well, such as `labels.team`. What `whole` has besides does not count,
 * nor does what is undefined or null in `part`: a merge patch would remove it.
 */
export function missingIn(whole: unknown, part: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(part).flatMap(([key, wanted]) => {
    const found = isObject(whole) ? whole[key] : undefined;
    if (wanted === undefined || wanted === null) return [];
    if (isObject(wanted) && isObject(found)) return missingIn(found, wanted).map((path) => `${key}.${path}`);
    return hasAll(found, wanted) ? [] : [key];
  });
}

/** The elements of a list are compared as `missingIn` compares documents. */
function hasAll(found: unknown, wanted: unknown): boolean {
  if (Array.isArray(found) && Array.isArray(wanted))
    return found.length === wanted.length && wanted.every((each, i) => hasAll(found[i], each));
  if (isObject(wanted)) return isObject(found) && missingIn(found, wanted).length === 0;
  return found === wanted;
}

/** The patch that turns `before` into `after`; `undefined` when they are the same. */
export function mergePatch(before: unknown, after: unknown): Record<string, unknown> | undefined {
  const from = isObject(before) ? before : {};
  const to = isObject(after) ? after : {};
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [was, is] = [from[key], to[key]];
    if (sameJson(was, is)) continue;
    if (is === undefined) patch[key] = null;
    else patch[key] = isObject(was) && isObject(is) ? mergePatch(was, is) : is;
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** The paths of the fields that a patch sets, as `metadata.labels.team`. */
export const pathsIn = (patch: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.entries(patch).flatMap(([key, value]) => {
    if (!isObject(value)) return [key];
    return pathsIn(value).map((path) => `${key}.${path}`);
  });
