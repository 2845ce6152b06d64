/** What the operator says about a cluster. Every pass says it, whichever rule answered. */
import { changedConditions, findCondition, type Verdict, withVerdicts } from '../api/conditions.ts';
import { DEFAULT_PROGRESS_DEADLINE_SECONDS, type EtcdClusterStatus } from '../api/etcd-cluster.ts';
import { clusterSelector } from '../api/names.ts';
import type { Answer, Notice } from '../runtime/plan.ts';
import { conflicts, identity, isLost, isReadyVoter, type Observed, unapplied, wanted } from './observed.ts';

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
  const reached = s.formed && s.ready === s.desired && s.unapplied === '' && rule !== 'unsupportedSize';
  const { progressDeadline: deadline, ...rest } = latched;
  return {
    ...rest,
    ...(deadline !== undefined && !reached && { progressDeadline: deadline }),
    readyMembers: s.ready,
    selector: clusterSelector(identity(o.cluster).name),
    conditions: [
      ...withVerdicts(
        before.conditions,
        [
          { type: 'Available', ...available(s) },
          { type: 'Progressing', ...progressing(s, rule, reached) },
          { type: 'Degraded', ...degraded(s) },
        ],
        { generation: o.cluster.metadata.generation, now: iso(o.now) },
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
    desired: wanted(o).replicas,
    served: said?.status === 'True' || said?.reason === 'QuorumLost',
    lost: isLost(o),
    taken: conflicts(o).join('; '),
    unapplied: unapplied(o).join(', '),
    inFlight: deadline !== undefined,
    late: deadline !== undefined && o.now >= Date.parse(deadline),
    trouble: o.etcd.is === 'silent' || rule === 'anotherCluster' ? why : '',
  };
}

function available(s: Situation): Said {
  if (s.lost) return no('AllMembersLost', s.why);
  if (!s.formed && s.taken !== '') return no('NameConflict', s.why);
  if (!s.formed) return no(s.late ? 'BootstrapFailed' : 'WaitingForSeed', s.why);
  if (s.ready >= s.desired) return yes('QuorumHealthy', 'All members are ready');
  if (s.ready > s.desired / 2) return yes('QuorumAvailable', `${s.ready}/${s.desired} members ready`);
  if (!s.served) return no('WaitingForSeed', s.why);
  return no('QuorumLost', `${s.ready}/${s.desired} members ready: ${s.why}`);
}

function progressing(s: Situation, rule: string, reached: boolean): Said {
  if (s.lost) return no('AllMembersLost', s.why);
  if (s.taken !== '') return no('NameConflict', s.taken);
  if (rule === 'unsupportedSize') return no('Unsupported', s.why);
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
