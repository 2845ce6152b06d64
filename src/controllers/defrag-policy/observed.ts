/** The facts that a decision about one EtcdDefragPolicy is made from. */
import type { EtcdDefragPolicy } from '../../api/etcd-defrag-policy.ts';

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly object: EtcdDefragPolicy;
}
