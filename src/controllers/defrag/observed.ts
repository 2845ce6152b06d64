/** The facts that a decision about one EtcdDefrag is made from. */
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly object: EtcdDefrag;
}
