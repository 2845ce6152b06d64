/** EtcdCluster: what users write, and what the operator answers. */
import Type, { type Static } from 'typebox';
import { ConditionSchema } from './conditions.ts';
import { cel, type Kind } from './crd.ts';
import type { DeepReadonly, ObjectMeta } from './meta.ts';
import { type API_VERSION, MAX_CLUSTER_NAME } from './names.ts';
import { DEFAULT_SIZE, StorageSchema, StorageTargetSchema } from './storage.ts';

export const DEFAULT_REPLICAS = 3;
export const DEFAULT_PROGRESS_DEADLINE_SECONDS = 600;
/** What this build can run. Growth, shrinking and parking come with their own rules. */
export const SUPPORTED_REPLICAS = 1;

export const VersionSchema = Type.String({
  pattern: String.raw`^\d+\.\d+\.\d+$`,
  description: 'The version of etcd, such as 3.6.14: a tag of the etcd image without its v.',
});

/** Not on the field itself: a rule there would refuse the default. Objects that were accepted without it stay editable. */
const supportedReplicas = cel({
  rule: `self.replicas == ${SUPPORTED_REPLICAS} || (oldSelf.hasValue() && oldSelf.value().replicas == self.replicas)`,
  optionalOldSelf: true,
  fieldPath: '.replicas',
  message: 'this build of the operator runs single-member clusters: set replicas to 1',
});

export const EtcdClusterSpecSchema = Type.Object(
  {
    replicas: Type.Optional(
      Type.Integer({
        format: 'int32',
        minimum: 0,
        default: DEFAULT_REPLICAS,
        description: 'How many members the cluster has.',
      }),
    ),
    version: VersionSchema,
    storage: Type.Optional(StorageSchema),
    progressDeadlineSeconds: Type.Optional(
      Type.Integer({
        format: 'int32',
        minimum: 1,
        default: DEFAULT_PROGRESS_DEADLINE_SECONDS,
        description: 'After how long an unfinished change is reported as late. The operator goes on trying.',
      }),
    ),
  },
  supportedReplicas,
);

export const TargetSchema = Type.Object({
  replicas: Type.Integer({ format: 'int32' }),
  version: Type.String(),
  storage: StorageTargetSchema,
});

export const EtcdClusterStatusSchema = Type.Object({
  readyMembers: Type.Optional(
    Type.Integer({ format: 'int32', description: 'Members that vote and are ready to serve.' }),
  ),
  selector: Type.Optional(
    Type.String({ description: 'The label selector of the members, for the scale subresource.' }),
  ),
  clusterID: Type.Optional(
    Type.String({
      description: 'The id of the etcd cluster, recorded once: after that nothing is ever bootstrapped again.',
    }),
  ),
  clusterToken: Type.Optional(
    Type.String({ description: 'The initial cluster token of every member, recorded once.' }),
  ),
  membersNamed: Type.Optional(
    Type.Integer({
      format: 'int64',
      description: 'How many member names were ever given out. The name of a member follows from this and the uid.',
    }),
  ),
  observed: Type.Optional(TargetSchema),
  progressDeadline: Type.Optional(
    Type.String({ format: 'date-time', description: 'When the change under way counts as late.' }),
  ),
  conditions: Type.Optional(Type.Array(ConditionSchema)),
});

export type EtcdClusterSpec = DeepReadonly<Static<typeof EtcdClusterSpecSchema>>;
export type EtcdClusterStatus = DeepReadonly<Static<typeof EtcdClusterStatusSchema>>;
export type Target = DeepReadonly<Static<typeof TargetSchema>>;

export interface EtcdCluster {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'EtcdCluster';
  readonly metadata: ObjectMeta;
  readonly spec: EtcdClusterSpec;
  readonly status?: EtcdClusterStatus;
}

/** The spec with every default filled in: what is latched as the target. */
export const targetOf = (spec: EtcdClusterSpec): Target => ({
  replicas: spec.replicas ?? DEFAULT_REPLICAS,
  version: spec.version,
  storage: {
    size: spec.storage?.size ?? DEFAULT_SIZE,
    medium: spec.storage?.medium ?? '',
    ...(spec.storage?.storageClassName !== undefined && { storageClassName: spec.storage.storageClassName }),
  },
});

export const etcdClusterKind: Kind = {
  names: { kind: 'EtcdCluster', plural: 'etcdclusters', singular: 'etcdcluster' },
  description: 'An etcd cluster.',
  spec: EtcdClusterSpecSchema,
  status: EtcdClusterStatusSchema,
  columns: [
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyMembers' },
  ],
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.readyMembers',
    labelSelectorPath: '.status.selector',
  },
  rules: [
    {
      // Objects that were accepted without this rule stay editable.
      rule: `oldSelf.hasValue() || (size(self.metadata.name) <= ${MAX_CLUSTER_NAME} && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))`,
      optionalOldSelf: true,
      message: `the name must start with a letter, hold only a-z, 0-9 and -, and have at most ${MAX_CLUSTER_NAME} characters: Services and members are named after it`,
    },
  ],
};
