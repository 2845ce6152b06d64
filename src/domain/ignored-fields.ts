/** Fields of an EtcdCluster that are valid and have no effect: an admission warning and a condition say so. */
import type { EtcdClusterSpec } from '../api/etcd-cluster.ts';
import { GROUP } from '../api/names.ts';
import { wantsAuth } from '../api/tls.ts';
import { versionNumber } from '../lib/version.ts';
import { DROPPED_PATTERN, droppedKeys } from './additional-metadata.ts';

export interface IgnoredField {
  readonly field: string;
  readonly because: string;
  readonly isIgnored: (spec: EtcdClusterSpec) => boolean;
  /** The same in CEL, about `spec` and the number of its `version`: for the admission warning. */
  readonly cel: string;
}

const isInMemory = ({ storage }: EtcdClusterSpec): boolean => storage?.medium === 'Memory';
const inMemory = "has(spec.storage) && has(spec.storage.medium) && spec.storage.medium == 'Memory'";
export const IGNORED_FIELDS: readonly IgnoredField[] = [
  {
    field: 'storage.storageClassName',
    because: 'with storage.medium Memory there are no volumes',
    isIgnored: (spec) => isInMemory(spec) && spec.storage?.storageClassName !== undefined,
    cel: `${inMemory} && has(spec.storage.storageClassName)`,
  },
  {
    field: 'deletionPolicy',
    because: 'with storage.medium Memory there are no volumes to retain',
    isIgnored: (spec) => isInMemory(spec) && spec.deletionPolicy === 'Retain',
    cel: `${inMemory} && has(spec.deletionPolicy) && spec.deletionPolicy == 'Retain'`,
  },
  {
    field: 'volumeQuarantine',
    because: 'with storage.medium Memory there are no volumes to keep',
    isIgnored: (spec) => isInMemory(spec) && spec.volumeQuarantine !== undefined,
    cel: `${inMemory} && has(spec.volumeQuarantine)`,
  },
  {
    field: 'auth.rootCredentialsSecretRef',
    because: 'auth.enabled is not true: clients need no password',
    isIgnored: (spec) => !wantsAuth(spec) && spec.auth?.rootCredentialsSecretRef !== undefined,
    cel: 'has(spec.auth) && has(spec.auth.rootCredentialsSecretRef) && !(has(spec.auth.enabled) && spec.auth.enabled)',
  },
  {
    field: 'maintenance.autoRemedy.keepRevisions',
    because: 'maintenance.autoRemedy.enabled is not true',
    isIgnored: ({ maintenance: { autoRemedy } = {} }) =>
      autoRemedy?.keepRevisions !== undefined && autoRemedy.enabled !== true,
    cel: 'has(spec.maintenance) && has(spec.maintenance.autoRemedy) && has(spec.maintenance.autoRemedy.keepRevisions) && !(has(spec.maintenance.autoRemedy.enabled) && spec.maintenance.autoRemedy.enabled)',
  },
  {
    field: 'bootstrap',
    because: 'bootstrap.restore is not set: the cluster starts empty',
    isIgnored: ({ bootstrap }) => bootstrap !== undefined && bootstrap.restore === undefined,
    cel: 'has(spec.bootstrap) && !has(spec.bootstrap.restore)',
  },
  {
    field: 'bootstrap.restore.source.s3.serverSideEncryption',
    because: 'it is about uploads, and a restore only downloads',
    isIgnored: ({ bootstrap }) => bootstrap?.restore?.source.s3?.serverSideEncryption !== undefined,
    cel: 'has(spec.bootstrap) && has(spec.bootstrap.restore) && has(spec.bootstrap.restore.source.s3) && has(spec.bootstrap.restore.source.s3.serverSideEncryption)',
  },
  {
    field: 'options.snapshotCount',
    because: 'etcd 3.8 and later have no such flag',
    isIgnored: ({ options, version }) =>
      options?.snapshotCount !== undefined && versionNumber(version) >= versionNumber('3.8.0'),
    cel: `has(spec.options) && has(spec.options.snapshotCount) && version >= ${versionNumber('3.8.0')}`,
  },
  {
    field: 'options.corruptionCheck.compactHash',
    because: 'etcd has this check from 3.5.5 on',
    isIgnored: ({ options, version }) =>
      options?.corruptionCheck?.compactHash === true && versionNumber(version) < versionNumber('3.5.5'),
    cel: `has(spec.options) && has(spec.options.corruptionCheck) && has(spec.options.corruptionCheck.compactHash) && spec.options.corruptionCheck.compactHash && version < ${versionNumber('3.5.5')}`,
  },
  {
    field: 'a key of additionalMetadata',
    because: `keys of ${GROUP}, and annotations that the kubelet or the volume controller act on, are not copied`,
    isIgnored: ({ additionalMetadata }) => droppedKeys(additionalMetadata).length > 0,
    cel: `has(spec.additionalMetadata) && ((has(spec.additionalMetadata.labels) && spec.additionalMetadata.labels.exists(k, k.startsWith('${GROUP}/'))) || (has(spec.additionalMetadata.annotations) && spec.additionalMetadata.annotations.exists(k, k.startsWith('${GROUP}/') || k.matches('${DROPPED_PATTERN}'))))`,
  },
];

export const ignoredMessage = ({ field, because }: IgnoredField): string => `${field} has no effect: ${because}`;
