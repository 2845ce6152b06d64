/** The conditions of an EtcdCluster that have files of their own. */
import type { ConditionUpdate } from '../../domain/conditions.ts';
import { CRDS_CURRENT, crdConditions } from '../../domain/crds-current.ts';
import { SUSPENDED } from '../../domain/suspend.ts';
import type { UpkeepTask } from '../../runtime/plan.ts';
import { BACKUP_FRESH, backupConditions } from './backup.ts';
import type { ClusterCall } from './calls.ts';
import { CERTIFICATES_VALID } from './credentials/status.ts';
import { droppedBy, inSyncConditions, MANAGED_OBJECTS_IN_SYNC } from './managed-objects.ts';
import type { Observed } from './observed.ts';
import { pressureConditions, QUOTA_PRESSURE } from './quota-pressure.ts';
import { restoreConditions } from './restore.ts';
import { VERSION_CHANGE_READY, versionConditions } from './rollout/version-conditions.ts';
import { IMAGE_ALLOWED, imageConditions, QUOTA_FITS_VOLUME, quotaConditions } from './spec-drift.ts';
import {
  FIELDS_IGNORED,
  ignoredConditions,
  issueConditions,
  KNOWN_ISSUES,
  PEERS_PINNED,
  peerConditions,
} from './spec-warnings.ts';

/** Conditions that are removed when nothing reports them. AuthEnabled is not among them: it is left as it is while etcd does not respond. */
export const PASSING = [
  CERTIFICATES_VALID,
  BACKUP_FRESH,
  QUOTA_FITS_VOLUME,
  QUOTA_PRESSURE,
  FIELDS_IGNORED,
  KNOWN_ISSUES,
  PEERS_PINNED,
  IMAGE_ALLOWED,
  VERSION_CHANGE_READY,
  MANAGED_OBJECTS_IN_SYNC,
  CRDS_CURRENT,
  SUSPENDED,
];

/** Conditions beside those of the situation of the cluster and of its credentials. */
export const furtherConditions = (
  o: Observed,
  formed: boolean,
  tasks: readonly UpkeepTask<ClusterCall>[],
): readonly ConditionUpdate[] => [
  ...restoreConditions(o, formed),
  ...backupConditions(o),
  ...quotaConditions(o),
  ...pressureConditions(o),
  ...ignoredConditions(o),
  ...issueConditions(o),
  ...peerConditions(o),
  ...imageConditions(o),
  ...versionConditions(o),
  ...inSyncConditions(o, tasks),
  ...crdConditions(droppedBy(o).map(({ message }) => message)),
];
