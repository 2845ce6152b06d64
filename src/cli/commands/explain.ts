/** `kubectl etcd explain`: the operator's own rules, asked on this machine. Nothing is changed. */
import type { Explanation } from '../assess/explanation.ts';
import { type Context, UserError } from '../context.ts';
import { formatOf, structured } from '../output.ts';
import { explanationText } from '../render/explanation.ts';

/** Of the cluster controller, which commands do not import: the entry point hands it over. */
export type Explain = (context: Context, cluster: string) => Promise<Explanation | undefined>;

export async function explain(
  context: Context,
  cluster: string,
  { output }: { readonly output?: string },
  ask: Explain,
): Promise<number> {
  const format = formatOf(output);
  const explanation = await ask(context, cluster);
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
