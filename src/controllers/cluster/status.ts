/** The status of an EtcdCluster. Every reconcile computes all of it, whichever rule decided. */

import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { clusterSelector } from '../../api/names.ts';
import {
  type ConditionUpdate,
  findCondition,
  OPERATOR_IMAGE_NOT_CONFIGURED,
  updateConditions,
} from '../../domain/conditions.ts';
import { NOT_YET_SUPPORTED, notYetConditions } from '../../domain/not-yet-supported.ts';
import { identity, isBeingDeleted } from '../../domain/ownership.ts';
import { quorumOf } from '../../domain/quorum.ts';
import { iso } from '../../lib/time.ts';
import type { UpkeepTask } from '../../runtime/plan.ts';
import { BACKUP_FRESH, backupConditions, backupRequeueMs } from './backup.ts';
import type { ClusterCall } from './calls.ts';
import {
  AUTH_ENABLED,
  type AuthProblem,
  authConditions,
  authLatch,
  authRequeueMs,
  lockedOut,
  passwordMissing,
  unsecured,
} from './credentials/auth.ts';
import { ROTATING } from './credentials/ca-rotation.ts';
import { rotationOf } from './credentials/ca-rotation-progress.ts';
import {
  certificatesMissing,
  certificatesRequeueMs,
  SECRET_UNREADABLE,
  unreadableMessage,
  unreadableRequeueMs,
  unreadableSecrets,
} from './credentials/certificates.ts';
import { CERTIFICATES_VALID, certificateConditions } from './credentials/conditions.ts';
import { type Loss, lossOfAll } from './loss.ts';
import { inSyncConditions, MANAGED_OBJECTS_IN_SYNC, stepFailures } from './managed-objects.ts';
import { isReached, membersStatus, servingVoters, voterCount } from './members-status.ts';
import {
  brokenMembers,
  type ClusterDecision,
  clusterIdMismatch,
  conflicts,
  desired,
  entriesOf,
  etcdError,
  evidence,
  isDormant,
  isNotBeingDeleted,
  isReadyVoter,
  type Observed,
} from './observed.ts';
import { REFUSED, refusedStatus, type WantedChange } from './refused-changes.ts';
import { isExhausted } from './replacement.ts';
import { restoreConditions, restoreImpossible } from './restore.ts';
import { imageRefusal, notYet, QUOTA_FITS_VOLUME, quotaConditions, unapplied } from './spec-drift.ts';

/** What the conditions Available, Progressing and Degraded are derived from. */
interface Situation {
  /** The message of the rule that decided. */
  readonly message: string;
  readonly formed: boolean;
  /** Voters whose Pod is ready. */
  readonly ready: number;
  /** The client Service has a ready Pod. */
  readonly reached: boolean;
  /** Voters that serve, including those that have just started or are being deleted. */
  readonly serving: number;
  readonly voters: number;
  readonly desired: number;
  /** The number of members is `desired`, and all of them are voters. */
  readonly whole: boolean;
  /** A member has failure evidence. */
  readonly broken: boolean;
  /** The operator has given up replacing a member: a user has to find the cause. */
  readonly exhausted: boolean;
  /** The message while replicas is 0. */
  readonly paused: string | undefined;
  /** The cluster was Available before: a member that is not ready is then a failure, not a slow start. */
  readonly served: boolean;
  /** The cluster was never Available, and all members may still become ready: none has failure evidence or is being deleted. */
  readonly starting: boolean;
  /** Set when no member can serve its data any more. */
  readonly lost: Loss | undefined;
  readonly taken: string;
  readonly unapplied: string;
  readonly inFlight: boolean;
  readonly late: boolean;
  /** The progress of a CA rotation. */
  readonly rotating: string | undefined;
  readonly trouble: string;
  /** A membership change that every voter refuses, although all are healthy. */
  readonly refused: { readonly message: string; readonly hopeless: boolean } | undefined;
  /** Why etcd rejects writes although all members respond. */
  readonly full: string | undefined;
  /** Why the spec is not applied: not supported yet, or not allowed. */
  readonly held: { readonly reason: string; readonly message: string } | undefined;
  /** The objects that could not be read: whether they match the spec is unknown. */
  readonly unread: { readonly reason: string; readonly message: string } | undefined;
  /** Why the operator cannot authenticate to etcd. */
  readonly locked: AuthProblem | undefined;
  /** What is missing until auth is enabled as the spec asks. */
  readonly unsecured: ReturnType<typeof unsecured>;
}

