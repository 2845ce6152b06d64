/** `schedule list|run|suspend|resume`. */
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { scheduledSnapshot } from '../../domain/scheduled-snapshot.ts';
import { listAll } from '../../kube/client.ts';
import { scheduleRow } from '../assess/backups.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import type { WaitFlags } from '../follow.ts';
import { schedules } from '../gather/objects.ts';
import { printRows } from '../output.ts';
import { scheduleColumns } from '../render/backups.ts';
import { type ListFlags, take } from './backups.ts';

async function read({ client, namespace }: Context, name: string): Promise<EtcdSnapshotSchedule> {
  const found = await client.get(schedules, { namespace, name });
  if (found) return found;
  throw new UserError(`there is no EtcdSnapshotSchedule ${name} in namespace ${namespace}: see schedule list`);
}

export async function listSchedules(
  context: Context,
  cluster: string | undefined,
  { output, allNamespaces }: ListFlags,
): Promise<number> {
  const found = await listAll(context.client, schedules, allNamespaces ? {} : { namespace: context.namespace });
  const rows = found.map(scheduleRow).filter((row) => cluster === undefined || row.cluster === cluster);
  const columns = () => scheduleColumns(context.now(), { clusters: cluster === undefined });
  await printRows(context, output, rows, columns, 'there is no EtcdSnapshotSchedule');
  return 0;
}

/** Now, under the name of this minute: it counts for retention, drills and the recovery point as any other of the schedule. */
export async function runSchedule(context: Context, name: string, flags: ActFlags & WaitFlags): Promise<number> {
  const schedule = await read(context, name);
  return take(context, scheduledSnapshot(schedule, context.now()), flags);
}

export async function suspendSchedule(
  context: Context,
  name: string,
  suspend: boolean,
  flags: ActFlags,
): Promise<number> {
  const { metadata, spec } = await read(context, name);
  if ((spec.suspend === true) === suspend) {
    context.note(`${name} is ${suspend ? 'suspended already' : 'not suspended'}`);
    return 0;
  }
  const plan = suspend
    ? `suspend schedule ${name}: no snapshot of ${spec.clusterRef.name} starts by it until it is resumed`
    : `resume schedule ${name}`;
  if (!(await isAgreed(context, plan, flags))) return 0;
  const { resourceVersion } = metadata;
  const ref = { namespace: context.namespace, name };
  await context.client.patch(schedules, ref, { metadata: { resourceVersion }, spec: { suspend } });
  context.note('done');
  return 0;
}
