/** `kubectl etcd top`: what the members do, from their own metrics. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sample } from '../assess/metrics.ts';
import { type TopRow, topRow } from '../assess/top.ts';
import { type Context, UserError } from '../context.ts';
import { gatherSamples } from '../gather/metrics.ts';
import { readCluster, readMembers } from '../gather/objects.ts';
import { formatOf, structured } from '../output.ts';
import { table } from '../render/table.ts';
import { topColumns } from '../render/top.ts';
import { watch } from '../watch.ts';

export interface TopFlags {
  readonly output?: string;
  readonly watch?: boolean;
}

/** Between the two samples of one table. */
const BETWEEN_MS = 2_000;

export async function top(context: Context, name: string, flags: TopFlags): Promise<number> {
  const format = formatOf(flags.output);
  const cluster = await readCluster(context.client, { namespace: context.namespace, name });
  let before: ReadonlyMap<string, Sample> = new Map();
  const draw = async (): Promise<string> => {
    const members = await readMembers(context.client, cluster);
    const now = await gatherSamples(context, members);
    const rows = members.map(({ object: { metadata } }): TopRow => {
      const member = metadata.name ?? '';
      return topRow(member, before.get(member), now.get(member));
    });
    before = now;
    if (now.size === 0)
      throw new UserError(
        `the metrics of no member of ${name} could be read: they need get and create on pods/portforward, and a Pod that runs`,
      );
    if (format === 'json' || format === 'yaml') return structured(format, rows);
    return table(context.paper, topColumns(format === 'wide'), rows).join('\n');
  };
  await draw(); // rates need an earlier sample
  await sleep(BETWEEN_MS, undefined, { signal: context.signal });
  if (flags.watch) await watch(context, draw);
  else context.print(await draw());
  return 0;
}
