/** What the operator says about a cluster. Every pass says it, whichever rule answered. */

import {
  type ConditionUpdate,
  changedConditions,
  findCondition,
  OPERATOR_IMAGE_NOT_CONFIGURED,
  updateConditions,
} from '../../api/conditions.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { clusterSelector } from '../../api/names.ts';
import { NOT_YET_SUPPORTED, notYetConditions } from '../../domain/not-yet-supported.ts';
import { identity, isBeingDeleted } from '../../domain/ownership.ts';
import { iso } from '../../lib/time.ts';
import type { EventRecord } from '../../runtime/plan.ts';
import { BACKUP_FRESH, backupConditions, backupRequeueMs } from './backup.ts';
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
import { ROTATING, rotationOf } from './credentials/ca-rotation.ts';
import {
  CERTIFICATES_VALID,
  certificateConditions,
  certificatesMissing,
  certificatesRequeueMs,
  SECRET_UNREADABLE,
  unreadableMessage,
  unreadableRequeueMs,
  unreadableSecrets,
} from './credentials/certificates.ts';
import { quorumOf } from './disruption.ts';
import { type Loss, lossOfAll } from './loss.ts';
import { isReached, membersStatus, servingVoters, voterCount } from './members-status.ts';
import {
  brokenMembers,
  type ClusterDecision,
  clusterIdMismatch,
  conflicts,
  desired,
  entriesOf,
  evidence,
  isDormant,
  isNotBeingDeleted,
  isReadyVoter,
  type Observed,
} from './observed.ts';
import { REFUSED, refusedStatus, type WantedChange } from './refused-changes.ts';
import { isExhausted } from './replacement.ts';
import { RESTORED, RESTORING, restoreConditions, restoreImpossible } from './restore.ts';
import { imageRefusal, notYet, QUOTA_FITS_VOLUME, quotaConditions, unapplied } from './spec-drift.ts';

/** Everything the three verdicts are made from. */
interface Situation {
  readonly why: string;
  readonly formed: boolean;
  /** Voters that are ready, of all that vote, of all that are wanted. */
  readonly ready: number;
  /** Clients are let through to somebody. */
  readonly reached: boolean;
  /** Voters that serve: also those that have just begun, or are to go. */
  readonly serving: number;
  readonly voters: number;
  readonly desired: number;
  /** There are as many members as wanted, and all of them vote. */
  readonly whole: boolean;
  /** A member will not come back. */
  readonly broken: boolean;
  /** Replacing does not help: a person has to look. */
  readonly exhausted: boolean;
  /** Why, when nothing is to run. */
  readonly parked: string | undefined;
  /** The cluster has served before: a member that is not ready is then a fault, not a beginning. */
  readonly served: boolean;
  /** Only somebody that begins can be waited for: not one that is lost, or on its way out. */
  readonly beginning: boolean;
  /** No member can serve the data any more. */
  readonly lost: Loss | undefined;
  readonly taken: string;
  readonly unapplied: string;
  readonly inFlight: boolean;
  readonly late: boolean;
  /** How far the exchange of an authority is. */
  readonly rotating: string | undefined;
  readonly trouble: string;
  /** A membership change that every voter refuses, although all are healthy. */
  readonly refused: { readonly message: string; readonly hopeless: boolean } | undefined;
  /** Why etcd refuses to write, although all members serve. */
  readonly full: string | undefined;
  /** Why nothing is done towards the spec: not built yet, or not allowed. */
  readonly held: { readonly reason: string; readonly message: string } | undefined;
  /** What could not be read: whether it is as the spec asks is not known. */
  readonly unread: { readonly reason: string; readonly message: string } | undefined;
  /** Why etcd does not let the operator in. */
  readonly locked: AuthProblem | undefined;
  /** What of the wish for log-ins is not so yet. */
  readonly unsecured: ReturnType<typeof unsecured>;
}

type Said = Omit<ConditionUpdate, 'type'>;
const yes = (reason: string, message: string): Said => ({ status: 'True', reason, message });
const no = (reason: string, message: string): Said => ({ status: 'False', reason, message });

