/** `snapshot create|list|restore`: the operator's own objects, so that what is stored is verified and recorded. */
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { findCondition } from '../../domain/conditions.ts';
import { listAll } from '../../kube/client.ts';
import { snapshotRows } from '../assess/backups.ts';
import { type DestinationFlags, newSnapshot, newSnapshotName, storedBy } from '../assess/new-snapshot.ts';
import type { Progress } from '../assess/progress.ts';
import { type RestoreFlags, restoredCluster, restoreWarnings } from '../assess/restored-cluster.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { follow, timeoutMs, type WaitFlags } from '../follow.ts';
import { clusters, readCluster, schedules, snapshots } from '../gather/objects.ts';
import { printRows, structured } from '../output.ts';
import { snapshotColumns } from '../render/backups.ts';
import { bytes } from '../render/units.ts';

type CreateFlags = ActFlags & WaitFlags & DestinationFlags & { readonly name?: string };

export async function createSnapshot(context: Context, cluster: string, flags: CreateFlags): Promise<number> {
  const { client, namespace, now } = context;
  await readCluster(client, { namespace, name: cluster });
  const needsSchedules = flags.pvc === undefined && flags.s3 === undefined;
  const found = needsSchedules ? await listAll(client, schedules, { namespace }) : [];
  const stored = storedBy(flags, cluster, found);
  if (typeof stored === 'string') throw new UserError(stored);
  const object = newSnapshot(namespace, flags.name ?? newSnapshotName(cluster, now()), cluster, stored);
  return take(context, object, flags);
}

/** Creates it, after the question, and waits until it is stored. */
export async function take(context: Context, object: EtcdSnapshot, flags: ActFlags & WaitFlags): Promise<number> {
  const { client, namespace } = context;
  const { name = '' } = object.metadata;
  const limitMs = timeoutMs(flags);
  if (!(await isAgreed(context, `create EtcdSnapshot ${name} of ${object.spec.clusterRef.name}`, flags))) return 0;
  await client.create(snapshots, object);
  context.print(name);
  if (flags.wait === false) return 0;
  const look = async (): Promise<Progress> => progressOf(name, await client.get(snapshots, { namespace, name }));
  const later = `kubectl etcd snapshot list ${object.spec.clusterRef.name} -n ${namespace}`;
  return follow(context, look, { later, timeoutMs: limitMs });
}

export function progressOf(name: string, snapshot: EtcdSnapshot | undefined): Progress {
  if (!snapshot) return { line: `${name}: it was deleted`, ended: 'bad' };
  const { phase = 'Pending', artifact, conditions } = snapshot.status ?? {};
  const ready = findCondition(conditions, 'Ready');
  const message = ready?.message ? `: ${ready.message}` : '';
  if (phase === 'Failed') return { line: `${name}: failed (${ready?.reason ?? ''})${message}`, ended: 'bad' };
  if (phase !== 'Complete') return { line: `${name}: ${phase}${message}` };
  const size = artifact?.sizeBytes === undefined ? '' : `, ${bytes(artifact.sizeBytes)}`;
  return {
    line: `${name}: stored at ${artifact?.uri ?? ''}${size}, revision ${artifact?.revision ?? ''}`,
    ended: 'good',
  };
}

export interface ListFlags {
  readonly output?: string;
  readonly allNamespaces?: boolean;
}

export async function listSnapshots(
  context: Context,
  cluster: string | undefined,
  { output, allNamespaces }: ListFlags,
): Promise<number> {
  const found = await listAll(context.client, snapshots, allNamespaces ? {} : { namespace: context.namespace });
  const chosen = found.filter(({ spec }) => cluster === undefined || spec.clusterRef.name === cluster);
  const columns = (wide: boolean) => snapshotColumns(context.now(), { clusters: cluster === undefined, wide });
  const none = 'there is no EtcdSnapshot; to take one: kubectl etcd snapshot create CLUSTER';
  await printRows(context, output, snapshotRows(chosen), columns, none);
  return 0;
}

type RestoreOptions = ActFlags &
  WaitFlags &
  Omit<RestoreFlags, 'replicas'> & { readonly replicas?: string; readonly like?: string };

/** Into a new cluster: the data of the present one is not touched. */
export async function restoreSnapshot(
  context: Context,
  name: string,
  into: string,
  flags: RestoreOptions,
): Promise<number> {
  const { client, namespace } = context;
  const snapshot = await client.get(snapshots, { namespace, name });
  if (!snapshot) throw new UserError(`there is no EtcdSnapshot ${name} in namespace ${namespace}: see snapshot list`);
  if (await client.get(clusters, { namespace, name: into }))
    throw new UserError(`there is an EtcdCluster ${into} already: a snapshot is restored into a new one`);
  const like =
    flags.like === undefined
      ? await client.get(clusters, { namespace, name: snapshot.spec.clusterRef.name ?? '' })
      : await readCluster(client, { namespace, name: flags.like });
  const { replicas, ...rest } = flags;
  if (replicas !== undefined && !/^[1-9]\d?$/.test(replicas))
    throw new UserError('--replicas must be a number above 0');
  const made = restoredCluster(snapshot, into, like, { ...rest, ...(replicas && { replicas: Number(replicas) }) });
  if (typeof made === 'string') throw new UserError(made);
  const limitMs = timeoutMs(flags);
  for (const warning of restoreWarnings(made)) context.note(`note: ${warning}`);
  if (flags.dryRun) context.print(await structured('yaml', made));
  if (!(await isAgreed(context, `create EtcdCluster ${into} with the data of ${name}`, flags))) return 0;
  await client.create(clusters, made);
  if (flags.wait === false) return 0;
  return follow(context, () => restoring(context, into), {
    later: `kubectl etcd status ${into} -n ${namespace}`,
    timeoutMs: limitMs,
  });
}

async function restoring({ client, namespace }: Context, name: string): Promise<Progress> {
  const { status } = await readCluster(client, { namespace, name });
  const available = findCondition(status?.conditions, 'Available');
  const progressing = findCondition(status?.conditions, 'Progressing');
  if (available?.status === 'True') return { line: `${name} is available`, ended: 'good' };
  return { line: `${name}: ${available?.message || progressing?.message || 'waits for the operator'}` };
}
