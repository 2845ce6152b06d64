/** `kubectl etcd events`: of the cluster, its members and their Pods, the newest last. */
import { type EventRow, eventRows } from '../assess/report.ts';
import type { Context } from '../context.ts';
import { clusterEvents, readCluster, readMembers } from '../gather/objects.ts';
import { printRows } from '../output.ts';
import { type Columns, withRest } from '../render/table.ts';
import { duration } from '../render/units.ts';

export interface EventsFlags {
  readonly output?: string;
  readonly warnings?: boolean;
}

const columns = (now: number): Columns<EventRow> => [
  { head: 'AGE', cell: ({ at }) => duration(Math.max(0, now - at)) },
  { head: 'TYPE', cell: ({ type }) => ({ text: type, tone: type === 'Normal' ? undefined : 'warn' }) },
  { head: 'REASON', cell: ({ reason }) => reason },
  { head: 'ABOUT', cell: ({ about }) => about },
  { head: 'COUNT', cell: ({ count }) => (count > 1 ? String(count) : ''), right: true },
];

export async function events(context: Context, name: string, { output, warnings }: EventsFlags): Promise<number> {
  const { client, namespace, now, paper } = context;
  const cluster = await readCluster(client, { namespace, name });
  const found = await clusterEvents(client, cluster, await readMembers(client, cluster));
  const rows = eventRows(found)
    .filter(({ type }) => !warnings || type !== 'Normal')
    .toReversed();
  const message = { head: 'MESSAGE', text: ({ note }: EventRow) => note };
  const shown = (wide: boolean) =>
    withRest({ ...paper, ...(wide && { width: Number.POSITIVE_INFINITY }) }, columns(now()), rows, message);
  await printRows(context, output, rows, shown, `there is no Event of ${name}; Kubernetes keeps them for an hour`);
  return 0;
}
