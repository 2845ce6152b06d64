/** Why a Pod does not start on the node of this kubelet, as a scheduler and a real kubelet would report it. Pure. */
import type { Pod } from '../../../src/gen/kube.ts';
import { parseQuantity } from '../../../src/lib/quantity.ts';

export const NODE = 'loopback';
const LABELS: Readonly<Record<string, string>> = { 'kubernetes.io/hostname': NODE };
const CAPACITY: Readonly<Record<string, string>> = { cpu: '64', memory: '1Ti', 'ephemeral-storage': '1Ti' };

/** What the scheduler says of a Pod that no node suits. Pods do not compete here: as if each had a node of its own. */
export function unschedulable({ spec }: Pod): string | undefined {
  const labels = Object.entries(spec?.nodeSelector ?? {}).some(([key, value]) => LABELS[key] !== value);
  const affinity = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution !== undefined;
  const spread = (spec?.topologySpreadConstraints ?? []).some(
    ({ whenUnsatisfiable, topologyKey }) => whenUnsatisfiable === 'DoNotSchedule' && LABELS[topologyKey] === undefined,
  );
  const [lacking] = (spec?.containers ?? []).flatMap(({ resources }) =>
    Object.entries({ ...resources?.limits, ...resources?.requests }).flatMap(([name, amount]) =>
      exceeds(name, amount) ? [name] : [],
    ),
  );
  if (lacking !== undefined) return `0/1 nodes are available: 1 Insufficient ${lacking}.`;
  if (labels || affinity) return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
  return spread ? "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints." : undefined;
}

const exceeds = (name: string, amount: string | number): boolean =>
  (parseQuantity(amount) ?? 0n) > (parseQuantity(CAPACITY[name] ?? '0') ?? 0n);

/** The image of its first container that is in no registry. */
export function missingImage(pod: Pod, images: readonly string[]): string | undefined {
  const image = pod.spec?.containers[0]?.image ?? '';
  return images.includes(image) ? undefined : image;
}
