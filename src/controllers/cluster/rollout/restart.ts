/** How one member is restarted, whatever the reason: out of the client Service, leadership transferred, then its Pod deleted. */
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { ASIDE_ANNOTATION, ROLE_LABEL } from '../../../api/names.ts';
import { iso } from '../../../lib/time.ts';
import type { Answer, Seen, Step } from '../../../runtime/plan.ts';
import { nameIn } from '../build.ts';
import { healthyVoters, leaderOf, votersOf } from '../disruption.ts';
import { change } from '../etcd-calls.ts';
import { type EtcdMemberEntry, entryOf, type MemberView, nameOf, type Observed } from '../observed.ts';

export const isInMemory = (m: MemberView): boolean => m.object.spec.storage.medium === 'Memory';

/** The leader last: its clients lose more. */
export function leaderLast(o: Observed, members: readonly MemberView[]): readonly MemberView[] {
  const leads = (m: MemberView): number => Number(entryOf(o, m)?.id === leaderOf(o));
  return [...members].sort((a, b) => leads(a) - leads(b));
}

/** A PVC that is being deleted goes with the Pod that uses it, and the data with the PVC. */
export const losesVolume = (m: MemberView): string | undefined =>
  m.pvc === 'terminating'
    ? `the PersistentVolumeClaim of ${nameOf(m)} is being deleted, and its Pod keeps it`
    : undefined;

export interface Restart {
  readonly m: MemberView;
  readonly entry: EtcdMemberEntry;
  readonly why: string;
  /** Of the Event. */
  readonly reason: string;
  /** What is deleted: the Pod, unless the data is in its memory. */
  readonly what?: Seen;
}

export function restarting(
  o: Observed,
  { m, entry, why, reason, what = podOf(m) }: Restart,
): Answer<EtcdClusterStatus> {
  const transferee = healthyVoters(o).find(({ id }) => id !== entry.id);
  if (leaderOf(o) === entry.id && transferee)
    return {
      why: `${why}; it leads, and hands over to ${nameIn(transferee)} first`,
      steps: [change(o, { name: 'moveLeader', to: transferee.id }, nameIn(transferee))],
    };
  const aside = isInMemory(m) || votersOf(o).length === 1 ? ASIDE_MS : asideFor(o, m);
  if (aside === undefined)
    return { why: `${why}; clients are led to others first`, steps: [asidePatch(m, iso(o.now), null)] };
  if (aside < ASIDE_MS) return { why: `${why}; clients are led to others first`, wakeAfter: ASIDE_MS - aside };
  return { why, steps: [{ do: 'delete', what }], notice: { type: 'Normal', reason, note: why } };
}

/** So long Kubernetes may take until nobody is led to a Pod any more: an etcd that ends before that refuses whoever comes. */
const ASIDE_MS = 3_000;

export const asideFor = (o: Observed, { pod }: MemberView): number | undefined =>
  pod.is === 'present' && pod.going !== true && pod.asideSince !== undefined ? o.now - pod.asideSince : undefined;

export const asidePatch = (m: MemberView, since: string | null, role: string | null): Step => ({
  do: 'patch',
  to: podOf(m),
  fields: { metadata: { labels: { [ROLE_LABEL]: role }, annotations: { [ASIDE_ANNOTATION]: since } } },
});

function podOf(m: MemberView): Seen {
  const { namespace = '', name = '' } = m.object.metadata;
  return { kind: 'Pod', namespace, name, uid: (m.pod.is === 'present' && m.pod.uid) || '' };
}
