/**
 * Text that a tenant writes to block the operator, every field that it can be written to, and how long it blocks the event loop.
 * Other clusters are not repaired meanwhile, and after 10 s the operator loses its Lease.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Schema } from '../../../tools/gen/api-reference.ts';

/** The limit of Kubernetes for a Secret, and more than etcd accepts for an object. */
export const MIB = 1024 * 1024;
/** The longest time without a turn of the event loop. */
export const LONGEST_MS = 50;

const BEGIN = '-----BEGIN CERTIFICATE-----\n';
const END = '-----END CERTIFICATE-----\n';
const KEY_BEGIN = '-----BEGIN PRIVATE KEY-----\n';
const KEY_END = '-----END PRIVATE KEY-----\n';
const filled = (unit: string, size = MIB): string => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);

/** For Secrets: one for each way in which a PEM parser can take more than linear time. */
export const HOSTILE_PEM: Readonly<Record<string, string>> = {
  'BEGIN without END': filled(BEGIN),
  'END without BEGIN': filled(END),
  'BEGIN inside BEGIN, one END': `${filled(BEGIN)}${END}`,
  'empty certificates': filled(BEGIN + END),
  'one certificate of base64': `${BEGIN}${filled('A')}${END}`,
  'one certificate of short lines': `${BEGIN}${filled('A\n')}${END}`,
  'one key of base64': `${KEY_BEGIN}${filled('A')}${KEY_END}`,
  'one key of short lines': `${KEY_BEGIN}${filled('A\n')}${KEY_END}`,
  'keys without END': filled(KEY_BEGIN),
  'an encrypted key': `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: ${filled('A')}`,
  dashes: filled('-'),
  'line ends': filled('\n'),
  'spaces, then a letter': `${filled(' ')}x`,
  digits: filled('9'),
  zeros: filled('\u0000'),
};

/** For fields: the characters of numbers, times, paths, versions and schedules, as JSON no larger than etcd accepts. */
export const HOSTILE_TEXT: Readonly<Record<string, string>> = {
  'BEGIN without END': filled(BEGIN),
  'a large exponent': '1e999999999',
  'a small exponent': '1e-999999999',
  'an exponent of digits': `1e${filled('9')}`,
  'a fraction': `0.${filled('0')}1`,
  'digits, then a sign': `${filled('1')}!`,
  'spaces, then a letter': `${filled(' ')}x`,
  'slashes, then a letter': `${filled('/')}x`,
  'numbers with dots': filled('1.'),
  'numbers with commas': filled('1,'),
  hours: filled('1h'),
  'a time zone': `TZ=${filled('a/')} * * * * *`,
  'brackets and quotes': filled('["'),
  'control characters': filled('\u0000', MIB / 6),
  'wide characters': filled('ä€', MIB / 2.5),
};

/** The start of the patterns for the last line of a crashed etcd, many times. */
export const HOSTILE_WORDS = filled('wal: ');

/** CPU time of this thread: time that another process has the core does not count. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** The shortest of three runs counts: a garbage collection may fall into one of them. */
const RUNS = 3;

/** How long this synchronous work takes. */
export function blockMs(work: () => unknown, limitMs = LONGEST_MS): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS && best > limitMs; run++) {
    const before = cpuMs();
    work();
    best = Math.min(best, cpuMs() - before);
  }
  return best;
}

/** The longest time between two turns of the event loop until this is done. */
export async function longestBlockMs(work: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS && best > LONGEST_MS; run++) best = Math.min(best, await observed(work));
  return best;
}

async function observed(work: () => Promise<unknown>): Promise<number> {
  let [longest, done] = [0, false];
  const watch = async (): Promise<void> => {
    for (let before = cpuMs(); !done; before = cpuMs()) {
      await turn();
      longest = Math.max(longest, cpuMs() - before);
    }
  };
  const watching = watch();
  await turn();
  try {
    await work();
  } finally {
    done = true;
    await watching;
  }
  return longest;
}

/** Where text goes: `items` of a list by `[]`, values of a map by `*`, and a key of a map by `?`. */
export type Path = readonly string[];

/** Every field of free text: neither an enum nor a date, which the API server validates itself. */
export function textPaths(schema: Schema, path: Path = []): readonly Path[] {
  if (schema['x-kubernetes-int-or-string']) return [path];
  if (schema.properties)
    return Object.entries(schema.properties).flatMap(([name, field]) => textPaths(field, [...path, name]));
  if (schema.items) return textPaths(schema.items, [...path, '[]']);
  if (schema.additionalProperties) return [[...path, '?'], ...textPaths(schema.additionalProperties, [...path, '*'])];
  return schema.type === 'string' && !schema.enum && schema.format === undefined ? [path] : [];
}

/** The smallest object with this text at the path: other required fields are filled in. */
export function withText(schema: Schema, [first, ...rest]: Path, text: string): unknown {
  if (first === undefined) return text;
  if (first === '?') return { [text]: least(schema.additionalProperties ?? {}) };
  if (first === '*') return { a: withText(schema.additionalProperties ?? {}, rest, text) };
  if (first === '[]') return [withText(schema.items ?? {}, rest, text)];
  return { ...(least(schema) as object), [first]: withText(schema.properties?.[first] ?? {}, rest, text) };
}

function least(schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema['x-kubernetes-int-or-string']) return '1Gi';
  if (schema.properties)
    return Object.fromEntries(
      (schema.required ?? []).map((name) => [name, least(schema.properties?.[name] ?? {})] as const),
    );
  if (schema.enum) return schema.enum[0];
  if (schema.type === 'array') return [];
  return schema.type === 'integer' ? (schema.minimum ?? 1) : schema.type === 'boolean' ? false : 'a';
}
