/** `kubectl etcd doctor`: checks of one cluster, each with advice. */
import { diagnose } from '../assess/diagnosis.ts';
import type { Context } from '../context.ts';
import { gatherCluster } from '../gather/cluster.ts';
import { gatherMetrics } from '../gather/metrics.ts';
import { formatOf, structured } from '../output.ts';
import { diagnosisText } from '../render/diagnosis.ts';

export interface DoctorFlags {
  readonly output?: string;
  readonly check?: boolean;
}

const UNHEALTHY = 2;

export async function doctor(context: Context, cluster: string, flags: DoctorFlags): Promise<number> {
  const format = formatOf(flags.output);
  const facts = await gatherCluster(context, cluster);
  const findings = diagnose(facts, await gatherMetrics(context, facts.members));
  const title = `Checks of etcd cluster ${context.namespace}/${cluster}`;
  context.print(
    format === 'json' || format === 'yaml'
      ? await structured(format, findings)
      : diagnosisText(context.paper, title, findings),
  );
  return flags.check && findings.some(({ level }) => level === 'problem') ? UNHEALTHY : 0;
}
