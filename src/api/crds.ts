/** All kinds, as the API server takes them. */
import { type CustomResourceDefinition, customResourceDefinition } from './crd.ts';
import { etcdClusterKind } from './etcd-cluster.ts';
import { etcdMemberKind } from './etcd-member.ts';

export const crds: readonly CustomResourceDefinition[] = [etcdClusterKind, etcdMemberKind].map(
  customResourceDefinition,
);
