/** Lines of logs from several sources, made comparable: when, who, and what in one sentence. */

export interface LogLine {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** A member, `operator`, or `event`. */
  readonly source: string;
  readonly level: 'info' | 'warn' | 'error';
  readonly text: string;
}

type Json = Readonly<Record<string, unknown>>;

/** The kubelet writes the time before each line; the rest is what the process wrote. */
export function stamped(line: string): { readonly at: number; readonly text: string } | undefined {
  const space = line.indexOf(' ');
  const at = Date.parse(space < 0 ? line : line.slice(0, space));
  return Number.isNaN(at) ? undefined : { at, text: space < 0 ? '' : line.slice(space + 1) };
}

function json(text: string): Json | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

const LEVELS: Readonly<Record<string, LogLine['level']>> = {
  warn: 'warn',
  error: 'error',
  dpanic: 'error',
  panic: 'error',
  fatal: 'error',
};

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const pairs = (fields: Json, without: readonly string[]): string =>
  Object.entries(fields)
    .filter(([key]) => !without.includes(key))
    .map(([key, value]) => ` ${key}=${shown(value)}`)
    .join('');

const ETCD_HEAD = ['level', 'ts', 'caller', 'msg', 'logger'];

/** etcd writes JSON, or plain text with another --log-format. */
export function memberLine(source: string, line: string): LogLine | undefined {
  const found = stamped(line);
  if (!found) return undefined;
  const entry = json(found.text);
  if (!entry) return { at: found.at, source, level: 'info', text: found.text };
  const level = LEVELS[text(entry['level'])] ?? 'info';
  return { at: found.at, source, level, text: `${text(entry['msg'])}${pairs(entry, ETCD_HEAD)}` };
}

/** Only lines about these objects: the operator serves other clusters, too. */
export function operatorLine(keys: ReadonlySet<string>, line: string): LogLine | undefined {
  const found = stamped(line);
  const entry = found && json(found.text);
  if (!found || !entry || !keys.has(text(entry['key']))) return undefined;
  const { rule, message, error, steps, controller, key } = entry;
  const about = `${text(controller)} ${text(key).split('/')[1] ?? ''}`;
  const done = Array.isArray(steps) && steps.length > 0 ? ` [${steps.map(shown).join(', ')}]` : '';
  const what =
    error === undefined
      ? `${text(rule)}: ${text(message)}${done}`
      : `${text(rule)}: ${text(entry['msg'])}: ${shown(error)}`;
  return { at: found.at, source: 'operator', level: LEVELS[text(entry['level'])] ?? 'info', text: `${about}: ${what}` };
}

export const inOrder = (lines: readonly LogLine[]): readonly LogLine[] => lines.toSorted((a, b) => a.at - b.at);
