/** Promotes a learner to voter as soon as etcd accepts it: until then it is a copy that does not count towards the quorum. */
import { PROMOTE_PROBE } from '../../../domain/timing.ts';
import { probeMs } from '../../../lib/backoff.ts';
import { etcdStep } from '../etcd-calls.ts';
import { ownEntries } from '../foreign-members.ts';
import { isFull, isJoinRefused, isStuck, joining, startedAt } from '../joining.ts';
import {
  type Decided,
  desired,
  isNotBeingDeleted,
  memberOf,
  nameOf,
  type Observed,
  participates,
} from '../observed.ts';
import { learnersOf } from '../quorum.ts';

/** The learner that has applied most is promoted first, but not before the remaining learners are added: etcd refuses additions after a promotion. */
export function promote(o: Observed): Decided {
  const [first] = learnersOf(o)
    .flatMap((entry) => {
      const m = memberOf(o, entry);
      return m && isNotBeingDeleted(m) && (m.self || participates(o, m))
        ? [{ entry, m, applied: m.self?.applied ?? 0 }]
        : [];
    })
    .sort((a, b) => b.applied - a.applied);
  const more = ownEntries(o).length < desired(o) && !isFull(o) && !isJoinRefused(o);
  if (!first || (more && joining(o).some((m) => !isStuck(o, m)))) return undefined;
  const waited = o.now - (startedAt(first.m) ?? o.now);
  return {
    message: `promoting member ${nameOf(first.m)} to voter`,
    steps: [etcdStep(o, { name: 'promote', id: first.entry.id }, nameOf(first.m), probeMs(waited, PROMOTE_PROBE))],
  };
}
