/** The operator on a local cluster, installed the way users install it: its image and its Helm chart. */
import { buildOperatorImage } from '../tools/image/operator.ts';
import { chartDir } from '../tools/paths.ts';
import type { LocalCluster } from './cluster.ts';
import { architecture } from './images.ts';
import type { Archive } from './state.ts';

export const OPERATOR_NAMESPACE = 'etcd-operator-system';
export const OPERATOR_RELEASE = 'etcd-operator';

export const operatorImage = (): Promise<Archive> => buildOperatorImage({ architecture });

/** Chart values that make the chart run this image on a local cluster. */
export function operatorValues(image: Archive): readonly string[] {
  const separator = image.reference.lastIndexOf(':');
  return [
    `image.repository=${image.reference.slice(0, separator)}`,
    `image.tag=${image.reference.slice(separator + 1)}`,
    'kubeRbacProxy.enabled=false', // its image is on a registry, and the local cluster reaches none
    `podAnnotations.image-digest=${image.digest}`, // a rebuilt image has the same tag; this restarts the Pod
  ];
}

/** Installs or upgrades the chart with the image that was built from this checkout, and waits until the operator is ready. */
export async function installOperator(
  cluster: LocalCluster,
  image: Archive,
  further: readonly string[] = [],
): Promise<void> {
  const target = ['--namespace', OPERATOR_NAMESPACE, '--create-namespace', '--wait', '--timeout', '90s'];
  const values = [...operatorValues(image), ...further].flatMap((value) => ['--set', value]);
  await cluster.load([image]);
  await cluster.helm(['upgrade', '--install', OPERATOR_RELEASE, chartDir, ...target, ...values]);
}
