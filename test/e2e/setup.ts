/** Once per run: the operator of this checkout, installed by its chart where only restricted Pods are admitted. */
import { etcdImageArchive } from '../../local/images.ts';
import { installOperator, OPERATOR_NAMESPACE, operatorImage } from '../../local/operator.ts';
import { testCluster } from '../support/journeys/journey.ts';

export async function setup(): Promise<void> {
  const cluster = await testCluster();
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  await cluster.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: OPERATOR_NAMESPACE, labels } }]);
  await cluster.load([await etcdImageArchive('3.6')]);
  // Clients of tests read their Secrets more often than a kubelet does.
  await installOperator(cluster, await operatorImage(), ['manager.rotationGraceSeconds=20']);
}