export function statusOf(o: Observed, answer: ClusterDecision, wantedBy: WantedChange): EtcdClusterStatus {
  const before = o.cluster.status ?? {};
  if (isBeingDeleted(o.cluster)) return before;
  const latched: EtcdClusterStatus = { ...before, ...authLatch(o), ...answer.latch };
  const refused = o.refusal === undefined ? '' : `; ${o.refusal}`;
  const s = situation(o, latched, answer.message + refused, wantedBy);
  const arrived = s.parked === undefined ? s.formed && s.whole && s.ready === s.desired : !running(o);
  const reached = arrived && s.unapplied === '' && s.held === undefined && s.unsecured === undefined;
  const { progressDeadline: deadline, members: _m, leader: _l, version: _v, quorum: _q, ...rest } = latched;
  const unsupported = notYetConditions(notYet(o));
  const certificates = certificateConditions(o);
  const auth = authConditions(o);
  const restore = restoreConditions(o, s.formed);
  const backup = backupConditions(o);
  const quota = quotaConditions(o);
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
          ...unsupported,
        ],
        { generation: o.cluster.metadata.generation, now: iso(o.now) },
        [
          ...(unsupported.length === 0 ? [NOT_YET_SUPPORTED] : []),
          ...(certificates.length === 0 ? [CERTIFICATES_VALID] : []),
          ...(o.cluster.spec.auth?.enabled === true ? [] : [AUTH_ENABLED]),
          ...(backup.length === 0 ? [BACKUP_FRESH] : []),
          ...(quota.length === 0 ? [QUOTA_FITS_VOLUME] : []),
        ],
      ),
    ],
  };
}

function situation(o: Observed, latched: EtcdClusterStatus, why: string, wantedBy: WantedChange): Situation {
  const said = findCondition(latched.conditions, 'Available');
  const deadline = latched.progressDeadline;
  const served = said?.status === 'True' || said?.reason === 'QuorumLost';
  return {
    why,
    formed: latched.clusterID !== undefined,
    ready: o.members.filter(isReadyVoter).length,
    reached: o.members.some((m) => isReached(o, m)),
    serving: servingVoters(o),
    voters: voterCount(o),
    desired: desired(o),
    whole: isWhole(o),
    broken: o.members.some((m) => evidence(m) !== undefined),
    exhausted: isExhausted(o),
    parked: desired(o) === 0 ? pausedMessage(o, why) : undefined,
    served,
    beginning: !served && o.members.every((m) => isNotBeingDeleted(m) && evidence(m) === undefined),
    lost: lossOfAll(o),
    taken: conflicts(o).join('; '),
    unapplied: unapplied(o).join(', '),
    inFlight: deadline !== undefined,
    late: deadline !== undefined && o.now >= Date.parse(deadline),
    rotating: rotationOf(o),
    trouble: o.etcd.is === 'silent' ? why : (clusterIdMismatch(o) ?? ''),
    refused: refusedStatus(o, wantedBy),
    full: noSpaceMessage(o),
    held: blockedStatus(o),
    unread: unreadableMessage(o),
    locked: lockedOut(o),
    unsecured: desired(o) === 0 ? undefined : unsecured(o),
  };
}

const running = (o: Observed): boolean => o.members.some((m) => m.pod.is === 'present');

/** By etcd's own list where there is one: objects alone do not say who is a member. */
const isWhole = (o: Observed): boolean =>
  o.members.length === desired(o) &&
  o.members.every((m) => isNotBeingDeleted(m) && !isDormant(m)) &&
  voterCount(o) === desired(o) &&
  (entriesOf(o)?.length ?? desired(o)) === desired(o);

function pausedMessage(o: Observed, why: string): string {
  if (running(o)) return why;
  if (o.cluster.status?.clusterID === undefined) return 'parked before it was ever begun: there is no data';
  const volumes = o.members.flatMap((m) => m.object.status?.pvcName ?? []).join(', ');
  return `parked: the data is kept in ${volumes === '' ? 'the volumes of its members' : volumes}. Set replicas to wake it`;
}

