/**
 * CEL validation rules, which the API server evaluates at admission.
 *
 * A new rule must not block edits of other fields of an object that was accepted earlier. For rules on a field or a subtree the
 * API server ensures that: since Kubernetes 1.30 it does not evaluate them again for an unchanged value, unless they use
 * `oldSelf`. Rules over several fields need `unlessUnchanged`.
 */
import type { TSchema } from 'typebox';

export interface CelRule {
  readonly rule: string;
  /** What is wrong and what to do; the fallback when `messageExpression` is absent or fails. */
  readonly message: string;
  /** A CEL expression for the same message with the rejected value in it. */
  readonly messageExpression?: string;
  /** The rule also runs when there is no old object; `oldSelf` is then an empty optional. */
  readonly optionalOldSelf?: boolean;
  /** The field that the error is reported for, when it is not the one that has the rule. */
  readonly fieldPath?: string;
}

type Validated = { readonly 'x-kubernetes-validations': readonly CelRule[] };

/** Schema options with these rules. */
export const cel = (...rules: readonly CelRule[]): Validated => ({ 'x-kubernetes-validations': rules });

/** True when the field (or neither object) has the same value in the new and the old object. `path` is below `self`. */
export const unchanged = (path: string, oldSelf = 'oldSelf.value()'): string => {
  const parts = path.split('.');
  const has = (of: string): string => parts.map((_, i) => `has(${of}.${parts.slice(0, i + 1).join('.')})`).join(' && ');
  const [now, old] = [`self.${path}`, `${oldSelf}.${path}`];
  return `((${has('self')}) == (${has(oldSelf)}) && (!(${has('self')}) || ${now} == ${old}))`;
};

/** A rule over several fields that is not evaluated again while none of them changes. */
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

/** The same schema without validation, for copies that the operator writes: older rules may have accepted the original. */
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
