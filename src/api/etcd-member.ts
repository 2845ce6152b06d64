/** EtcdMember: one member of a cluster. Written by the operator, read by users. */
import Type, { type Static } from 'typebox';
import { restoreFields } from './bootstrap.ts';
import { unvalidated } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import { type Kind, namesOf } from './crd.ts';
import type { Accepted, CustomObject } from './meta.ts';
import { CLUSTER_LABEL, etcdMembers } from './names.ts';
import { optionalFlag, optionalInt32, optionalObject, optionalReference, optionalText } from './optional.ts';
import { DeletionPolicySchema, StorageTargetSchema } from './storage.ts';
import { templateFields, VersionSchema } from './template.ts';

const tls = optionalObject('The Secrets with the certificates of this member.', {
  clientServerSecretRef: optionalReference('tls.clientServerSecretRef', ''),
  clientMTLS: Type.Optional(Type.Boolean()),
  peerSecretRef: optionalReference('tls.peerSecretRef', ''),
  peerAutoTLS: Type.Optional(Type.Boolean()),
  peerCertAllowedHostname: optionalText(
    'The name that every peer certificate must have (--peer-cert-allowed-hostname). Set when the member is created; absent in clusters of earlier operators.',
  ),
});

/** Fields that are not copied from the cluster. */
const own = Type.Object({
  clusterName: Type.String({
    minLength: 1,
    maxLength: 253,
    description: 'The EtcdCluster that this member belongs to.',
  }),
  version: VersionSchema,
  bootstrap: optionalFlag('Whether this member bootstraps the cluster.'),
  initialCluster: Type.String({
    description: 'The members of the cluster when this one was created, as name=peerURL,…',
  }),
  clusterToken: Type.String({ description: 'The initial cluster token.' }),
  deletionPolicy: Type.Optional(DeletionPolicySchema),
  maxLearners: optionalInt32('Maximum number of learners (etcd 3.6 and later); the same for all members. Absent: 1.', {
    minimum: 1,
  }),
  dormant: optionalFlag('Paused: the member keeps its volume and its member ID, and has no Pod.'),
  replicas: optionalInt32('For the scale subresource.', { default: 1, minimum: 1, maximum: 1 }),
});

const copies = unvalidated(
  Type.Object({
    storage: StorageTargetSchema,
    ...templateFields,
    tls,
    restore: Type.Optional(Type.Object(restoreFields)),
  }),
);

/** Copies are not validated: the operator could not create a member from a spec that older rules had accepted. */
export const EtcdMemberSpecSchema = Type.Unsafe<Static<typeof own> & Static<typeof copies>>({
  type: 'object',
  required: [...own.required, ...copies.required],
  properties: { ...own.properties, ...copies.properties },
});

export const EtcdMemberStatusSchema = Type.Object({
  memberID: optionalText('The member ID in etcd, recorded once.'),
  podName: Type.Optional(Type.String()),
  podUID: Type.Optional(Type.String()),
  pvcName: Type.Optional(Type.String()),
  isVoter: optionalFlag('Whether the member is a voter in etcd; false for a learner.'),
  replicas: Type.Optional(Type.Integer({ format: 'int32' })),
  selector: Type.Optional(Type.String()),
  version: optionalText('The version that etcd itself reports.'),
  image: optionalText(
    'The image that etcd joined with, where the spec names a repository. The member keeps it when the administrator does not allow it any more.',
  ),
  failedStarts: optionalObject('Starts of etcd in a row that ended before it was serving. Absent once it is serving.', {
    reason: Type.String({ description: 'What the last failed start reported about the data directory.' }),
    count: Type.Integer({ description: 'Number of failed starts in a row with the same reason.' }),
    total: Type.Integer({ description: 'Number of failed starts in a row.' }),
    restarts: Type.Integer({ description: 'Number of container restarts before the last failed start.' }),
    finishedAt: Type.String({ description: 'When the last failed start ended.' }),
  }),
  conditions: Type.Optional(ConditionsSchema),
});

export type EtcdMemberSpec = Accepted<typeof EtcdMemberSpecSchema>;
export type EtcdMemberStatus = Accepted<typeof EtcdMemberStatusSchema>;

export type EtcdMember = CustomObject<'EtcdMember', typeof EtcdMemberSpecSchema, typeof EtcdMemberStatusSchema>;

/** A user has deleted the PVC. Kubernetes keeps it as long as the Pod exists. */
export const PVC_TERMINATING = 'PVCTerminating';

/**
 * Failure evidence, reasons of the Ready condition: the member will not recover by itself, and the cluster controller replaces
 * it. Each is reported only after its own grace period.
 */
export const EVIDENCE = {
  /** Its PVC is deleted, or its data was in memory and the Pod is deleted. */
  dataLost: 'DataLost',
  /** Its PVC is being deleted, and it has no running Pod: no Pod can mount the volume any more. Of a ready member, no evidence. */
  pvcTerminating: PVC_TERMINATING,
  /** etcd starts, and its data directory is empty, corrupt or belongs to another member. */
  dataInvalid: 'DataInvalid',
  /** The PersistentVolume of its PVC is deleted. */
  volumeLost: 'VolumeLost',
  /** The volume is full, and etcd cannot start. */
  volumeFull: 'VolumeFull',
  /** Its node is deleted and its volume was on it, or the node has been NotReady for too long. */
  nodeLost: 'NodeLost',
  /** etcd exits repeatedly for an unknown reason. */
  crashLooping: 'CrashLooping',
  /** etcd exits because this member was removed from the cluster. */
  removed: 'MemberRemoved',
} as const;
/** No failure evidence: etcd cannot access its data directory, whose data may be intact. */
export const STORAGE_ERROR = 'StorageError';
/** No failure evidence: etcd found at its start that its data differs from that of a peer, and either may be corrupt. */
/** The members of a cluster in a cache. By the spec: labels can be stripped, and a member that is not found counts as removed. */
export const byClusterName = { name: CLUSTER_LABEL, of: ({ spec }: EtcdMember): string => spec.clusterName } as const;

export const DATA_INCONSISTENT = 'DataInconsistent';
export type EvidenceReason = (typeof EVIDENCE)[keyof typeof EVIDENCE];
/** With these, the data is lost: the volume does not exist any more. */
export const NO_DATA: readonly string[] = [EVIDENCE.dataLost, EVIDENCE.volumeLost];
/** With these, etcd cannot start from the data. A user may still recover it from a volume that exists. */
export const NO_READABLE_DATA: readonly string[] = [...NO_DATA, EVIDENCE.dataInvalid, EVIDENCE.pvcTerminating];

export const etcdMemberKind: Kind = {
  names: namesOf(etcdMembers, 'etcdm'),
  description: 'A member of an EtcdCluster. Created and changed only by the operator.',
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
  scaledReplicas: '.status.replicas',
};
