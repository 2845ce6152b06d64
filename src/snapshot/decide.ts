/** What to do next for one EtcdSnapshot: nothing yet, and say so. */
import type { EtcdSnapshotStatus } from '../api/etcd-snapshot.ts';
import type { Plan } from '../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { statusOf, WHY } from './status.ts';

export const decide = (o: Observed): Plan<EtcdSnapshotStatus> => ({
  rule: 'notYetSupported',
  why: WHY,
  steps: [],
  status: statusOf(o),
  notices: [],
});
