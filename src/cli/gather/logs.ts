/** Logs of all members and of the operator, merged by time. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { Pod } from '../../gen/kube.ts';
import { listAll } from '../../kube/client.ts';
import { podLog } from '../../kube/pod-log.ts';
import { pods } from '../../kube/resources.ts';
import { inOrder, type LogLine, memberLine, operatorLine, stamped } from '../assess/log-lines.ts';
import { eventRows } from '../assess/report.ts';
import type { Context } from '../context.ts';
import { explain } from './access-error.ts';
import { clusterEvents, type Member, readMembers } from './objects.ts';

export const OPERATOR = 'app.kubernetes.io/name=etcd-operator';

export interface LogChoice {
  readonly member?: string | undefined;
  readonly operator: boolean;
  readonly tailLines?: number | undefined;
  readonly sinceSeconds?: number | undefined;
  readonly previous: boolean;
}

interface Source {
  readonly pod: Pod;
  readonly container?: string;
  readonly read: (line: string) => LogLine | undefined;
}

type Ports = Pick<Context, 'client' | 'signal' | 'namespace' | 'now'>;
type Note = (text: string) => void;

const keysOf = ({ metadata: { namespace = '', name = '' } }: EtcdCluster, members: readonly Member[]) =>
  new Set([name, ...members.map(({ object }) => object.metadata.name ?? '')].map((each) => `${namespace}/${each}`));

async function sourcesOf(
  context: Ports,
  cluster: EtcdCluster,
  choice: LogChoice,
  note: Note,
): Promise<readonly Source[]> {
  const members = await readMembers(context.client, cluster);
  const own = members
    .filter(({ object }) => choice.member === undefined || object.metadata.name === choice.member)
    .flatMap(({ object, pod }): readonly Source[] => {
      const name = object.metadata.name ?? '';
      return pod ? [{ pod, container: 'etcd', read: (line) => memberLine(name, line) }] : [];
    });
  if (!choice.operator) return own;
  const keys = keysOf(cluster, members);
  const found = await listAll(context.client, pods, { selector: OPERATOR }).catch((error: unknown) => {
    note(`without the operator's log: ${explain(error)}`);
    return [];
  });
  return [...own, ...found.map((pod): Source => ({ pod, read: (line) => operatorLine(keys, line) }))];
}

const options = ({ container }: Source, { tailLines, sinceSeconds, previous }: LogChoice, signal: AbortSignal) => ({
  ...(container !== undefined && { container }),
  ...(tailLines !== undefined && { tailLines }),
  ...(sinceSeconds !== undefined && { sinceSeconds }),
  previous,
  timestamps: true,
  signal,
});

const refOf = ({ metadata: { namespace = '', name = '' } }: Pod) => ({ namespace, name });

/** The operator's Events: its decisions also for a user who may not read its log. */
async function eventLines(context: Ports, cluster: EtcdCluster, since: number): Promise<readonly LogLine[]> {
  const found = await clusterEvents(context.client, cluster, await readMembers(context.client, cluster)).catch(
    () => [],
  );
  return eventRows(found)
    .filter(({ at }) => at >= since)
    .map(({ at, type, reason, about, note }) => ({
      at,
      source: 'event',
      level: type === 'Normal' ? ('info' as const) : ('warn' as const),
      text: `${reason} ${about}: ${note}`,
    }));
}

/** What is there now, in order. Of a Pod whose log cannot be read, the reason is noted. */
export async function pastLines(
  context: Ports,
  cluster: EtcdCluster,
  choice: LogChoice,
  note: Note,
): Promise<readonly LogLine[]> {
  const sources = await sourcesOf(context, cluster, choice, note);
  const read = await Promise.all(
    sources.map(async (source) => {
      const lines: LogLine[] = [];
      try {
        for await (const line of podLog(
          context.client.transport,
          refOf(source.pod),
          options(source, choice, context.signal),
        )) {
          const parsed = source.read(line);
          if (parsed) lines.push(parsed);
        }
      } catch (error) {
        if (!context.signal.aborted) note(`without the log of ${source.pod.metadata.name}: ${explain(error)}`);
      }
      return lines;
    }),
  );
  const lines = read.flat();
  const first = lines.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY);
  const since = choice.sinceSeconds === undefined ? first : context.now() - 1_000 * choice.sinceSeconds;
  return inOrder([...lines, ...(choice.operator ? await eventLines(context, cluster, since) : [])]);
}

/** Lines that arrive this much later than others of the same time are still put in order. */
const HELD_MS = 400;
/** Pods that are created while it follows are found this often. */
const LOOK_MS = 2_000;

/** From now on, until the signal. */
export async function followLines(
  context: Ports,
  cluster: EtcdCluster,
  choice: LogChoice,
  print: (line: LogLine) => void,
  note: Note,
): Promise<void> {
  const { signal } = context;
  const held: { readonly line: LogLine; readonly due: number }[] = [];
  const seen = new Map<string, number>();
  const open = new Set<string>();
  const follow = async (source: Source, key: string): Promise<void> => {
    const after = seen.get(key) ?? context.now();
    const sinceSeconds = Math.max(1, Math.ceil((context.now() - after) / 1_000) + 1);
    const wanted = {
      ...options(source, { ...choice, previous: false, tailLines: undefined, sinceSeconds }, signal),
      follow: true,
    };
    try {
      for await (const line of podLog(context.client.transport, refOf(source.pod), wanted)) {
        const at = stamped(line)?.at ?? 0;
        if (at <= after) continue; // sinceSeconds counts whole seconds
        seen.set(key, at);
        const parsed = source.read(line);
        if (parsed) held.push({ line: parsed, due: context.now() + HELD_MS });
      }
    } catch {
      // A Pod that is starting has no log yet: it is asked again.
    } finally {
      open.delete(key);
    }
  };
  let lookedAt = 0;
  while (!signal.aborted) {
    if (context.now() - lookedAt >= LOOK_MS) {
      const quiet = lookedAt === 0 ? note : () => undefined;
      lookedAt = context.now();
      for (const source of await sourcesOf(context, cluster, choice, quiet).catch(() => [])) {
        const key = source.pod.metadata.uid ?? '';
        if (open.has(key)) continue;
        open.add(key);
        void follow(source, key);
      }
    }
    const due = held.filter((each) => each.due <= context.now());
    held.splice(0, held.length, ...held.filter((each) => !due.includes(each)));
    for (const line of inOrder(due.map((each) => each.line))) print(line);
    await sleep(HELD_MS / 4, undefined, { signal }).catch(() => undefined);
  }
}
