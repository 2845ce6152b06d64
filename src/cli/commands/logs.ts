/** `kubectl etcd logs`: all members and the operator's decisions about them, merged by time. */
import { parseDuration } from '../../lib/duration.ts';
import type { LogLine } from '../assess/log-lines.ts';
import { type Context, UserError } from '../context.ts';
import { followLines, type LogChoice, pastLines } from '../gather/logs.ts';
import { readCluster } from '../gather/objects.ts';
import { logText } from '../render/log.ts';

export interface LogsFlags {
  readonly follow?: boolean;
  readonly since?: string;
  readonly tail?: string;
  readonly member?: string;
  readonly previous?: boolean;
  /** False with --no-operator. */
  readonly operator?: boolean;
}

const DEFAULT_TAIL = 100;

function choiceOf({ since, tail, member, previous = false, operator = true }: LogsFlags): LogChoice {
  const sinceMs = since === undefined ? undefined : parseDuration(since);
  if (since !== undefined && !sinceMs) throw new UserError(`--since must be a duration such as 10m, not ${since}`);
  if (tail !== undefined && !/^\d{1,7}$/.test(tail)) throw new UserError(`--tail must be a number, not ${tail}`);
  const sinceSeconds = sinceMs === undefined ? undefined : Math.ceil(sinceMs / 1_000);
  const tailLines = tail === undefined ? (since === undefined ? DEFAULT_TAIL : undefined) : Number(tail);
  return { member, operator, previous, sinceSeconds, tailLines };
}

export async function logs(context: Context, name: string, flags: LogsFlags): Promise<number> {
  const choice = choiceOf(flags);
  const cluster = await readCluster(context.client, { namespace: context.namespace, name });
  let width = 'operator'.length;
  const print = (line: LogLine): void => {
    width = Math.max(width, line.source.length);
    context.print(logText(context.paper, line, width));
  };
  const past = await pastLines(context, cluster, choice, context.note);
  width = Math.max(width, ...past.map(({ source }) => source.length));
  for (const line of past) print(line);
  if (past.length === 0) context.note(`there is no log line of ${name}`);
  if (flags.follow) await followLines(context, cluster, choice, print, context.note);
  return 0;
}
