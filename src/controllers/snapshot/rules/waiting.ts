/** Rules about the cluster: a snapshot that can never be taken fails at once, one that may soon be possible waits. */

import { wantsAuth } from '../../../api/tls.ts';
import { isPaused } from '../../../domain/paused.ts';
import { clusterNameOf, type Observed } from '../observed.ts';
import { type FailedReason, failed, type SnapshotDecision } from '../status.ts';
import { waitFor } from '../waiting.ts';

const same = (reason: FailedReason) => ({ meanwhile: reason, atLast: reason });

export const noImage = (o: Observed): SnapshotDecision | undefined =>
  o.operatorImage === ''
    ? failed(
        'OperatorImageNotConfigured',
        'the operator image, which runs the snapshot agent, is not configured: set --operator-image or OPERATOR_IMAGE, as the chart does',
      )
    : undefined;

const named = (o: Observed): string => `EtcdCluster ${clusterNameOf(o.object)}`;

export const noCluster = (o: Observed): SnapshotDecision | undefined =>
  o.cluster ? undefined : failed('ClusterNotFound', `${named(o)} does not exist in this namespace`);

export const clusterBeingDeleted = (o: Observed): SnapshotDecision | undefined =>
  o.cluster?.metadata.deletionTimestamp === undefined
    ? undefined
    : failed('ClusterDeleted', `${named(o)} is being deleted`);

export const clusterPaused = (o: Observed): SnapshotDecision | undefined =>
  o.cluster && isPaused(o.cluster)
    ? failed(
        'ClusterParked',
        `${named(o)} is paused (replicas 0): no member runs to take a snapshot from. Set replicas, then create another EtcdSnapshot`,
      )
    : undefined;

export const notFormed = (o: Observed): SnapshotDecision | undefined =>
  o.cluster?.status?.clusterID === undefined
    ? waitFor(o, same('ClusterNotReady'), `${named(o)} has not formed yet: see its condition Available`)
    : undefined;

export const authNotOn = (o: Observed): SnapshotDecision | undefined =>
  o.cluster && wantsAuth(o.cluster.spec) && o.cluster.status?.authEnabled !== true
    ? waitFor(
        o,
        { meanwhile: 'WaitingForAuth', atLast: 'AuthLatchTimeout' },
        `auth of ${named(o)} is not enabled yet: see its condition AuthEnabled`,
      )
    : undefined;
