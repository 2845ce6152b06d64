/** Promotes a learner to voter as soon as etcd accepts it: until then it is a copy that does not count towards the quorum. */
import { probeMs } from '../../../lib/backoff.ts';
import { learnersOf } from '../disruption.ts';
import { etcdStep } from '../etcd-calls.ts';
import { isFull, isStuck, joining, startedAt } from '../joining.ts';
import {
  type Decided,
  desired,
  entriesOf,
  isNotBeingDeleted,
  memberOf,
  nameOf,
  type Observed,
  participates,
} from '../observed.ts';

/** A learner is ready within a tenth of a second when there is little to copy; a large database takes minutes. */
const PROMOTE = { firstMs: 50, maxMs: 5_000 };

/** As soon as etcd takes it: until then a learner is a copy that does not count. Those that come after it are added first. */
export function promote(o: Observed): Decided {
  const [first] = learnersOf(o)
    .flatMap((entry) => {
      const m = memberOf(o, entry);
      return m && isNotBeingDeleted(m) && (m.self || participates(o, m))
        ? [{ entry, m, applied: m.self?.applied ?? 0 }]
        : [];
    })
    .sort((a, b) => b.applied - a.applied);
  const more = (entriesOf(o)?.length ?? 0) < desired(o) && !isFull(o) && o.refusal === undefined;
  if (!first || (more && joining(o).some((m) => !isStuck(o, m)))) return undefined;
  const waited = o.now - (startedAt(first.m) ?? o.now);
  return {
    message: `member ${nameOf(first.m)} has joined and is to vote`,
    steps: [etcdStep(o, { name: 'promote', id: first.entry.id }, nameOf(first.m), probeMs(waited, PROMOTE))],
  };
}
