/** Whose an object is. An object of the right name that is not ours is never used and never changed. */
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

/** For what the garbage collector deletes with this object. */
export function ownedBy({ kind }: { readonly kind: string }, owner: Owned): readonly OwnerReference[] {
  const { name, uid } = identity(owner);
  return [{ apiVersion: API_VERSION, kind, name, uid, controller: true, blockOwnerDeletion: true }];
}

/** What is known about an object that we want by name. */
export type Holding<T> =
  | { readonly is: 'absent' }
  | { readonly is: 'ours'; readonly object: T }
  | { readonly is: 'foreign'; readonly owner: string };

export const controllerOf = (object: Owned): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((o) => o.controller === true);

const describe = (object: Owned): string => {
  const owner = controllerOf(object);
  if (!owner) return 'nobody: it was not made by this operator';
  const going = object.metadata.deletionTimestamp === undefined ? '' : ', and is being deleted';
  return `${owner.kind} ${owner.name} (uid ${owner.uid})${going}`;
};

/** Sorts an object by its controller: ours only if that is exactly the object with this uid. */
export function holding<T extends Owned>(object: T | undefined, uid: string): Holding<T> {
  if (object === undefined) return { is: 'absent' };
  if (controllerOf(object)?.uid === uid) return { is: 'ours', object };
  return { is: 'foreign', owner: describe(object) };
}

/**
 * Whether a member is part of this cluster: the cluster controls it, or no controller does and the member names the cluster.
 * etcd-migrate creates EtcdMembers without an owner reference. The token tells clusters of one name apart: that of a cluster
 * that was deleted with --cascade=orphan contains another uid.
 */
export function isMemberOf({ metadata, spec }: EtcdMember, { metadata: cluster, status }: EtcdCluster): boolean {
  const owner = controllerOf({ metadata });
  if (owner) return owner.uid === cluster.uid;
  const { name = '', namespace = '', uid = '' } = cluster;
  const isNamed = metadata.labels?.[CLUSTER_LABEL] === name && spec.clusterName === name;
  const token = status?.clusterToken ?? clusterToken(namespace, name, uid);
  return metadata.namespace === namespace && isNamed && spec.clusterToken === token;
}
