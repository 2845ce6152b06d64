/** `kubectl etcd status`: one cluster on one screen, or a table of all of them. */
import { fleetRows } from '../assess/fleet.ts';
import { isGood } from '../assess/health.ts';
import { reportOn } from '../assess/report.ts';
import { type Context, UserError } from '../context.ts';
import { gatherCluster } from '../gather/cluster.ts';
import { gatherFleet } from '../gather/fleet.ts';
import { formatOf, structured } from '../output.ts';
import { clusterScreen } from '../render/cluster.ts';
import { fleetTable } from '../render/fleet.ts';
import { watch } from '../watch.ts';

export interface StatusFlags {
  readonly output?: string;
  readonly watch?: boolean;
  readonly check?: boolean;
  readonly allNamespaces?: boolean;
}

/** For `--check`: the cluster, or one of the clusters, is not healthy. */
const UNHEALTHY = 2;

interface Drawn {
  readonly text: string;
  readonly good: boolean;
}

export async function status(context: Context, cluster: string | undefined, flags: StatusFlags): Promise<number> {
  if (cluster !== undefined && flags.allNamespaces) throw new UserError('name a cluster, or use -A, but not both');
  const draw = cluster === undefined ? () => drawFleet(context, flags) : () => drawCluster(context, cluster, flags);
  if (!flags.watch) {
    const { text, good } = await draw();
    context.print(text);
    return flags.check && !good ? UNHEALTHY : 0;
  }
  await watch(context, async () => (await draw()).text);
  return 0;
}

async function drawCluster(context: Context, name: string, { output }: StatusFlags): Promise<Drawn> {
  const format = formatOf(output);
  const report = reportOn(await gatherCluster(context, name));
  const good = isGood(report.health);
  if (format === 'json' || format === 'yaml') return { text: await structured(format, report), good };
  return { text: clusterScreen(context.paper, report, { wide: format === 'wide', now: context.now() }), good };
}

async function drawFleet(context: Context, { output, allNamespaces = false }: StatusFlags): Promise<Drawn> {
  const format = formatOf(output);
  const clusters = await gatherFleet(context.client, allNamespaces ? undefined : context.namespace);
  const rows = fleetRows(clusters, context.now());
  const good = rows.every(({ health }) => isGood(health) || health === 'paused');
  if (format === 'json' || format === 'yaml') return { text: await structured(format, rows), good };
  if (rows.length === 0) return { text: noClusters(context, allNamespaces), good };
  const options = { allNamespaces, wide: format === 'wide', now: context.now() };
  return { text: fleetTable(context.paper, rows, options), good };
}

const noClusters = ({ namespace }: Context, allNamespaces: boolean): string =>
  allNamespaces
    ? 'There is no EtcdCluster.'
    : `There is no EtcdCluster in namespace ${namespace}. To list those of all namespaces: kubectl etcd status -A`;
