/** `kubectl etcd defrag` of a cluster: an EtcdDefrag, which the operator carries out when no other member is disrupted. */
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import { isNotFound } from '../../kube/errors.ts';
import { defragProgress, newDefrag, outcomeLines, type RuleFlags, ruleOf } from '../assess/defrags.ts';
import { stamped } from '../assess/new-snapshot.ts';
import type { Progress } from '../assess/progress.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { follow, timeoutMs, type WaitFlags } from '../follow.ts';
import { defrags, readCluster } from '../gather/objects.ts';
import type { TargetFlags } from '../gather/target.ts';
import { defragDirectly } from './maintenance.ts';

export interface DefragFlags extends ActFlags, WaitFlags, RuleFlags, Pick<TargetFlags, 'credentialsSecret'> {
  readonly pod?: string;
  readonly direct?: boolean;
}

export async function defrag(context: Context, name: string | undefined, flags: DefragFlags): Promise<number> {
  const rule = ruleOf(flags);
  if (flags.pod !== undefined || flags.direct) {
    if (!rule.all) throw new UserError('a rule is only understood by the operator: leave -p and --direct out');
    return defragDirectly(context, name, flags);
  }
  if (name === undefined) throw new UserError('name a cluster, or one Pod of it with -p');
  const { client, namespace, now } = context;
  const limitMs = timeoutMs(flags);
  const { spec } = await readCluster(client, { namespace, name });
  if (spec.suspend)
    throw new UserError(`the operator is suspended for ${name}: unsuspend it, or defragment from here with --direct`);
  if (spec.replicas === 0) throw new UserError(`${name} is paused, and no etcd runs`);
  const which = rule.all
    ? 'every member'
    : `the members of ${name} that ${Object.entries(rule)
        .map(([key, value]) => `${key} ${value}`)
        .join(', ')} selects`;
  const object = newDefrag(namespace, stamped(name, now()), name, rule);
  const plan = `create EtcdDefrag ${object.metadata.name}: the operator defragments ${which} of ${name}, one after the other, the leader last; each serves nothing meanwhile`;
  if (!(await isAgreed(context, plan, flags))) return 0;
  await create(context, object);
  context.print(object.metadata.name ?? '');
  if (flags.wait === false) return 0;
  return wait(context, object, limitMs);
}

async function create({ client }: Context, object: EtcdDefrag): Promise<void> {
  try {
    await client.create(defrags, object);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new UserError('this Kubernetes has no EtcdDefrag: install the CRDs of the operator, or pass --direct', {
      cause: error,
    });
  }
}

function wait(context: Context, { metadata, spec }: EtcdDefrag, limitMs: number): Promise<number> {
  const ref = { namespace: context.namespace, name: metadata.name ?? '' };
  let shown = 0;
  const look = async (): Promise<Progress> => {
    const found = await context.client.get(defrags, ref);
    const lines = found ? outcomeLines(found) : [];
    for (const line of lines.slice(shown)) context.note(line);
    shown = Math.max(shown, lines.length);
    return defragProgress(ref.name, found);
  };
  const cancel = `kubectl delete etcddefrag ${ref.name} -n ${ref.namespace} stops it after the present member`;
  const later = `kubectl etcd status ${spec.clusterRef.name} -n ${ref.namespace}; ${cancel}`;
  return follow(context, look, { later, timeoutMs: limitMs });
}
