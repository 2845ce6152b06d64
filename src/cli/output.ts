/** Structured output for scripts. */
import { UserError } from './context.ts';

export type Format = 'text' | 'wide' | 'json' | 'yaml';

export function formatOf(flag: string | undefined): Format {
  if (flag === undefined) return 'text';
  if (flag === 'json' || flag === 'yaml' || flag === 'wide') return flag;
  throw new UserError(`-o must be json, yaml or wide, not ${JSON.stringify(flag)}`);
}

/** Milliseconds since 1970 in the report; scripts get timestamps as Kubernetes writes them. */
const TIMES = new Set([
  'at',
  'createdAt',
  'lastSuccess',
  'next',
  'notAfter',
  'recoveryPoint',
  'renewAt',
  'runningSince',
]);

const stated = (key: string, value: unknown): unknown =>
  typeof value === 'number' && TIMES.has(key) ? new Date(value).toISOString() : value;

export async function structured(format: 'json' | 'yaml', value: unknown): Promise<string> {
  const json = JSON.stringify(value, stated, 2);
  if (format === 'json') return json;
  const { stringify } = await import('yaml');
  return stringify(JSON.parse(json)).trimEnd();
}