type Condition = Omit<ConditionUpdate, 'type'>;
const yes = (reason: string, message: string): Condition => ({ status: 'True', reason, message });
const no = (reason: string, message: string): Condition => ({ status: 'False', reason, message });

/** What was decided, as far as the status reports it. */
export interface Decisions {
  readonly message: string;
  readonly latch: Partial<EtcdClusterStatus> | undefined;
  readonly tasks: readonly UpkeepTask<ClusterCall>[];
}

export function statusOf(o: Observed, { message, latch, tasks }: Decisions, wantedBy: WantedChange): EtcdClusterStatus {
  const before = o.cluster.status ?? {};
  if (isBeingDeleted(o.cluster)) return before;
  const latched: EtcdClusterStatus = { ...before, ...authLatch(o), ...latch };
  const s = situation(o, latched, [message, ...stepFailures(o)].join('; '), wantedBy);
  const arrived = s.paused === undefined ? s.formed && s.whole && s.ready === s.desired : !running(o);
  const reached = arrived && s.unapplied === '' && s.held === undefined && s.unsecured === undefined;
  const { progressDeadline: deadline, members: _m, leader: _l, version: _v, quorum: _q, ...rest } = latched;
  const unsupported = notYetConditions(notYet(o));
  const certificates = certificateConditions(o);
  const auth = authConditions(o);
  const restore = restoreConditions(o, s.formed);
  const backup = backupConditions(o);
  const quota = quotaConditions(o);
  const inSync = inSyncConditions(o, tasks);
  return {
    ...rest,
    ...(deadline !== undefined && !reached && s.held === undefined && { progressDeadline: deadline }),
    readyMembers: s.ready,
    brokenMembers: brokenMembers(o),
    ...membersStatus(o, iso(o.now)),
    selector: clusterSelector(identity(o.cluster).name),
    conditions: [
      ...updateConditions(
        before.conditions,
        [
          { type: 'Available', ...available(s) },
          { type: 'Progressing', ...progressing(s, reached) },
          { type: 'Degraded', ...degraded(s) },
          ...certificates,
          ...auth,
          ...restore,
          ...backup,
          ...quota,
          ...inSync,
          ...unsupported,
        ],
        { generation: o.cluster.metadata.generation, now: iso(o.now) },
        [
          ...(unsupported.length === 0 ? [NOT_YET_SUPPORTED] : []),
          ...(certificates.length === 0 ? [CERTIFICATES_VALID] : []),
          ...(o.cluster.spec.auth?.enabled === true ? [] : [AUTH_ENABLED]),
          ...(backup.length === 0 ? [BACKUP_FRESH] : []),
          ...(quota.length === 0 ? [QUOTA_FITS_VOLUME] : []),
          ...(inSync.length === 0 ? [MANAGED_OBJECTS_IN_SYNC] : []),
        ],
      ),
    ],
  };
}

function situation(o: Observed, latched: EtcdClusterStatus, message: string, wantedBy: WantedChange): Situation {
  const before = findCondition(latched.conditions, 'Available');
  const deadline = latched.progressDeadline;
  const served = before?.status === 'True' || before?.reason === 'QuorumLost';
  return {
    message,
    formed: latched.clusterID !== undefined,
    ready: o.members.filter(isReadyVoter).length,
    reached: o.members.some((m) => isReached(o, m)),
    serving: servingVoters(o),
    voters: voterCount(o),
    desired: desired(o),
    whole: isWhole(o),
    broken: o.members.some((m) => evidence(m) !== undefined),
    exhausted: isExhausted(o),
    paused: desired(o) === 0 ? pausedMessage(o, message) : undefined,
    served,
    starting: !served && o.members.every((m) => isNotBeingDeleted(m) && evidence(m) === undefined),
    lost: lossOfAll(o),
    taken: conflicts(o).join('; '),
    unapplied: unapplied(o).join(', '),
    inFlight: deadline !== undefined,
    late: deadline !== undefined && o.now >= Date.parse(deadline),
    rotating: rotationOf(o),
    trouble: etcdError(o) !== undefined ? message : (clusterIdMismatch(o) ?? ''),
    refused: refusedStatus(o, wantedBy),
    full: noSpaceMessage(o),
    held: blockedStatus(o),
    unread: unreadableMessage(o),
    locked: lockedOut(o),
    unsecured: desired(o) === 0 ? undefined : unsecured(o),
  };
}

