/** EtcdMember: one member of a cluster. Written by the operator; people read it. */
import Type, { type Static } from 'typebox';
import { restoreFields } from './bootstrap.ts';
import { unvalidated } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import type { Kind } from './crd.ts';
import type { DeepReadonly, ObjectMeta } from './meta.ts';
import type { API_VERSION } from './names.ts';
import { DeletionPolicySchema, StorageTargetSchema } from './storage.ts';
import { templateFields, VersionSchema } from './template.ts';
import { localReference } from './text.ts';

const MemberTlsSchema = Type.Object(
  {
    clientServerSecretRef: Type.Optional(localReference('tls.clientServerSecretRef', '')),
    clientMTLS: Type.Optional(Type.Boolean()),
    peerSecretRef: Type.Optional(localReference('tls.peerSecretRef', '')),
    peerAutoTLS: Type.Optional(Type.Boolean()),
  },
  { description: 'Which Secrets encrypt this member.' },
);

/** What only a member has. */
const memberFields = {
  bootstrap: Type.Optional(Type.Boolean({ description: 'This member is the one that a cluster begins with.' })),
  initialCluster: Type.String({ description: 'The members at the time when this one was made, as name=peerURL,…' }),
  clusterToken: Type.String({ description: 'The initial cluster token.' }),
  deletionPolicy: Type.Optional(DeletionPolicySchema),
  maxLearners: Type.Optional(
    Type.Integer({
      format: 'int32',
      minimum: 1,
      description: 'How many learners etcd may have at once, from 3.6 on; the same for all members. Absent: one.',
    }),
  ),
  dormant: Type.Optional(Type.Boolean({ description: 'Parked: it keeps its volume and its id, and has no Pod.' })),
  replicas: Type.Optional(
    Type.Integer({ format: 'int32', default: 1, minimum: 1, maximum: 1, description: 'For the scale subresource.' }),
  ),
};

const copies = unvalidated(
  Type.Object({
    storage: StorageTargetSchema,
    ...templateFields,
    tls: Type.Optional(MemberTlsSchema),
    restore: Type.Optional(Type.Object(restoreFields)),
  }),
);

const own = Type.Object({
  clusterName: Type.String({
    minLength: 1,
    maxLength: 253,
    description: 'The EtcdCluster that this member belongs to.',
  }),
  version: VersionSchema,
  ...memberFields,
});

/** Not validated where it is a copy: what an older version of the rules let pass must still become a member. */
export const EtcdMemberSpecSchema = Type.Unsafe<Static<typeof own> & Static<typeof copies>>({
  type: 'object',
  required: [...own.required, ...copies.required],
  properties: { ...own.properties, ...copies.properties },
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
  failedStarts: Type.Optional(
    Type.Object(
      {
        reason: Type.String({ description: 'What the last of them says about the data directory.' }),
        count: Type.Integer({ description: 'How many in a row say the same.' }),
        total: Type.Integer({ description: 'How many there were in a row.' }),
        restarts: Type.Integer({ description: 'The number of restarts of the container before the last of them.' }),
        finishedAt: Type.String({ description: 'When the last of them ended.' }),
      },
      { description: 'Starts of etcd in a row that ended before it served. Absent once it serves.' },
    ),
  ),
  conditions: Type.Optional(ConditionsSchema),
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

/**
 * Evidence that a member will not come back by itself: reasons of its Ready condition, on which the cluster acts. Each has
 * outlasted its own time of grace when it is said.
 */
export const EVIDENCE = {
  /** The claim of its volume is gone, or the memory that held its data. */
  dataLost: 'DataLost',
  /** etcd starts, and finds its data directory empty, damaged or not its own. */
  dataInvalid: 'DataInvalid',
  /** What the claim stands for is gone. */
  volumeLost: 'VolumeLost',
  /** No room is left on the volume, and etcd cannot start. */
  volumeFull: 'VolumeFull',
  /** Its node is gone, and its volume was there; or nobody has heard of the node for long. */
  nodeLost: 'NodeLost',
  /** etcd ends again and again, for no reason that we know. */
  crashLooping: 'CrashLooping',
  /** etcd ends, because the cluster has removed this member. */
  removed: 'MemberRemoved',
} as const;
/** Reasons of Ready that are no evidence. etcd cannot access its data directory, which may be in order. */
export const STORAGE_ERROR = 'StorageError';
/** etcd found at its start that its data differs from a peer's: either can be the one that is corrupt. */
export const DATA_INCONSISTENT = 'DataInconsistent';
export type EvidenceReason = (typeof EVIDENCE)[keyof typeof EVIDENCE];
/** With these, the data is lost for good: there is no volume any more. */
export const NO_DATA: readonly string[] = [EVIDENCE.dataLost, EVIDENCE.volumeLost];
/** With these, etcd cannot start from the data. A person may still recover it from a volume that exists. */
export const NO_READABLE_DATA: readonly string[] = [...NO_DATA, EVIDENCE.dataInvalid];

export const etcdMemberKind: Kind = {
  names: { kind: 'EtcdMember', plural: 'etcdmembers', singular: 'etcdmember', shortNames: ['etcdm'] },
  description: 'A member of an EtcdCluster. Made and changed by the operator only.',
  spec: EtcdMemberSpecSchema,
  status: EtcdMemberStatusSchema,
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterName' },
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    { name: 'Running', type: 'string', jsonPath: '.status.version' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Voter', type: 'boolean', jsonPath: '.status.isVoter', priority: 1 },
    { name: 'ID', type: 'string', jsonPath: '.status.memberID', priority: 1 },
  ],
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  },
};