/** One member without space keeps all from writing, also when it is gone since. Reads, deletions and compaction go on. */
function noSpaceMessage(o: Observed): string | undefined {
  if (o.etcd.is !== 'answers') return undefined;
  const ids = o.etcd.alarms.flatMap(({ id, alarm }) => (alarm === 'NOSPACE' ? [id] : []));
  if (ids.length === 0) return undefined;
  const called = ids.map((id) => o.members.find(({ self }) => self?.id === id)?.object.metadata.name ?? id).sort();
  return `etcd refuses to write: ${called.join(', ')} had no space left (NOSPACE). Delete what is not needed, compact and defragment; then: etcdctl alarm disarm`;
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

/** Clients are let through to members that are ready only. */
const isQuorate = (s: Situation): boolean => s.reached && s.serving >= quorumOf(s.voters);

function available(s: Situation): Said {
  if (s.lost) return no(s.lost.reason, s.lost.message);
  if (s.parked !== undefined) return no('Paused', s.parked);
  if (!s.formed && s.held) return no(s.held.reason, s.held.message);
  if (!s.formed && s.taken !== '') return no('NameConflict', s.why);
  if (!s.formed && s.locked) return no(s.locked.reason, s.locked.message);
  if (!s.formed) return no(s.late ? 'BootstrapFailed' : 'WaitingForSeed', s.why);
  if (s.ready >= s.desired && s.ready >= s.voters) return yes('QuorumHealthy', 'All members are ready');
  if (isQuorate(s)) return yes('QuorumAvailable', `${s.ready}/${s.desired} members ready`);
  if (s.beginning) return no('WaitingForSeed', s.why);
  return no('QuorumLost', `${s.ready} of ${s.voters} voters are ready, and ${quorumOf(s.voters)} are needed: ${s.why}`);
}

function progressing(s: Situation, reached: boolean): Said {
  if (s.lost) return no(s.lost.reason, s.lost.message);
  if (s.taken !== '') return no('NameConflict', s.taken);
  if (s.held) return no(s.held.reason, s.held.message);
  if (s.parked !== undefined && reached) return no('Paused', s.parked);
  if (s.locked && !reached) return no(s.locked.reason, s.locked.message);
  const missing =
    s.unapplied === '' ? s.why : `not applied yet, because this build does not change running members: ${s.unapplied}`;
  if (!reached && s.late)
    return no(
      s.formed ? 'DeadlineExceeded' : 'BootstrapFailed',
      `later than progressDeadlineSeconds, still trying: ${missing}`,
    );
  if (s.exhausted) return no('ReplacementsExhausted', s.why);
  if (s.refused?.hopeless) return no(REFUSED, s.refused.message);
  if (s.formed && s.unapplied !== '') return yes('SpecChanged', missing);
  if (!s.formed && s.parked === undefined) return yes('WaitingForSeed', s.why);
  if (s.broken && !s.whole) return yes('Repairing', s.why);
  if (!s.whole) return yes('Scaling', s.why);
  if (s.unsecured) return (s.unsecured.waits ? no : yes)(s.unsecured.reason, s.unsecured.message);
  if (!reached && s.inFlight) return yes(s.serving > s.ready ? 'Scaling' : 'WaitingForMembers', s.why);
  if (s.unread) return no(s.unread.reason, s.unread.message);
  if (s.rotating !== undefined) return yes(ROTATING, s.rotating);
  return no('Reconciled', 'the members are as the spec asks');
}

function degraded(s: Situation): Said {
  if (s.lost) return yes(s.lost.reason, s.lost.message);
  if (s.taken !== '') return yes('NameConflict', s.taken);
  if (s.parked !== undefined) return no('Paused', s.parked);
  if (!s.formed && s.held) return no(s.held.reason, s.held.message);
  if (!s.formed && s.locked) return yes(s.locked.reason, s.locked.message);
  if (!s.formed) return s.late ? yes('BootstrapFailed', s.why) : no('WaitingForSeed', s.why);
  const quorum = isQuorate(s);
  if (!quorum && !s.beginning) return yes('QuorumLost', s.why);
  if (s.full !== undefined) return yes('NoSpace', s.full);
  if (s.exhausted) return yes('ReplacementsExhausted', s.why);
  if (s.broken || (s.serving < s.voters && s.served)) return yes('MembersUnhealthy', s.why);
  if (s.refused) return yes(REFUSED, s.refused.message);
  if (s.locked) return yes(s.locked.reason, s.locked.message);
  if (s.trouble !== '') return yes('MembersUnhealthy', s.trouble);
  if (s.ready < s.desired) return no(quorum ? 'QuorumAvailable' : 'WaitingForSeed', s.why);
  return no('QuorumHealthy', 'All members are ready');
}

const EXPECTED = [
  'WaitingForSeed',
  'WaitingForMembers',
  'Reconciled',
  'QuorumHealthy',
  'QuorumAvailable',
  'SpecChanged',
  'Scaling',
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
];

/** One Event for each new reason: the three conditions often change for the same one. */
export function eventsFor(o: Observed, after: EtcdClusterStatus): readonly EventRecord[] {
  const changed = changedConditions(o.cluster.status?.conditions, after.conditions);
  return changed
    .filter((c, i) => changed.findIndex((d) => d.reason === c.reason) === i)
    .map((c) => ({ type: EXPECTED.includes(c.reason) ? 'Normal' : 'Warning', reason: c.reason, note: c.message }));
}

/** The rule's own wish, or earlier when a deadline has to be reported or a Secret to be looked at. */
export function requeueAfterMs(o: Observed, answer: ClusterDecision): number | undefined {
  const deadline = answer.latch?.progressDeadline ?? o.cluster.status?.progressDeadline;
  const left = deadline === undefined ? undefined : Date.parse(deadline) - o.now;
  const wishes = [
    answer.requeueAfterMs,
    left !== undefined && left > 0 ? left : undefined,
    certificatesRequeueMs(o),
    authRequeueMs(o),
    backupRequeueMs(o),
    unreadableRequeueMs(o),
  ];
  const earliest = Math.min(...wishes.map((ms) => ms ?? Number.POSITIVE_INFINITY));
  return Number.isFinite(earliest) ? earliest : undefined;
}
