/** What the operator says about a cluster. Every pass says it, whichever rule answered. */
import { changedConditions, findCondition, type Verdict, withVerdicts } from '../api/conditions.ts';
import { DEFAULT_PROGRESS_DEADLINE_SECONDS } from '../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../api/etcd-cluster-status.ts';
import { clusterSelector } from '../api/names.ts';
import { NOT_YET_SUPPORTED, notYetVerdicts } from '../api/not-yet-supported.ts';
import type { Answer, Notice } from '../runtime/plan.ts';
import { desired, forbiddenImage, notYet, unapplied } from './asked.ts';
import { membersStatus } from './members-status.ts';
import { brokenMembers, conflicts, identity, isLost, isReadyVoter, type Observed } from './observed.ts';

const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

/** When the change that begins now counts as late. */
export const progressDeadline = (o: Observed): string =>
  iso(o.now + (o.cluster.spec.progressDeadlineSeconds ?? DEFAULT_PROGRESS_DEADLINE_SECONDS) * 1000);

/** Everything the three verdicts are made from. */
interface Situation {
  readonly why: string;
  readonly formed: boolean;
  readonly ready: number;
  readonly desired: number;
  /** The cluster has served before: a member that is not ready is then a fault, not a beginning. */
  readonly served: boolean;
  readonly lost: boolean;
  readonly taken: string;
  readonly unapplied: string;
  readonly inFlight: boolean;
  readonly late: boolean;
  readonly trouble: string;
  /** Why nothing is done towards the spec: not built yet, or not allowed. */
  readonly held: { readonly reason: string; readonly message: string } | undefined;
}

type Said = Omit<Verdict, 'type'>;
const yes = (reason: string, message: string): Said => ({ status: 'True', reason, message });
const no = (reason: string, message: string): Said => ({ status: 'False', reason, message });

export function statusOf(o: Observed, rule: string, answer: Answer<EtcdClusterStatus>): EtcdClusterStatus {
  const before = o.cluster.status ?? {};
  if (rule === 'beingDeleted') return before;
  const latched: EtcdClusterStatus = { ...before, ...answer.latch };
  const refused = o.refusal === undefined ? '' : `; the API server refuses it: ${o.refusal}`;
  const s = situation(o, latched, rule, answer.why + refused);
  const reached = s.formed && s.ready === s.desired && s.unapplied === '' && s.held === undefined;
  const { progressDeadline: deadline, members: _m, leader: _l, version: _v, quorum: _q, ...rest } = latched;
  const unsupported = notYetVerdicts(notYet(o));
  return {
    ...rest,
    ...(deadline !== undefined && !reached && s.held === undefined && { progressDeadline: deadline }),
    readyMembers: s.ready,
    brokenMembers: brokenMembers(o),
    ...membersStatus(o, iso(o.now)),
    selector: clusterSelector(identity(o.cluster).name),
    conditions: [
      ...withVerdicts(
        before.conditions,
        [
          { type: 'Available', ...available(s) },
          { type: 'Progressing', ...progressing(s, reached) },
          { type: 'Degraded', ...degraded(s) },
          ...unsupported,
        ],
        { generation: o.cluster.metadata.generation, now: iso(o.now) },
        unsupported.length === 0 ? [NOT_YET_SUPPORTED] : [],
      ),
    ],
  };
}

function situation(o: Observed, latched: EtcdClusterStatus, rule: string, why: string): Situation {
  const said = findCondition(latched.conditions, 'Available');
  const deadline = latched.progressDeadline;
  return {
    why,
    formed: latched.clusterID !== undefined,
    ready: o.members.filter(isReadyVoter).length,
    desired: desired(o),
    served: said?.status === 'True' || said?.reason === 'QuorumLost',
    lost: isLost(o),
    taken: conflicts(o).join('; '),
    unapplied: unapplied(o).join(', '),
    inFlight: deadline !== undefined,
    late: deadline !== undefined && o.now >= Date.parse(deadline),
    trouble: o.etcd.is === 'silent' || rule === 'anotherCluster' ? why : '',
    held: heldBack(o),
  };
}

