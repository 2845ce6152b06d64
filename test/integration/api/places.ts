/** Every place of a kind's schema, and its path in an object. */
import type { Kind } from '../../../src/api/crd.ts';
import type { Schema } from '../../../tools/gen/api-reference.ts';

/** Names from the object down; `*` is every item of a list and every value of a map. */
export type Path = readonly string[];
export interface Place {
  readonly path: Path;
  readonly schema: Schema;
}

/** The whole object and all fields of users; the status belongs to the operator. */
export function placesOf(kind: Kind): readonly Place[] {
  const whole: Schema = { 'x-kubernetes-validations': kind.rules ?? [] };
  const spec = JSON.parse(JSON.stringify(kind.spec)) as Schema;
  return [{ path: [], schema: whole }, ...placesIn(spec, ['spec'])];
}

function placesIn(schema: Schema, path: Path): readonly Place[] {
  const each = schema.items ?? schema.additionalProperties;
  return [
    { path, schema },
    ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => placesIn(inner, [...path, name])),
    ...(each ? placesIn(each, [...path, '*']) : []),
  ];
}

export const nameOf = (path: Path): string => path.join('.').replaceAll('.*', '[*]');

/** The API server's notation of a real path. */
export const fieldOf = (path: Path): string => path.join('.').replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]');

/** Whether this is the API server's notation of the place. */
export function isAt(field: string, path: Path): boolean {
  if (path.length === 0) return field === '<nil>';
  const parts = path.map((part) => (part === '*' ? String.raw`(\[[^\]]*\]|\.[^.[\]]+)` : String.raw`\.${part}`));
  return new RegExp(`^${parts.join('').slice(2)}$`).test(field);
}

/** Where an object has a value at this place, with real names and indexes. */
export function occurrences(object: unknown, path: Path): readonly Path[] {
  const [first, ...rest] = path;
  if (first === undefined) return object === undefined ? [] : [[]];
  if (typeof object !== 'object' || object === null) return [];
  const names = first === '*' ? Object.keys(object) : [first];
  const inner = (name: string): unknown => (object as Readonly<Record<string, unknown>>)[name];
  return names.flatMap((name) => occurrences(inner(name), rest).map((found) => [name, ...found]));
}

/** A copy with another value at a real path; `undefined` removes it. */
export function changedAt(object: unknown, path: Path, change: (value: unknown) => unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return change(object);
  const copy = (Array.isArray(object) ? [...object] : { ...(object as object) }) as Record<string, unknown>;
  copy[first] = changedAt(copy[first], rest, change);
  return copy;
}

export interface Cause {
  readonly field: string;
  readonly text: string;
}

const CAUSE =
  /(?:^|, |: \[?)(<nil>|[a-z][\w.[\]/-]*): (?=Invalid value|Unsupported value|Required value|Too long|Too many|Forbidden)/g;

/** The API server's causes for refusing an object, field by field. */
export function causesIn(message: string): readonly Cause[] {
  const found = [...message.matchAll(CAUSE)];
  return found.map((match, i) => ({
    field: match[1] ?? '',
    text: message.slice(match.index + match[0].length, found[i + 1]?.index),
  }));
}
