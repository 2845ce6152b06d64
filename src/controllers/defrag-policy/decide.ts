/** What to do next for one EtcdDefragPolicy: nothing yet, and say so. */
import type { EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import type { Plan } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { statusOf, WHY } from './status.ts';

export const decide = (o: Observed): Plan<EtcdDefragPolicyStatus> => ({
  rule: 'notYetSupported',
  why: WHY,
  steps: [],
  status: statusOf(o),
  notices: [],
});
