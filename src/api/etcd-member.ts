/** EtcdMember: one member of a cluster. Written by the operator; people read it. */
import Type, { type Static } from 'typebox';
import { ConditionSchema } from './conditions.ts';
import type { Kind } from './crd.ts';
import { VersionSchema } from './etcd-cluster.ts';
import type { DeepReadonly, ObjectMeta } from './meta.ts';
import type { API_VERSION } from './names.ts';
import { StorageTargetSchema } from './storage.ts';

export const EtcdMemberSpecSchema = Type.Object({
  clusterName: Type.String({ minLength: 1, description: 'The EtcdCluster that this member belongs to.' }),
  version: VersionSchema,
  storage: StorageTargetSchema,
  bootstrap: Type.Optional(Type.Boolean({ description: 'This member is the one that a cluster begins with.' })),
  initialCluster: Type.String({ description: 'The members at the time when this one was made, as name=peerURL,…' }),
  clusterToken: Type.String({ description: 'The initial cluster token.' }),
  replicas: Type.Optional(
    Type.Integer({ format: 'int32', default: 1, minimum: 1, maximum: 1, description: 'For the scale subresource.' }),
  ),
});

export const EtcdMemberStatusSchema = Type.Object({
  memberID: Type.Optional(Type.String({ description: 'The id that etcd gave to the member, recorded once.' })),
  podName: Type.Optional(Type.String()),
  podUID: Type.Optional(Type.String()),
  pvcName: Type.Optional(Type.String()),
  isVoter: Type.Optional(Type.Boolean({ description: 'Whether etcd counts the vote of this member.' })),
  replicas: Type.Optional(Type.Integer({ format: 'int32' })),
  selector: Type.Optional(Type.String()),
  version: Type.Optional(Type.String({ description: 'The version that etcd itself reports.' })),
  conditions: Type.Optional(Type.Array(ConditionSchema)),
});

export type EtcdMemberSpec = DeepReadonly<Static<typeof EtcdMemberSpecSchema>>;
export type EtcdMemberStatus = DeepReadonly<Static<typeof EtcdMemberStatusSchema>>;

export interface EtcdMember {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'EtcdMember';
  readonly metadata: ObjectMeta;
  readonly spec: EtcdMemberSpec;
  readonly status?: EtcdMemberStatus;
}

/** Reasons of a member's Ready condition that another controller acts on. */
export const DATA_LOST = 'DataLost';

export const etcdMemberKind: Kind = {
  names: { kind: 'EtcdMember', plural: 'etcdmembers', singular: 'etcdmember' },
  description: 'A member of an EtcdCluster. Made and changed by the operator only.',
  spec: EtcdMemberSpecSchema,
  status: EtcdMemberStatusSchema,
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterName' },
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    { name: 'Running', type: 'string', jsonPath: '.status.version' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  ],
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  },
};
