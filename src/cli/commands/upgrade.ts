/** `kubectl etcd upgrade --to`: through every version on the way, each rolled out by the operator. */
import { rolloutRefusal, versionProgress } from '../assess/rollout.ts';
import { obstacles, type UpgradePath, upgradePath, type VersionChecks } from '../assess/upgrade.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import type { OperatorRules } from '../flags.ts';
import { follow, timeoutMs, type WaitFlags } from '../follow.ts';
import { gatherCluster } from '../gather/cluster.ts';
import { readCluster } from '../gather/objects.ts';
import { upgradePlan } from '../render/upgrade.ts';
import { patchCluster } from './patch-cluster.ts';

export interface UpgradeFlags extends ActFlags, WaitFlags {
  readonly to: string;
  readonly downgrade?: boolean;
}

export async function upgrade(
  context: Context,
  name: string,
  flags: UpgradeFlags,
  rules: OperatorRules,
): Promise<number> {
  const limitMs = timeoutMs(flags);
  const started = performance.now();
  const facts = await gatherCluster(context, name);
  const { cluster } = facts;
  const refusal = rolloutRefusal(cluster);
  if (refusal !== undefined) throw new UserError(refusal);
  const path = upgradePath(facts, flags.to, flags.downgrade);
  if (typeof path === 'string') throw new UserError(path);
  const { running, stops } = path;
  const isReached = running.length === 1 && running[0] === flags.to && cluster.spec.version === flags.to;
  if (isReached && versionProgress(cluster, flags.to).ended === 'good') {
    context.note(`all members of ${name} run ${flags.to} already`);
    return 0;
  }
  if (flags.wait === false && stops.length > 1)
    throw new UserError(
      `the way to ${flags.to} is ${stops.join(', then ')}, and each has to be waited for: leave --no-wait out, or name ${stops[0]} with --to`,
    );
  await showPlan(context, path, facts.cluster.spec.version, name, rules);
  const plan = `change ${name} from etcd ${running.join(' and ')} to ${stops.join(', then ')}: every member restarts ${stops.length === 1 ? 'once' : `${stops.length} times`}, one after the other, the leader last`;
  if (!(await isAgreed(context, plan, flags))) return 0;
  for (const stop of stops) {
    const code = await reach(context, name, stop, flags, limitMs - (performance.now() - started));
    if (code !== 0) return code;
  }
  return 0;
}

async function showPlan(
  context: Context,
  path: UpgradePath,
  wanted: string,
  name: string,
  rules: OperatorRules,
): Promise<void> {
  const [first = ''] = path.stops;
  const none: VersionChecks = { found: [], limits: [] };
  const checks = (await rules.checkVersion(context, name, first)) ?? none;
  const title = `etcd cluster ${context.namespace}/${name}: to ${path.stops.at(-1)}`;
  context.print(upgradePlan(context.paper, title, path, { wanted, checks }));
  if (obstacles(checks).length > 0)
    context.note('the operator changes no member while one of its checks fails; it asks them again all the time');
}

/** Sets `spec.version`, and waits until all members run it. */
async function reach(
  context: Context,
  name: string,
  version: string,
  flags: UpgradeFlags,
  limitMs: number,
): Promise<number> {
  const ref = { namespace: context.namespace, name };
  const cluster = await readCluster(context.client, ref);
  if (cluster.spec.version !== version) await patchCluster(context, cluster, { spec: { version } });
  const again = `kubectl etcd upgrade ${name} -n ${context.namespace} --to ${flags.to}`;
  if (flags.wait === false) {
    context.note(`requested; follow it with: kubectl etcd status ${name} -n ${context.namespace} --watch`);
    return 0;
  }
  const look = async () => versionProgress(await readCluster(context.client, ref), version);
  return follow(context, look, {
    later:
      version === flags.to
        ? `kubectl etcd status ${name} -n ${ref.namespace}`
        : `to ${version} only; to go on: ${again}`,
    timeoutMs: limitMs,
  });
}
