/** EtcdCluster: the desired cluster, written by users. */
import Type from 'typebox';
import { bootstrap } from './bootstrap.ts';
import { cel } from './cel.ts';
import { type Kind, namesOf } from './crd.ts';
import { clusterRules, specRules } from './etcd-cluster-rules.ts';
import { EtcdClusterStatusSchema } from './etcd-cluster-status.ts';
import { maintenance } from './maintenance.ts';
import type { Accepted, CustomObject } from './meta.ts';
import { etcdClusters } from './names.ts';
import { networkPolicy } from './network-policy.ts';
import { optionalFlag, optionalInt32, optionalObject } from './optional.ts';
import { DeletionPolicySchema, StorageSchema } from './storage.ts';
import { templateFields, VersionSchema } from './template.ts';
import { auth, tls } from './tls.ts';
import { updateStrategy } from './update-strategy.ts';

export const DEFAULT_REPLICAS = 3;
/** No etcd cluster of this size makes progress. Responses that list more than 100 members are refused as hostile. */
const MAX_REPLICAS = 99;
export const DEFAULT_PROGRESS_DEADLINE_SECONDS = 600;

export const EtcdClusterSpecSchema = Type.Object(
  {
    replicas: optionalInt32(
      'Number of members. Use an odd number: an even one tolerates no more failures. 0 pauses the cluster: no Pods run, and its volumes are kept.',
      { minimum: 0, maximum: MAX_REPLICAS, default: DEFAULT_REPLICAS },
    ),
    version: VersionSchema,
    storage: Type.Optional(StorageSchema),
    progressDeadlineSeconds: optionalInt32(
      'After how long an unfinished change is reported as overdue. The operator keeps trying.',
      { minimum: 1, default: DEFAULT_PROGRESS_DEADLINE_SECONDS },
    ),
    deletionPolicy: Type.Optional(DeletionPolicySchema),
    tls,
    auth,
    bootstrap,
    ...templateFields,
    suspend: optionalFlag(
      'true: the operator observes this cluster, reports its status, and changes nothing of it: no member is created, replaced, restarted or removed, no certificate renewed, no password changed. Snapshots and their schedules go on. Deleting the EtcdCluster works as usual.',
    ),
    updateStrategy,
    maintenance,
    podDisruptionBudget: optionalObject(
      'The PodDisruptionBudget (PDB) that keeps node drains from costing the quorum.',
      {
        enabled: optionalFlag('Absent: true. false: the PDB is deleted, and node drains may cost the quorum.'),
      },
    ),
    networkPolicy,
    volumeQuarantine: optionalObject(
      'The PVC of a member that the operator replaced because its etcd could not start, had other data than the quorum, or was on a node that was NotReady for too long, is kept for 24 hours, whatever the deletionPolicy.',
      {
        enabled: optionalFlag('Absent: true. false: such a PVC is treated as the deletionPolicy says.'),
      },
    ),
  },
  cel(...specRules),
);

export type EtcdClusterSpec = Accepted<typeof EtcdClusterSpecSchema>;

export type EtcdCluster = CustomObject<'EtcdCluster', typeof EtcdClusterSpecSchema, typeof EtcdClusterStatusSchema>;

export const etcdClusterKind: Kind = {
  names: namesOf(etcdClusters, 'etcdc'),
  description: 'An etcd cluster.',
  spec: EtcdClusterSpecSchema,
  status: EtcdClusterStatusSchema,
  columns: [
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyMembers' },
    { name: 'Available', type: 'string', jsonPath: '.status.conditions[?(@.type=="Available")].status' },
    { name: 'Suspend', type: 'boolean', jsonPath: '.spec.suspend', description: 'The operator changes nothing.' },
    { name: 'Leader', type: 'string', jsonPath: '.status.leader', priority: 1 },
    { name: 'Running', type: 'string', jsonPath: '.status.version', priority: 1 },
    {
      name: 'Quorum',
      type: 'integer',
      jsonPath: '.status.quorum.margin',
      priority: 1,
      description: 'How many more voters may fail.',
    },
    {
      name: 'Quarantined',
      type: 'string',
      jsonPath: '.status.quarantinedVolumes[*].name',
      priority: 1,
      description: 'PVCs of members that were replaced or removed.',
    },
  ],
  scaledReplicas: '.status.readyMembers',
  rules: clusterRules,
};
