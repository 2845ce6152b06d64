/** Who controls an object. A foreign object of the right name is never used and never changed. */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import type { ObjectMeta, OwnerReference } from '../api/meta.ts';
import { API_VERSION, CLUSTER_LABEL, clusterToken } from '../api/names.ts';

interface Owned {
  readonly metadata: ObjectMeta;
}

export interface Identity {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
}

export const identity = ({ metadata: { name = '', namespace = '', uid = '' } }: Owned): Identity => ({
  name,
  namespace,
  uid,
});

export const isBeingDeleted = ({ metadata }: Owned): boolean => metadata.deletionTimestamp !== undefined;

/** The owner reference of objects that the garbage collector deletes with `owner`. */
export function ownedBy({ kind }: { readonly kind: string }, owner: Owned): readonly OwnerReference[] {
  const { name, uid } = identity(owner);
  return [{ apiVersion: API_VERSION, kind, name, uid, controller: true, blockOwnerDeletion: true }];
}

/** An object that the operator needs by name: absent, ours, or foreign. */
export type Holding<T> =
  | { readonly is: 'absent' }
  | { readonly is: 'ours'; readonly object: T }
  | { readonly is: 'foreign'; readonly owner: string };

export const controllerOf = (object: Owned): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((o) => o.controller === true);

const describe = (object: Owned): string => {
  const owner = controllerOf(object);
  if (!owner) return 'no controller: this operator did not create it';
  const deleting = object.metadata.deletionTimestamp === undefined ? '' : ', and is being deleted';
  return `${owner.kind} ${owner.name} (uid ${owner.uid})${deleting}`;
};

/** Ours only if the controller has exactly this uid: a recreated owner of the same name has another one. */
export function holding<T extends Owned>(object: T | undefined, uid: string): Holding<T> {
  if (object === undefined) return { is: 'absent' };
  if (controllerOf(object)?.uid === uid) return { is: 'ours', object };
  return { is: 'foreign', owner: describe(object) };
}

/**
 * Whether a member is part of this cluster: the cluster controls it, or no controller does and the member names the cluster.
 * etcd-migrate creates EtcdMembers without an owner reference. The token distinguishes clusters of one name: that of a
 * cluster that was deleted with --cascade=orphan contains another uid.
 */
export function isMemberOf({ metadata, spec }: EtcdMember, { metadata: cluster, status }: EtcdCluster): boolean {
  const owner = controllerOf({ metadata });
  if (owner) return owner.uid === cluster.uid;
  const { name = '', namespace = '', uid = '' } = cluster;
  const isNamed = metadata.labels?.[CLUSTER_LABEL] === name && spec.clusterName === name;
  const token = status?.clusterToken ?? clusterToken(namespace, name, uid);
  return metadata.namespace === namespace && isNamed && spec.clusterToken === token;
}
