/** The status that the disruption controller writes to a PodDisruptionBudget, and the API server's decision on an eviction. */
import type { Pod, PodDisruptionBudget, PodDisruptionBudgetStatus } from '../../../src/gen/kube.ts';

/** A Pod whose eviction was granted counts as disrupted for this long although it still exists. */
const GRANTED_MS = 2 * 60_000;

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;

export function covers({ metadata, spec }: PodDisruptionBudget, pod: Pod): boolean {
  if (metadata?.namespace !== pod.metadata?.namespace || !spec?.selector) return false;
  if (spec.selector.matchExpressions?.length) throw new Error('the model does not support matchExpressions');
  const labels = pod.metadata?.labels ?? {};
  return Object.entries(spec.selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
}

/** The status of a PDB over these Pods. Without a number in minAvailable it would need a controller with a scale. */
export function budgetStatus(
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  now: number,
): PodDisruptionBudgetStatus {
  const { minAvailable } = budget.spec ?? {};
  const { generation = 0 } = budget.metadata ?? {};
  if (typeof minAvailable !== 'number') return { ...unknown(budget), disruptionsAllowed: 0 };
  const granted = Object.fromEntries(
    Object.entries(budget.status?.disruptedPods ?? {}).filter(([name, at]) => {
      const pod = pods.find(({ metadata }) => metadata?.name === name);
      return pod?.metadata && !pod.metadata.deletionTimestamp && now - Date.parse(String(at)) < GRANTED_MS;
    }),
  );
  const healthy = pods.filter(
    (pod) => isReady(pod) && !pod.metadata?.deletionTimestamp && !(String(pod.metadata?.name) in granted),
  );
  const allowed = pods.length === 0 ? 0 : Math.max(0, healthy.length - minAvailable);
  return {
    observedGeneration: generation,
    expectedPods: pods.length,
    currentHealthy: healthy.length,
    desiredHealthy: minAvailable,
    disruptionsAllowed: allowed,
    ...(Object.keys(granted).length > 0 && { disruptedPods: granted }),
  };
}

const unknown = ({ status }: PodDisruptionBudget): PodDisruptionBudgetStatus => ({
  expectedPods: 0,
  currentHealthy: 0,
  desiredHealthy: 0,
  ...status,
  disruptionsAllowed: 0,
});

export type Verdict =
  | { readonly is: 'allowed' }
  /** Allowed, and counted until the disruption controller has observed it. */
  | { readonly is: 'counted'; readonly budget: PodDisruptionBudget }
  | { readonly is: 'refused'; readonly code: 429 | 500; readonly message: string };

export function mayEvict(pod: Pod, budgets: readonly PodDisruptionBudget[]): Verdict {
  const { phase = 'Pending' } = pod.status ?? {};
  if (phase !== 'Running' && phase !== 'Unknown') return { is: 'allowed' }; // a Pod that does not run is not disrupted
  if (pod.metadata?.deletionTimestamp) return { is: 'allowed' };
  const [budget, second] = budgets;
  if (second) return { is: 'refused', code: 500, message: 'This pod has more than one PodDisruptionBudget' };
  if (!budget) return { is: 'allowed' };
  const {
    currentHealthy = 0,
    desiredHealthy = 0,
    disruptionsAllowed = 0,
    observedGeneration = 0,
  } = budget.status ?? {};
  if (!isReady(pod)) {
    const always = budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow';
    if (always || (currentHealthy >= desiredHealthy && desiredHealthy > 0)) return { is: 'allowed' };
  }
  if (observedGeneration < (budget.metadata?.generation ?? 0))
    return { is: 'refused', code: 429, message: 'The disruption budget is still being processed by the server.' };
  if (disruptionsAllowed <= 0)
    return { is: 'refused', code: 429, message: "Cannot evict pod as it would violate the pod's disruption budget." };
  return { is: 'counted', budget };
}
