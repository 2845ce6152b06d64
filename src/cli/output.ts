/** Structured output for scripts. */
import { type Context, UserError } from './context.ts';
import { type Columns, table } from './render/table.ts';

export type Format = 'text' | 'wide' | 'json' | 'yaml';

export function formatOf(flag: string | undefined): Format {
  if (flag === undefined) return 'text';
  if (flag === 'json' || flag === 'yaml' || flag === 'wide') return flag;
  throw new UserError(`-o must be json, yaml or wide, not ${JSON.stringify(flag)}`);
}

/** Milliseconds since 1970 in the report; scripts get timestamps as Kubernetes writes them. */
const TIMES = new Set([
  'at',
  'finishedAt',
  'since',
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

/** Rows as a table, or as JSON or YAML. `none`: the sentence for people when there are no rows. */
export async function printRows<Row>(
  { print, note, paper }: Pick<Context, 'print' | 'note' | 'paper'>,
  output: string | undefined,
  rows: readonly Row[],
  columns: (wide: boolean, rows: readonly Row[]) => Columns<Row>,
  none: string,
): Promise<void> {
  const format = formatOf(output);
  if (format === 'json' || format === 'yaml') print(await structured(format, rows));
  else if (rows.length === 0) note(none);
  else print(table(paper, columns(format === 'wide', rows), rows).join('\n'));
}
