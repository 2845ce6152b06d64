/**
 * PVCs of former members that are kept for a while. Failure evidence is a judgement, and can be wrong: the volume of a member that
 * was replaced on it stays for a day, also with deletionPolicy Delete.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import {
  COMPONENT_LABEL,
  QUARANTINE_LABEL,
  QUARANTINE_REASON_ANNOTATION,
  QUARANTINED_AT_ANNOTATION,
  type Quarantine,
} from '../../api/names.ts';
import { isBeingDeleted } from '../../domain/ownership.ts';
import { quorumOf } from '../../domain/quorum.ts';
import { NO_CAPACITY_MS, QUARANTINE_MS, RETAINED_MS } from '../../domain/timing.ts';
import type { PersistentVolumeClaim } from '../../gen/kube.ts';
import { iso } from '../../lib/time.ts';
import { refTo, type Step } from '../../runtime/plan.ts';
import { joining, startedAt } from './joining.ts';
import { createdAt, type Decided, type MemberView, nameOf, type Observed, readyCondition } from './observed.ts';
import { healthyVoters, votersOf } from './quorum.ts';
import { discardsOnJudgement } from './replacement-rate.ts';

const REPLACED: Quarantine = 'member-replaced';
const REMOVED: Quarantine = 'member-removed';
const labelOf = ({ metadata }: PersistentVolumeClaim): string | undefined => metadata.labels?.[QUARANTINE_LABEL];

export const isQuarantined = (pvc: PersistentVolumeClaim): boolean =>
  labelOf(pvc) === REPLACED || labelOf(pvc) === REMOVED;

const isEnabled = ({ spec }: EtcdCluster): boolean => spec.volumeQuarantine?.enabled !== false;

/** Not of an earlier cluster of the same name: its quarantined PVCs have data that no member of this one has. */
const isOwn = ({ cluster }: Observed, { metadata }: PersistentVolumeClaim): boolean =>
  !(Date.parse(metadata.creationTimestamp ?? '') < Date.parse(cluster.metadata.creationTimestamp ?? ''));

/** Before the EtcdMember is deleted: the member controller keeps a PVC with this label. Where it is refused, the record in `status.repair` says the same. */
export function quarantineSteps(o: Observed, m: MemberView, reason = ''): readonly Step[] {
  const { pvcObject: pvc } = m;
  if (!pvc || !isEnabled(o.cluster) || !discardsOnJudgement(o, m)) return [];
  const target = `PersistentVolumeClaim ${pvc.metadata.name}`;
  const isRefused = o.memory.failures.some((failure) => failure.is === 'refused' && failure.target === target);
  if (labelOf(pvc) === REPLACED || isBeingDeleted(pvc) || isRefused) return [];
  const labels = { [QUARANTINE_LABEL]: REPLACED };
  const annotations = { [QUARANTINED_AT_ANNOTATION]: iso(o.now), [QUARANTINE_REASON_ANNOTATION]: reason };
  return [{ do: 'patch', to: refTo('PersistentVolumeClaim', pvc), fields: { metadata: { labels, annotations } } }];
}

/** When the PVC is deleted, in milliseconds since 1970. */
function expiresAt(o: Observed, pvc: PersistentVolumeClaim): number {
  const { annotations = {}, creationTimestamp = '' } = pvc.metadata;
  const since = Date.parse(annotations[QUARANTINED_AT_ANNOTATION] ?? creationTimestamp) || o.now;
  if (labelOf(pvc) === REPLACED) return isEnabled(o.cluster) || !isOwn(o, pvc) ? since + QUARANTINE_MS : o.now;
  return since + RETAINED_MS;
}

const deletions = (pvcs: readonly PersistentVolumeClaim[]): readonly Step[] =>
  pvcs.map((pvc) => ({ do: 'delete', what: refTo('PersistentVolumeClaim', pvc, { resourceVersion: true }) }));
const namesOf = (pvcs: readonly PersistentVolumeClaim[]): string =>
  pvcs.map(({ metadata }) => metadata.name ?? '').join(', ');
