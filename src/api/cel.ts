/**
 * Rules of the Common Expression Language, which the API server runs at admission.
 *
 * A rule must never make an object that was accepted before impossible to edit elsewhere. Rules on a field or a subtree have
 * that from the API server: since Kubernetes 1.30 it does not repeat them for a value that did not change, unless they speak of
 * `oldSelf`. Rules that stand above several fields say it themselves: see `unlessUnchanged`.
 */
import type { TSchema } from 'typebox';

export interface CelRule {
  readonly rule: string;
  /** What is wrong and what to do, when no better sentence can be made. */
  readonly message: string;
  /** The same with the offending value in it; a text expression. */
  readonly messageExpression?: string;
  /** The rule also runs when there is no old object; `oldSelf` is then an empty optional. */
  readonly optionalOldSelf?: boolean;
  /** Which field the message is about, when it is not the one that carries the rule. */
  readonly fieldPath?: string;
}

type Validated = { readonly 'x-kubernetes-validations': readonly CelRule[] };

/** For the options of a schema: the rules that its value must keep. */
export const cel = (...rules: readonly CelRule[]): Validated => ({ 'x-kubernetes-validations': rules });

/** True when the field (or neither object) has the same value in the new and the old object. `path` is below `self`. */
export const unchanged = (path: string, oldSelf = 'oldSelf.value()'): string => {
  const parts = path.split('.');
  const has = (of: string): string => parts.map((_, i) => `has(${of}.${parts.slice(0, i + 1).join('.')})`).join(' && ');
  const [now, old] = [`self.${path}`, `${oldSelf}.${path}`];
  return `((${has('self')}) == (${has(oldSelf)}) && (!(${has('self')}) || ${now} == ${old}))`;
};

/** A rule over several fields that is not applied again while none of them changes. */
export const unlessUnchanged = (fields: readonly string[], rule: CelRule): CelRule => ({
  ...rule,
  rule: `(oldSelf.hasValue() && ${fields.map((field) => unchanged(field)).join(' && ')}) || (${rule.rule})`,
  optionalOldSelf: true,
});

const CHECKS = new Set([
  'x-kubernetes-validations',
  'pattern',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'description',
]);

type Json = Readonly<Record<string, unknown>>;

/** The same shape for what the operator copies: it was checked where the user wrote it, perhaps by an older version of the rules. */
export function unvalidated<S extends TSchema>(schema: S): S {
  return strip(JSON.parse(JSON.stringify(schema)) as Json) as unknown as S;
}

function strip(schema: Json): Json {
  const kept = Object.entries(schema).filter(([key]) => !CHECKS.has(key));
  return Object.fromEntries(
    kept.map(([key, value]) => {
      if (key === 'properties') return [key, mapValues(value as Readonly<Record<string, Json>>, strip)];
      if (key === 'items' || key === 'additionalProperties') return [key, strip(value as Json)];
      return [key, value];
    }),
  );
}

const mapValues = <A, B>(record: Readonly<Record<string, A>>, change: (value: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
