/** `kubectl etcd events`: of the cluster, its members and their Pods, the newest last. */
import { eventRows } from '../assess/report.ts';
import type { Context } from '../context.ts';
import { clusterEvents, readCluster, readMembers } from '../gather/objects.ts';
import { printRows } from '../output.ts';
import { eventColumns } from '../render/events.ts';

export interface EventsFlags {
  readonly output?: string;
  readonly warnings?: boolean;
}

export async function events(context: Context, name: string, { output, warnings }: EventsFlags): Promise<number> {
  const { client, namespace, now, paper } = context;
  const cluster = await readCluster(client, { namespace, name });
  const found = await clusterEvents(client, cluster, await readMembers(client, cluster));
  const rows = eventRows(found)
    .filter(({ type }) => !warnings || type !== 'Normal')
    .toReversed();
  const shown = (wide: boolean) => eventColumns(paper, rows, { wide, now: now() });
  await printRows(context, output, rows, shown, `there is no Event of ${name}; Kubernetes keeps them for an hour`);
  return 0;
}
