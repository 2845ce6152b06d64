/** `kubectl etcd restart`: the operator restarts every member once, one after the other. */
import { RESTARTED_AT_ANNOTATION } from '../../api/names.ts';
import type { Progress } from '../assess/progress.ts';
import { restartProgress, rolloutRefusal } from '../assess/rollout.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { follow, timeoutMs, type WaitFlags } from '../follow.ts';
import { readCluster, readMembers } from '../gather/objects.ts';
import { patchCluster } from './patch-cluster.ts';

export async function restart(context: Context, name: string, flags: ActFlags & WaitFlags): Promise<number> {
  const { client, namespace, now } = context;
  const limitMs = timeoutMs(flags);
  const cluster = await readCluster(client, { namespace, name });
  const refusal = rolloutRefusal(cluster);
  if (refusal !== undefined) throw new UserError(refusal);
  const members = await readMembers(client, cluster);
  const how = members.length === 1 ? 'its only member; clients are interrupted meanwhile' : 'every member';
  const order = members.length === 1 ? '' : ', one after the other, the leader last';
  if (!(await isAgreed(context, `restart ${how} of ${name}${order}`, flags))) return 0;
  const before = new Set(members.flatMap(({ pod }) => pod?.metadata.uid ?? []));
  const value = new Date(now()).toISOString();
  await patchCluster(context, cluster, { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: value } } });
  const later = `kubectl etcd status ${name} -n ${namespace} --watch`;
  if (flags.wait === false) {
    context.note(`requested; follow it with: ${later}`);
    return 0;
  }
  const look = async (): Promise<Progress> => {
    const present = await readCluster(client, { namespace, name });
    return restartProgress(present, await readMembers(client, present), { value, before });
  };
  return follow(context, look, { later, timeoutMs: limitMs });
}
