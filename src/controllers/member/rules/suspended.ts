/** The member of a cluster with `spec.suspend`: it is observed and reported, and nothing of it is written but its status. */
import type { EtcdMemberStatus } from '../../../api/etcd-member.ts';
import { isSuspended, resumed, whileSuspended } from '../../../domain/suspend.ts';
import { changesOf } from '../../../runtime/compose.ts';
import type { Plan } from '../../../runtime/plan.ts';
import type { Decided, Observed } from '../observed.ts';

export const suspended =
  (decide: (o: Observed) => Plan<EtcdMemberStatus>) =>
  (o: Observed): Decided => {
    if (o.cluster === undefined || !isSuspended(o.cluster)) return undefined;
    const whenResumed = decide({ ...o, cluster: resumed(o.cluster) });
    return whileSuspended(changesOf(whenResumed), whenResumed);
  };