const running = (o: Observed): boolean => o.members.some((m) => m.pod.is === 'present');

/** By etcd's member list where there is one: an EtcdMember may not have been added to etcd yet. */
const isWhole = (o: Observed): boolean =>
  o.members.length === desired(o) &&
  o.members.every((m) => isNotBeingDeleted(m) && !isDormant(m)) &&
  voterCount(o) === desired(o) &&
  (entriesOf(o)?.length ?? desired(o)) === desired(o);

function pausedMessage(o: Observed, message: string): string {
  if (running(o)) return message;
  if (o.cluster.status?.clusterID === undefined)
    return 'paused before the bootstrap: there is no data. Set replicas to bootstrap the cluster';
  const volumes = o.members.flatMap((m) => m.object.status?.pvcName ?? []).join(', ');
  return `paused: the data is kept in ${volumes === '' ? 'the volumes of its members' : volumes}. Set replicas to resume the cluster`;
}

/** A NOSPACE alarm of one member makes all members reject writes, even after it was removed. Reads, deletions and compaction still work. */
function noSpaceMessage(o: Observed): string | undefined {
  if (o.etcd.is !== 'answers') return undefined;
  const ids = o.etcd.alarms.flatMap(({ id, alarm }) => (alarm === 'NOSPACE' ? [id] : []));
  if (ids.length === 0) return undefined;
  const names = ids.map((id) => o.members.find(({ self }) => self?.id === id)?.object.metadata.name ?? id).sort();
  return `etcd rejects writes: database space exceeded on ${names.join(', ')} (NOSPACE). Delete keys that are not needed, compact and defragment; then run: etcdctl alarm disarm`;
}

function blockedStatus(o: Observed): Situation['held'] {
  const [unsupported] = notYetConditions(notYet(o));
  if (unsupported) return { reason: NOT_YET_SUPPORTED, message: unsupported.message };
  const image = imageRefusal(o);
  if (image !== undefined) return { reason: 'ImageNotAllowed', message: image };
  const unrestorable = restoreImpossible(o);
  if (unrestorable !== undefined) return { reason: OPERATOR_IMAGE_NOT_CONFIGURED, message: unrestorable };
  const certificates = certificatesMissing(o);
  if (certificates === undefined) return passwordMissing(o);
  if (unreadableSecrets(o) !== undefined) return { reason: SECRET_UNREADABLE, message: certificates };
  const reason = o.issuance?.is === 'missing' ? 'CertManagerNotInstalled' : 'CertificatesInvalid';
  return { reason, message: certificates };
}

/** The client Service routes to ready Pods only, so a quorum of etcd alone does not make the cluster available. */
const isQuorate = (s: Situation): boolean => s.reached && s.serving >= quorumOf(s.voters);

function available(s: Situation): Condition {
  if (s.lost) return no(s.lost.reason, s.lost.message);
  if (s.paused !== undefined) return no('Paused', s.paused);
  if (!s.formed && s.held) return no(s.held.reason, s.held.message);
  if (!s.formed && s.taken !== '') return no('NameConflict', s.message);
  if (!s.formed && s.locked) return no(s.locked.reason, s.locked.message);
  if (!s.formed) return no(s.late ? 'BootstrapFailed' : 'WaitingForSeed', s.message);
  if (s.ready >= s.desired && s.ready >= s.voters) return yes('QuorumHealthy', 'All members are ready');
  if (isQuorate(s)) return yes('QuorumAvailable', `${s.ready}/${s.desired} members ready`);
  if (s.starting) return no('WaitingForSeed', s.message);
  return no(
    'QuorumLost',
    `quorum lost: ${s.ready} of ${s.voters} voters are ready, and ${quorumOf(s.voters)} are needed: ${s.message}`,
  );
}