const kept = (o: Observed): readonly PersistentVolumeClaim[] => o.quarantined.filter((pvc) => !isBeingDeleted(pvc));

/** Not during an outage: the volume of a removed member may be the last readable copy. */
export function expired(o: Observed): Decided {
  if (healthyVoters(o).length < Math.max(votersOf(o).length, 1)) return undefined;
  // A wall clock that jumps ahead ends no quarantine.
  const over = kept(o).filter((pvc) => expiresAt(o, pvc) + (o.clockAheadMs ?? 0) <= o.now);
  if (over.length === 0) return undefined;
  return { message: `deleting PVCs of former members, whose time is over: ${namesOf(over)}`, steps: deletions(over) };
}

/** A user who sets deletionPolicy to Retain keeps the PVCs of members that were replaced before, too. */
export const retainSteps = (o: Observed): readonly Step[] =>
  o.cluster.spec.deletionPolicy === 'Retain'
    ? kept(o)
        .filter((pvc) => labelOf(pvc) === REPLACED && isOwn(o, pvc))
        .map((pvc) => ({
          do: 'patch',
          to: refTo('PersistentVolumeClaim', pvc),
          fields: { metadata: { labels: { [QUARANTINE_LABEL]: REMOVED } } },
        }))
    : [];

const QUOTA = /exceeded quota.*(persistentvolumeclaims|storage)/s;
/** As the scheduler reports it. A StorageClass that is missing, or a limit of attached volumes, is no lack of room. */
const CAPACITY = /enough free storage|available persistent volumes to bind|unbound immediate PersistentVolumeClaims/;

/** Its PVC was refused by a quota, or finds no volume. */
function lacksVolume(o: Observed, m: MemberView): boolean {
  const message = readyCondition(m.object)?.message ?? '';
  if (m.pvcObject === undefined) return QUOTA.test(message);
  const isPending = m.pvcObject.status?.phase === 'Pending' && startedAt(m) === undefined;
  return isPending && o.now - createdAt(m) > NO_CAPACITY_MS && CAPACITY.test(message);
}

/**
 * A new member that cannot get a volume needs the room more than a copy that a quorum has: the oldest one is given up. One at a
 * time: until the new member has tried again, its condition still reports the lack, and would cost all others.
 */
export function released(o: Observed): Decided {
  const { quarantineReleased = '' } = o.cluster.status ?? {};
  if (o.now - Date.parse(quarantineReleased) < NO_CAPACITY_MS) return undefined;
  const waiting = joining(o).find((m) => lacksVolume(o, m));
  const [oldest] = kept(o)
    .filter((pvc) => labelOf(pvc) === REPLACED && isOwn(o, pvc))
    .sort((a, b) => expiresAt(o, a) - expiresAt(o, b));
  const hasQuorum = healthyVoters(o).length >= quorumOf(votersOf(o).length);
  if (!waiting || !oldest || !hasQuorum) return undefined;
  const message = `${nameOf(waiting)} gets no volume (${readyCondition(waiting.object)?.message}): deleting the quarantined PVC ${oldest.metadata.name}, whose data a quorum has`;
  return {
    message,
    latch: { quarantineReleased: iso(o.now) },
    steps: deletions([oldest]),
    event: { type: 'Warning', reason: 'QuarantineReleased', note: message },
  };
}

export const quarantinedVolumes = (o: Observed): Pick<EtcdClusterStatus, 'quarantinedVolumes'> => {
  const volumes = kept(o).map((pvc) => ({
    name: pvc.metadata.name ?? '',
    member: pvc.metadata.labels?.[COMPONENT_LABEL] ?? '',
    reason: pvc.metadata.annotations?.[QUARANTINE_REASON_ANNOTATION] ?? 'Removed',
    until: iso(expiresAt(o, pvc)),
  }));
  return volumes.length === 0 ? {} : { quarantinedVolumes: volumes };
};
