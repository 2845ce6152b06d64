/** `kubectl etcd events`: of the cluster, its members and their Pods, the newest last. */
import { type EventRow, eventRows } from '../assess/report.ts';
import type { Context } from '../context.ts';
import { clusterEvents, readCluster, readMembers } from '../gather/objects.ts';
import { printRows } from '../output.ts';
import { cut } from '../render/style.ts';
import type { Columns } from '../render/table.ts';
import { duration } from '../render/units.ts';

export interface EventsFlags {
  readonly output?: string;
  readonly warnings?: boolean;
}

/** Of the other columns, with names of usual length. */
const BESIDE = 62;

const columns = (now: number, width: number): Columns<EventRow> => [
  { head: 'AGE', cell: ({ at }) => duration(Math.max(0, now - at)) },
  { head: 'TYPE', cell: ({ type }) => ({ text: type, tone: type === 'Normal' ? undefined : 'warn' }) },
  { head: 'REASON', cell: ({ reason }) => reason },
  { head: 'ABOUT', cell: ({ about }) => about },
  { head: 'COUNT', cell: ({ count }) => (count > 1 ? String(count) : ''), right: true },
  { head: 'MESSAGE', cell: ({ note }) => cut(note, width) },
];

export async function events(context: Context, name: string, { output, warnings }: EventsFlags): Promise<number> {
  const { client, namespace, now, paper } = context;
  const cluster = await readCluster(client, { namespace, name });
  const found = await clusterEvents(client, cluster, await readMembers(client, cluster));
  const rows = eventRows(found)
    .filter(({ type }) => !warnings || type !== 'Normal')
    .toReversed();
  const shown = (wide: boolean) => columns(now(), wide ? Number.POSITIVE_INFINITY : Math.max(20, paper.width - BESIDE));
  await printRows(context, output, rows, shown, `there is no Event of ${name}; Kubernetes keeps them for an hour`);
  return 0;
}
