/** What the runs of a policy prove. */
import type { EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import { iso } from '../../lib/time.ts';
import { lastSuccess, type Observed, statusBefore } from './observed.ts';
import { lastStarted } from './scheduling.ts';

/** Recorded before the runs are deleted. */
export const historyOf = (o: Observed): Pick<EtcdDefragPolicyStatus, 'lastScheduleTime' | 'lastSuccessfulTime'> => {
  const { lastScheduleTime, lastSuccessfulTime } = statusBefore(o);
  const started = lastStarted(o);
  const times = [lastSuccessfulTime, lastSuccess(o)].filter((time) => time !== undefined).toSorted();
  return {
    ...(lastScheduleTime !== undefined && { lastScheduleTime }),
    ...(started !== undefined && { lastScheduleTime: iso(started) }),
    ...(times.length > 0 && { lastSuccessfulTime: times.at(-1) ?? '' }),
  };
};
