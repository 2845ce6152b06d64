/** What the operator says about a defragmentation. */

import { withVerdicts } from '../../api/conditions.ts';
import type { EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import { notYetVerdicts } from '../../domain/not-yet-supported.ts';
import { iso } from '../../lib/time.ts';
import type { Observed } from './observed.ts';

export const WHY =
  'EtcdDefrag is not supported by this build yet: nothing is started. Delete it, or wait for a later version of the operator';

/** What has ended stays as it is. */
export function statusOf({ now, object }: Observed): EtcdDefragStatus {
  const before = object.status ?? {};
  if (['Complete', 'Failed'].includes(before.phase ?? '')) return before;
  const verdicts = notYetVerdicts([{ subject: 'Defragmentation', message: WHY }]);
  const at = { generation: object.metadata.generation, now: iso(now) };
  return { ...before, conditions: [...withVerdicts(before.conditions, verdicts, at)] };
}
