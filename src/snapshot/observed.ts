/** The facts that a decision about one EtcdSnapshot is made from. */
import type { EtcdSnapshot } from '../api/etcd-snapshot.ts';

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly object: EtcdSnapshot;
}
