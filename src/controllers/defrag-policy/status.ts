/** What the operator says about a schedule of defragmentations. */

import { withVerdicts } from '../../api/conditions.ts';
import type { EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import { notYetVerdicts } from '../../domain/not-yet-supported.ts';
import { iso } from '../../lib/time.ts';
import type { Observed } from './observed.ts';

export const WHY =
  'EtcdDefragPolicy is not supported by this build yet: nothing is started. Delete it, or wait for a later version of the operator';

export function statusOf({ now, object }: Observed): EtcdDefragPolicyStatus {
  const before = object.status ?? {};
  const verdicts = notYetVerdicts([{ subject: 'Defragmentation', message: WHY }]);
  const at = { generation: object.metadata.generation, now: iso(now) };
  return { ...before, conditions: [...withVerdicts(before.conditions, verdicts, at)] };
}
