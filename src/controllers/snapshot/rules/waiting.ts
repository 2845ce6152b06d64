/** Rules about the cluster: what can never become a snapshot fails at once, and what may soon be possible is waited for. */
import { wantsAuth } from '../../../api/tls.ts';
import { clusterNameOf, type Observed } from '../observed.ts';
import { type FailedReason, failed, type Said } from '../status.ts';
import { waitFor } from '../waiting.ts';

const same = (reason: FailedReason) => ({ meanwhile: reason, atLast: reason });

export const noImage = (o: Observed): Said | undefined =>
  o.operatorImage === ''
    ? failed(
        'OperatorImageNotConfigured',
        'the operator does not know its own image, which takes snapshots: start it with --operator-image or OPERATOR_IMAGE, as its chart does',
      )
    : undefined;

const named = (o: Observed): string => `EtcdCluster ${clusterNameOf(o.object)}`;

export const noCluster = (o: Observed): Said | undefined =>
  o.cluster ? undefined : failed('ClusterNotFound', `${named(o)} does not exist in this namespace`);

export const clusterBeingDeleted = (o: Observed): Said | undefined =>
  o.cluster?.metadata.deletionTimestamp === undefined
    ? undefined
    : failed('ClusterDeleted', `${named(o)} is being deleted`);

export const clusterPaused = (o: Observed): Said | undefined =>
  o.cluster?.spec.replicas === 0
    ? failed(
        'ClusterParked',
        `${named(o)} is parked: no member runs that a snapshot could be taken from. Set its replicas, and create another EtcdSnapshot`,
      )
    : undefined;

export const notFormed = (o: Observed): Said | undefined =>
  o.cluster?.status?.clusterID === undefined
    ? waitFor(o, same('ClusterNotReady'), `${named(o)} has not formed yet: see its condition Available`)
    : undefined;

export const authNotOn = (o: Observed): Said | undefined =>
  o.cluster && wantsAuth(o.cluster.spec) && o.cluster.status?.authEnabled !== true
    ? waitFor(
        o,
        { meanwhile: 'WaitingForAuth', atLast: 'AuthLatchTimeout' },
        `clients of ${named(o)} are to log in, and that is not turned on yet: see its condition AuthEnabled`,
      )
    : undefined;
