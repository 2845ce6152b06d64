/** What the operator says about a snapshot. */

import { withVerdicts } from '../api/conditions.ts';
import type { EtcdSnapshotStatus } from '../api/etcd-snapshot.ts';
import { notYetVerdicts } from '../api/not-yet-supported.ts';
import { iso } from '../lib/time.ts';
import type { Observed } from './observed.ts';

export const WHY =
  'EtcdSnapshot is not supported by this build yet: nothing is started. Delete it, or wait for a later version of the operator';

/** What has ended stays as it is. */
export function statusOf({ now, object }: Observed): EtcdSnapshotStatus {
  const before = object.status ?? {};
  if (['Complete', 'Failed'].includes(before.phase ?? '')) return before;
  const verdicts = notYetVerdicts([{ subject: 'Snapshots', message: WHY }]);
  const at = { generation: object.metadata.generation, now: iso(now) };
  return { ...before, conditions: [...withVerdicts(before.conditions, verdicts, at)] };
}
