/** `kubectl etcd replace MEMBER`: the operator removes the member from etcd, and another one joins in its place. */
import { ALLOW_DELETION_ANNOTATION, CLUSTER_LABEL } from '../../api/names.ts';
import { findCondition } from '../../domain/conditions.ts';
import { judge } from '../assess/health.ts';
import type { Progress } from '../assess/progress.ts';
import { replacementRefusal } from '../assess/replacement.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { follow, timeoutMs, type WaitFlags } from '../follow.ts';
import { gatherCluster } from '../gather/cluster.ts';
import { members, readCluster } from '../gather/objects.ts';

export async function replace(context: Context, name: string, flags: ActFlags & WaitFlags): Promise<number> {
  const { client, namespace } = context;
  const ref = { namespace, name };
  const limitMs = timeoutMs(flags);
  const member = await client.get(members, ref);
  if (!member) throw new UserError(`there is no EtcdMember ${name} in namespace ${namespace}: see kubectl etcd status`);
  const clusterName = member.metadata.labels?.[CLUSTER_LABEL] ?? member.spec.clusterName;
  const facts = await gatherCluster(context, clusterName);
  const refusal = replacementRefusal(facts, name);
  if (refusal !== undefined && !flags.force) throw new UserError(`${refusal}. To do it nevertheless, pass --force`);
  const order =
    facts.members.length === 1
      ? 'a new member joins first and takes over the data, then the operator removes this one from etcd'
      : 'the operator removes it from etcd, then a new member with an empty volume joins and copies the data; until it votes, one voter fewer may fail';
  const plan = `replace ${name}: ${order}`;
  if (!(await isAgreed(context, plan, flags))) return 0;
  const { uid = '' } = member.metadata;
  const annotations = { [ALLOW_DELETION_ANNOTATION]: 'true' };
  await client.patch(members, ref, { metadata: { uid, annotations } });
  await client.delete(members, ref, { uid });
  if (flags.wait === false) return 0;
  const later = `kubectl etcd status ${clusterName} -n ${namespace}`;
  return follow(context, () => replacing(context, clusterName, uid), { later, timeoutMs: limitMs });
}

async function replacing(context: Context, name: string, uid: string): Promise<Progress> {
  const facts = await gatherCluster(context, name);
  const left = facts.members.some(({ object }) => object.metadata.uid === uid);
  const { health, summary } = judge(facts);
  if (!left && health === 'healthy' && facts.members.length >= (facts.cluster.spec.replicas ?? 0))
    return { line: summary, ended: 'good' };
  const { status } = await readCluster(context.client, { namespace: context.namespace, name });
  return { line: findCondition(status?.conditions, 'Progressing')?.message ?? summary };
}
