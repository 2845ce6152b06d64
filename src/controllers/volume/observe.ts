/** Observes one PVC: all from the cache. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { CLUSTER_LABEL, COMPONENT_LABEL, QUARANTINE_LABEL, type Quarantine } from '../../api/names.ts';
import { QUARANTINE_MS } from '../../domain/timing.ts';
import type { PersistentVolumeClaim } from '../../gen/kube.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import type { Observed } from './observed.ts';

export interface VolumePorts {
  readonly now: () => number;
  /** How far the wall clock has jumped ahead in this time. */
  readonly clockAheadMs: (withinMs: number) => number;
  readonly volumes: Store<PersistentVolumeClaim>;
  readonly members: Store<EtcdMember>;
  readonly clusters: Store<EtcdCluster>;
}

/** The others are retained: they are kept for ever. */
const EXPIRING: readonly string[] = ['policy-unknown', 'member-replaced'] satisfies readonly Quarantine[];
export const isExpiring = ({ metadata }: PersistentVolumeClaim): boolean =>
  EXPIRING.includes(metadata.labels?.[QUARANTINE_LABEL] ?? '');

export function observe(ports: VolumePorts, key: string): Promise<Observed | undefined> {
  const pvc = ports.volumes.get(key);
  if (!pvc || !isExpiring(pvc)) return Promise.resolve(undefined);
  const { namespace = '', labels } = pvc.metadata;
  const member = ports.members.get(refKey({ namespace, name: labels?.[COMPONENT_LABEL] ?? '' }));
  const cluster = ports.clusters.get(refKey({ namespace, name: labels?.[CLUSTER_LABEL] ?? '' }));
  const [hasMember, hasCluster] = [member !== undefined, cluster !== undefined];
  // A wall clock that jumps ahead ends no quarantine.
  const now = ports.now() - ports.clockAheadMs(QUARANTINE_MS);
  return Promise.resolve({ now, pvc, hasMember, hasCluster });
}
