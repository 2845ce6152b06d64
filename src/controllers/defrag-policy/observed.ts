/** The observed state of one EtcdDefragPolicy, and the predicates that rules share. */
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdDefragPolicy, EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import { defragSlotOf } from '../../api/names.ts';
import { isFinished } from '../../domain/defragmentation.ts';
import { type Holding, identity, isBeingDeleted } from '../../domain/ownership.ts';

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Why the API server refused a step of the previous reconcile. */
  readonly refusal: string | undefined;
  readonly object: EtcdDefragPolicy;
  /** EtcdDefrags of this policy, by their scheduled time, including those being deleted. */
  readonly runs: readonly EtcdDefrag[];
  /** The object that has the name of the due EtcdDefrag. */
  readonly due: Holding<EtcdDefrag>;
}

export const statusBefore = (o: Observed): EtcdDefragPolicyStatus => o.object.status ?? {};

/** The scheduled time of an EtcdDefrag of this policy. */
export const slotIn = (o: Pick<Observed, 'object'>, run: EtcdDefrag): number =>
  defragSlotOf(identity(o.object).name, identity(run).name) ?? Number.NEGATIVE_INFINITY;

export const isActive = (run: EtcdDefrag): boolean => !isFinished(run) && !isBeingDeleted(run);

/** The newest that has succeeded. */
export const lastSuccess = ({ runs }: Observed): string | undefined =>
  runs
    .filter(({ status }) => status?.phase === 'Complete')
    .flatMap(({ status }) => status?.completedAt ?? [])
    .toSorted()
    .at(-1);
