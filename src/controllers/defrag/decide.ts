/** What to do next for one EtcdDefrag: nothing yet, and say so. */
import type { EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import type { Plan } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { statusOf, WHY } from './status.ts';

export const decide = (o: Observed): Plan<EtcdDefragStatus> => ({
  rule: 'notYetSupported',
  why: WHY,
  steps: [],
  status: statusOf(o),
  notices: [],
});
