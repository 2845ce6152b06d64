/** Decides whether a PVC whose cluster and member are deleted is deleted too. */
import { QUARANTINE_LABEL, QUARANTINED_AT_ANNOTATION, type Quarantine } from '../../api/names.ts';
import { isBeingDeleted } from '../../domain/ownership.ts';
import { MAX_REQUEUE_MS, QUARANTINE_MS } from '../../domain/timing.ts';
import type { PersistentVolumeClaimStatus } from '../../gen/kube.ts';
import { type Plan, refTo } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';

export function decide({ now, pvc, hasMember, hasCluster }: Observed): Plan<PersistentVolumeClaimStatus> {
  const plan = { rule: 'keep', steps: [], status: pvc.status ?? {}, events: [] };
  if (isBeingDeleted(pvc)) return { ...plan, message: 'the PVC is being deleted' };
  const isReplaced = pvc.metadata.labels?.[QUARANTINE_LABEL] === ('member-replaced' satisfies Quarantine);
  if (isReplaced && hasCluster)
    return { ...plan, message: 'the cluster controller deletes the PVC, not during an outage' };
  const since = Date.parse(pvc.metadata.annotations?.[QUARANTINED_AT_ANNOTATION] ?? '');
  const leftMs = (Number.isNaN(since) ? now : since) + QUARANTINE_MS - now;
  if (leftMs > 0 || hasMember) {
    const requeueAfterMs = Math.min(Math.max(leftMs, 0) || MAX_REQUEUE_MS, MAX_REQUEUE_MS);
    return { ...plan, message: 'the PVC is kept for a day: remove its quarantine label to keep it', requeueAfterMs };
  }
  const what = refTo('PersistentVolumeClaim', pvc, { resourceVersion: true });
  return { ...plan, rule: 'expire', message: 'deleting the PVC after a day', steps: [{ do: 'delete', what }] };
}