function heldBack(o: Observed): Situation['held'] {
  const [unsupported] = notYetVerdicts(notYet(o));
  if (unsupported) return { reason: NOT_YET_SUPPORTED, message: unsupported.message };
  const image = forbiddenImage(o);
  return image === undefined ? undefined : { reason: 'ImageNotAllowed', message: image };
}

function available(s: Situation): Said {
  if (s.lost) return no('AllMembersLost', s.why);
  if (!s.formed && s.held) return no(s.held.reason, s.held.message);
  if (!s.formed && s.taken !== '') return no('NameConflict', s.why);
  if (!s.formed) return no(s.late ? 'BootstrapFailed' : 'WaitingForSeed', s.why);
  if (s.ready >= s.desired) return yes('QuorumHealthy', 'All members are ready');
  if (s.ready > s.desired / 2) return yes('QuorumAvailable', `${s.ready}/${s.desired} members ready`);
  if (!s.served) return no('WaitingForSeed', s.why);
  return no('QuorumLost', `${s.ready}/${s.desired} members ready: ${s.why}`);
}

function progressing(s: Situation, reached: boolean): Said {
  if (s.lost) return no('AllMembersLost', s.why);
  if (s.taken !== '') return no('NameConflict', s.taken);
  if (s.held) return no(s.held.reason, s.held.message);
  const missing =
    s.unapplied === '' ? s.why : `not applied yet, because this build does not change running members: ${s.unapplied}`;
  if (!reached && s.late)
    return no(
      s.formed ? 'DeadlineExceeded' : 'BootstrapFailed',
      `later than progressDeadlineSeconds, still trying: ${missing}`,
    );
  if (s.formed && s.unapplied !== '') return yes('SpecChanged', missing);
  if (!reached && s.inFlight) return yes('WaitingForSeed', s.why);
  return no('Reconciled', 'the members are as the spec asks');
}

function degraded(s: Situation): Said {
  if (s.lost) return yes('AllMembersLost', s.why);
  if (s.taken !== '') return yes('NameConflict', s.taken);
  if (!s.formed && s.held) return no(s.held.reason, s.held.message);
  if (!s.formed) return s.late ? yes('BootstrapFailed', s.why) : no('WaitingForSeed', s.why);
  if (s.ready < s.desired && s.served) return yes(s.ready > s.desired / 2 ? 'MembersUnhealthy' : 'QuorumLost', s.why);
  if (s.ready < s.desired) return no('WaitingForSeed', s.why);
  if (s.trouble !== '') return yes('MembersUnhealthy', s.trouble);
  return no('QuorumHealthy', 'All members are ready');
}

const EXPECTED = ['WaitingForSeed', 'Reconciled', 'QuorumHealthy', 'QuorumAvailable', 'SpecChanged'];

/** One Event for each new reason: the three conditions often change for the same one. */
export function noticesOf(o: Observed, after: EtcdClusterStatus): readonly Notice[] {
  const changed = changedConditions(o.cluster.status?.conditions, after.conditions);
  return changed
    .filter((c, i) => changed.findIndex((d) => d.reason === c.reason) === i)
    .map((c) => ({ type: EXPECTED.includes(c.reason) ? 'Normal' : 'Warning', reason: c.reason, note: c.message }));
}

/** The rule's own wish, or earlier when a deadline has to be reported. */
export function wakeAt(o: Observed, answer: Answer<EtcdClusterStatus>): number | undefined {
  const deadline = answer.latch?.progressDeadline ?? o.cluster.status?.progressDeadline;
  const left = deadline === undefined ? undefined : Date.parse(deadline) - o.now;
  if (left === undefined || left <= 0) return answer.wakeAfter;
  return Math.min(answer.wakeAfter ?? left, left);
}
