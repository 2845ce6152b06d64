/** Bounds, patterns, enums and required fields of a schema, each with a value just beyond it. */
import type { Schema } from '../../../tools/gen/api-reference.ts';
import { changedAt, fieldOf, occurrences, type Path, type Place } from './places.ts';

export interface Bound {
  readonly path: Path;
  readonly keyword: string;
  /** The message of the API server. */
  readonly says: string;
  readonly beyond: (value: unknown) => unknown;
}

const ODD = ['a b', '!', '', '-'];
const list = (value: unknown, length: number): unknown =>
  Array.from({ length }, () => (value as readonly unknown[])[0]);
const map = (value: unknown, length: number): unknown => {
  const [entry] = Object.values(value as object);
  return Object.fromEntries(Array.from({ length }, (_, i) => [`entry-${i}`, entry]));
};

type Breaking = readonly [says: string, beyond: (value: unknown) => unknown];
const broken: { readonly [K in keyof Schema]?: (bound: NonNullable<Schema[K]>) => Breaking } = {
  minimum: (least) => ['should be greater than or equal to', () => least - 1],
  maximum: (most) => ['should be less than or equal to', () => most + 1],
  minLength: (least) => ['should be at least', () => 'a'.repeat(least - 1)],
  maxLength: (most) => ['Too long', () => 'a'.repeat(most + 1)],
  minItems: (least) => ['should have at least', (value) => list(value, least - 1)],
  maxItems: (most) => ['Too many', (value) => list(value, most + 1)],
  maxProperties: (most) => ['Too many', (value) => map(value, most + 1)],
  pattern: (pattern) => ['should match', () => ODD.find((text) => !new RegExp(pattern).test(text))],
  enum: () => ['Unsupported value', () => 'Nonsense'],
};

export function boundsAt({ path, schema }: Place): readonly Bound[] {
  const own = Object.entries(broken).flatMap(([keyword, breaking]) => {
    const bound = schema[keyword as keyof Schema];
    if (bound === undefined) return [];
    const [says, beyond] = (breaking as (bound: unknown) => Breaking)(bound);
    return [{ path, keyword, says, beyond }];
  });
  // A required field with a default is never missing.
  const missable = (schema.required ?? []).filter((name) => schema.properties?.[name]?.default === undefined);
  const required = missable.map((name) => ({
    path: [...path, name],
    keyword: 'required',
    says: 'Required value',
    beyond: () => undefined,
  }));
  return [...own, ...required];
}

/** One of these objects with one value moved beyond its bound, and the field's path; undefined when none has a value there. */
export function brokenAt(
  objects: readonly object[],
  { path, beyond }: Bound,
): { readonly object: object; readonly field: string } | undefined {
  for (const object of objects) {
    const [found] = occurrences(object, path);
    if (found) return { object: changedAt(object, found, beyond) as object, field: fieldOf(found) };
  }
  return undefined;
}
