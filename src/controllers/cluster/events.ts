/** Which Events a new status is worth. */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { changedConditions } from '../../domain/conditions.ts';
import { SUSPENDED } from '../../domain/suspend.ts';
import type { EventRecord } from '../../runtime/plan.ts';
import { isRising } from './coalesce.ts';
import { ROTATING } from './credentials/state.ts';
import type { Observed } from './observed.ts';
import { RESTORED, RESTORING } from './restore.ts';
import { ROLLING_OUT } from './rollout/reasons.ts';
import { UPDATE_PENDING } from './rollout/state.ts';
import { WAITING_FOR_WINDOW } from './rollout/windows.ts';

const EXPECTED = [
  'WaitingForSeed',
  'WaitingForMembers',
  'Reconciled',
  'QuorumHealthy',
  'QuorumAvailable',
  'SpecChanged',
  'Scaling',
  ROLLING_OUT,
  UPDATE_PENDING,
  WAITING_FOR_WINDOW,
  'Paused',
  'Valid',
  'Issuing',
  'Renewing',
  'Fresh',
  'NoBackupYet',
  'Enabled',
  'EnablingAuth',
  'ChangingPassword',
  ROTATING,
  RESTORING,
  RESTORED,
  SUSPENDED,
];

/** One Event per new reason: the three conditions often change to the same one. None where the status is not written yet: each reconcile would record it again. */
export function eventsFor(o: Observed, after: EtcdClusterStatus): readonly EventRecord[] {
  if (isRising(o.cluster.status ?? {}, after)) return [];
  const changed = changedConditions(o.cluster.status?.conditions, after.conditions);
  return changed
    .filter((c, i) => changed.findIndex((d) => d.reason === c.reason) === i)
    .map((c) => ({ type: EXPECTED.includes(c.reason) ? 'Normal' : 'Warning', reason: c.reason, note: c.message }));
}
