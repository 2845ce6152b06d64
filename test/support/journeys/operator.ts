/** The operator that the journeys share, and how it is killed. */
import { crash } from '../../../local/faults.ts';
import { OPERATOR_NAMESPACE } from '../../../local/operator.ts';
import { testCluster } from './journey.ts';

export const IN_NAMESPACE = ['-n', OPERATOR_NAMESPACE];

export async function operatorPods(): Promise<readonly string[]> {
  const cluster = await testCluster();
  const names = await cluster.kubectl([...IN_NAMESPACE, 'get', 'pods', '-o', 'jsonpath={.items[*].metadata.name}']);
  return names.split(' ').filter(Boolean);
}

/** Kills the process at an arbitrary moment. Its Pod is deleted too: kubelet would back off longer and longer. */
export async function killOperator(pod?: string): Promise<void> {
  const cluster = await testCluster();
  for (const each of pod === undefined ? await operatorPods() : [pod]) {
    await crash(cluster, OPERATOR_NAMESPACE, each);
    await cluster.kubectl([...IN_NAMESPACE, 'delete', 'pod', each, '--grace-period=0', '--force', '--wait=false']);
  }
}
