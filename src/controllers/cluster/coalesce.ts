/** Which changes of a cluster's status are written with the next one, so that several become one write. */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { findCondition, messagesOnly } from '../../domain/conditions.ts';
import { MEMBERS_FIELDS } from './members-status.ts';

/** The three conditions have other reasons at each member that becomes ready. */
const RISING = ['Available', 'Degraded'];

const rest = (status: EtcdClusterStatus): EtcdClusterStatus => ({
  ...status,
  conditions: (status.conditions ?? []).filter(({ type }) => !RISING.includes(type)),
});

/**
 * Members become ready one after the other while their number is being raised. Users wait for the last of them: each of the others
 * would be a write, and a moment later the next.
 */
export function isRising(before: EtcdClusterStatus, after: EtcdClusterStatus): boolean {
  const is = (status: EtcdClusterStatus, type: string) => findCondition(status.conditions, type)?.status;
  const [ready, readyBefore] = [after.readyMembers ?? 0, before.readyMembers ?? 0];
  return (
    before.progressDeadline !== undefined &&
    ready > readyBefore &&
    is(after, 'Progressing') === 'True' &&
    is(before, 'Degraded') === 'False' &&
    is(after, 'Degraded') === 'False' &&
    is(after, 'Available') === 'True' &&
    messagesOnly(rest(before), rest(after), [...MEMBERS_FIELDS, 'readyMembers'])
  );
}

export const isMinor = (before: EtcdClusterStatus, after: EtcdClusterStatus): boolean =>
  messagesOnly(before, after, MEMBERS_FIELDS) || isRising(before, after);