function progressing(s: Situation, reached: boolean): Condition {
  if (s.lost) return no(s.lost.reason, s.lost.message);
  if (s.taken !== '') return no('NameConflict', s.taken);
  if (s.held) return no(s.held.reason, s.held.message);
  if (s.paused !== undefined && reached) return no('Paused', s.paused);
  if (s.locked && !reached) return no(s.locked.reason, s.locked.message);
  const missing =
    s.unapplied === ''
      ? s.message
      : `not applied yet, because this build does not change running members: ${s.unapplied}`;
  if (!reached && s.late)
    return no(
      s.formed ? 'DeadlineExceeded' : 'BootstrapFailed',
      `progressDeadlineSeconds exceeded, still trying: ${missing}`,
    );
  if (s.exhausted) return no('ReplacementsExhausted', s.message);
  if (s.refused?.hopeless) return no(REFUSED, s.refused.message);
  if (s.formed && s.unapplied !== '') return yes('SpecChanged', missing);
  if (!s.formed && s.paused === undefined) return yes('WaitingForSeed', s.message);
  if (s.broken && !s.whole) return yes('Repairing', s.message);
  if (!s.whole) return yes('Scaling', s.message);
  if (s.unsecured) return (s.unsecured.waits ? no : yes)(s.unsecured.reason, s.unsecured.message);
  if (!reached && s.inFlight) return yes(s.serving > s.ready ? 'Scaling' : 'WaitingForMembers', s.message);
  if (s.unread) return no(s.unread.reason, s.unread.message);
  if (s.rotating !== undefined) return yes(ROTATING, s.rotating);
  return no('Reconciled', 'All members match the spec');
}

function degraded(s: Situation): Condition {
  if (s.lost) return yes(s.lost.reason, s.lost.message);
  if (s.taken !== '') return yes('NameConflict', s.taken);
  if (s.paused !== undefined) return no('Paused', s.paused);
  if (!s.formed && s.held) return no(s.held.reason, s.held.message);
  if (!s.formed && s.locked) return yes(s.locked.reason, s.locked.message);
  if (!s.formed) return s.late ? yes('BootstrapFailed', s.message) : no('WaitingForSeed', s.message);
  const quorum = isQuorate(s);
  if (!quorum && !s.starting) return yes('QuorumLost', s.message);
  if (s.full !== undefined) return yes('NoSpace', s.full);
  if (s.exhausted) return yes('ReplacementsExhausted', s.message);
  if (s.broken || (s.serving < s.voters && s.served)) return yes('MembersUnhealthy', s.message);
  if (s.refused) return yes(REFUSED, s.refused.message);
  if (s.locked) return yes(s.locked.reason, s.locked.message);
  if (s.trouble !== '') return yes('MembersUnhealthy', s.trouble);
  if (s.ready < s.desired) return no(quorum ? 'QuorumAvailable' : 'WaitingForSeed', s.message);
  return no('QuorumHealthy', 'All members are ready');
}

/** The delay that the rule asks for, or less when a deadline has to be reported or a Secret to be read. */
export function requeueAfterMs(
  o: Observed,
  decision: Pick<ClusterDecision, 'requeueAfterMs'> & Pick<Decisions, 'latch'>,
): number | undefined {
  const untilDeadline =
    Date.parse(decision.latch?.progressDeadline ?? o.cluster.status?.progressDeadline ?? '') - o.now;
  const delays = [
    decision.requeueAfterMs,
    untilDeadline > 0 ? untilDeadline : undefined, // NaN without a deadline
    certificatesRequeueMs(o),
    authRequeueMs(o),
    backupRequeueMs(o),
    unreadableRequeueMs(o),
  ].filter((ms) => ms !== undefined);
  return delays.length === 0 ? undefined : Math.min(...delays);
}
