/** `kubectl etcd explain`: the operator's own rules, asked on this machine. Nothing is changed. */
import { type Context, UserError } from '../context.ts';
import type { OperatorRules } from '../flags.ts';
import { formatOf, structured } from '../output.ts';
import { explanationText } from '../render/explanation.ts';

export async function explain(
  context: Context,
  cluster: string,
  { output }: { readonly output?: string },
  rules: OperatorRules,
): Promise<number> {
  const format = formatOf(output);
  const explanation = await rules.explain(context, cluster);
  if (!explanation)
    throw new UserError(
      `there is no EtcdCluster ${cluster} in namespace ${context.namespace}: list all clusters with: kubectl etcd status -A`,
    );
  const title = `Why the operator acts as it does on etcd cluster ${context.namespace}/${cluster}`;
  context.print(
    format === 'json' || format === 'yaml'
      ? await structured(format, explanation)
      : explanationText(context.paper, title, explanation),
  );
  return 0;
}
