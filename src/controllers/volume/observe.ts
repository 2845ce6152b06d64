/** Observes one PVC: all from the cache. */
import type { EtcdMember } from '../../api/etcd-member.ts';
import { COMPONENT_LABEL, QUARANTINE_LABEL, type Quarantine } from '../../api/names.ts';
import type { PersistentVolumeClaim } from '../../gen/kube.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import type { Observed } from './observed.ts';

export interface VolumePorts {
  readonly now: () => number;
  readonly volumes: Store<PersistentVolumeClaim>;
  readonly members: Store<EtcdMember>;
}

const EXPIRING: Quarantine = 'policy-unknown';
export const isExpiring = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.labels?.[QUARANTINE_LABEL] === EXPIRING;

export function observe(ports: VolumePorts, key: string): Promise<Observed | undefined> {
  const pvc = ports.volumes.get(key);
  if (!pvc || !isExpiring(pvc)) return Promise.resolve(undefined);
  const { namespace = '', labels } = pvc.metadata;
  const member = ports.members.get(refKey({ namespace, name: labels?.[COMPONENT_LABEL] ?? '' }));
  return Promise.resolve({ now: ports.now(), pvc, hasMember: member !== undefined });
}
