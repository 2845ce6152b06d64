/** What leaves the cluster in a report: no Secret value, no key, no token. Everything in a report passes through `redactText`. */

type Json = Readonly<Record<string, unknown>>;

const REDACTED = '[redacted]';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object of Kubernetes without values that may be secret: of Secrets the keys and sizes, of environments the names. */
export function redactObject(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redactObject);
  if (!isObject(value)) return value;
  const isSecret = value['kind'] === 'Secret';
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'managedFields' && key !== LAST_APPLIED)
      .map(([key, inner]) => {
        if (isSecret && (key === 'data' || key === 'stringData')) return [key, sizes(inner)];
        if (key === 'env' && Array.isArray(inner)) return [key, inner.map(withoutValue)];
        return [key, redactObject(inner)];
      }),
  );
}

const sizes = (data: unknown): unknown =>
  isObject(data)
    ? Object.fromEntries(Object.entries(data).map(([key, text]) => [key, `[${String(text).length} characters]`]))
    : REDACTED;

const withoutValue = (entry: unknown): unknown =>
  isObject(entry) && 'value' in entry ? { ...entry, value: REDACTED } : redactObject(entry);

/** In any text: a log, a message, a command line. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, REDACTED],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, REDACTED], // a JSON Web Token
  [/\b(bearer|basic) [\w.~+/=-]{8,}/gi, `$1 ${REDACTED}`],
  [/(:\/\/[^\s/:@]+:)[^\s/@]+@/g, `$1${REDACTED}@`],
  [/((?:password|passwd|secret|token|access[-_]?key|api[-_]?key)["']?\s*[=:]\s*["']?)[^\s"',;}\]]+/gi, `$1${REDACTED}`],
];

/** Shorter values occur everywhere by chance. */
const MIN_LENGTH = 4;

/**
 * Values of Secrets as they are, as base64 and in JSON, with and without the line break that many have at their end. The longest
 * first, because one may contain another.
 */
export const secretForms = (values: readonly string[]): readonly string[] =>
  [...new Set(values.flatMap((value) => [value, value.trim()]).flatMap(formsOf))]
    .filter((form) => form.length >= MIN_LENGTH)
    .toSorted((a, b) => b.length - a.length);

const formsOf = (value: string): readonly string[] => [
  value,
  Buffer.from(value).toString('base64'),
  JSON.stringify(value).slice(1, -1),
];

/** `secrets`: from `secretForms`. */
export function redactText(text: string, secrets: readonly string[]): string {
  const known = secrets.reduce((kept, secret) => kept.replaceAll(secret, REDACTED), text);
  return PATTERNS.reduce((kept, [pattern, instead]) => kept.replaceAll(pattern, instead), known);
}
