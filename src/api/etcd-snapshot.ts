/** EtcdSnapshot: one snapshot, taken once. */
import Type, { type Static } from 'typebox';
import { type CelRule, cel } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import type { Kind } from './crd.ts';
import type { DeepReadonly, ObjectMeta } from './meta.ts';
import { type API_VERSION, MAX_SNAPSHOT_NAME } from './names.ts';
import { SnapshotLocationSchema } from './snapshot-location.ts';
import { localReference } from './text.ts';

export const clusterReference = () => localReference('clusterRef', 'The EtcdCluster, in the same namespace.');

/** Jobs, labels and runs are named after the object. Objects that were accepted without this rule stay editable. */
export const nameRule = (longest: number, because: string): CelRule => ({
  rule: `oldSelf.hasValue() || size(self.metadata.name) <= ${longest}`,
  optionalOldSelf: true,
  message: `the name must have at most ${longest} characters: ${because}`,
  messageExpression: `'the name ' + self.metadata.name + ' must have at most ${longest} characters: ${because}'`,
});

export const EtcdSnapshotSpecSchema = Type.Object(
  {
    clusterRef: clusterReference(),
    destination: SnapshotLocationSchema,
  },
  cel({
    rule: 'self == oldSelf',
    message: 'a snapshot is taken once and its spec cannot change: create another EtcdSnapshot',
  }),
);

export const EtcdSnapshotStatusSchema = Type.Object({
  phase: Type.Optional(Type.String({ description: 'Pending, Started, Complete or Failed.' })),
  artifact: Type.Optional(
    Type.Object({
      uri: Type.String({ description: 'Where the snapshot is.' }),
      sizeBytes: Type.Optional(Type.Integer({ format: 'int64' })),
      checksum: Type.Optional(Type.String({ description: 'sha256: and the hex digest of the stored bytes.' })),
    }),
  ),
  conditions: Type.Optional(ConditionsSchema),
});

export type EtcdSnapshotSpec = DeepReadonly<Static<typeof EtcdSnapshotSpecSchema>>;
export type EtcdSnapshotStatus = DeepReadonly<Static<typeof EtcdSnapshotStatusSchema>>;

export interface EtcdSnapshot {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'EtcdSnapshot';
  readonly metadata: ObjectMeta;
  readonly spec: EtcdSnapshotSpec;
  readonly status?: EtcdSnapshotStatus;
}

export const etcdSnapshotKind: Kind = {
  names: { kind: 'EtcdSnapshot', plural: 'etcdsnapshots', singular: 'etcdsnapshot', shortNames: ['etcdsnap'] },
  description: 'A snapshot of an EtcdCluster, taken once.',
  spec: EtcdSnapshotSpecSchema,
  status: EtcdSnapshotStatusSchema,
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterRef.name' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
  ],
  rules: [nameRule(MAX_SNAPSHOT_NAME, 'its Job is named after it, and that name is a label too')],
};
