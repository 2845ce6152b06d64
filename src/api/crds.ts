/** The CRDs of all kinds. */
import { type CustomResourceDefinition, customResourceDefinition, type Kind } from './crd.ts';
import { etcdClusterKind } from './etcd-cluster.ts';
import { etcdDefragKind } from './etcd-defrag.ts';
import { etcdDefragPolicyKind } from './etcd-defrag-policy.ts';
import { etcdMemberKind } from './etcd-member.ts';
import { etcdSnapshotKind } from './etcd-snapshot.ts';
import { etcdSnapshotScheduleKind } from './etcd-snapshot-schedule.ts';

export const kinds: readonly Kind[] = [
  etcdClusterKind,
  etcdMemberKind,
  etcdSnapshotKind,
  etcdSnapshotScheduleKind,
  etcdDefragKind,
  etcdDefragPolicyKind,
];

export const crds: readonly CustomResourceDefinition[] = kinds.map(customResourceDefinition);
