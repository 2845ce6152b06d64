/** A user suspends a cluster to work on it by hand: the operator must not touch it meanwhile. */
import type { OnChange, OnWrite, Scene } from './invariants.ts';
import { isDeleting } from './world/facts.ts';

/** Requests to etcd that change nothing; `downgrade` only validates. */
const QUESTIONS = ['list', 'status', 'alarms', 'hashKV', 'downgrade', 'authenticate', 'rolesOf', 'roles', 'read'];

/** On the cluster: the virtual time at which a user suspended it. */
export const SUSPENDED_AT = 'suspended-at';

/** For longer than a reconcile takes and the cache of an operator may be behind. */
function isSuspended({ world, history }: Scene): boolean {
  const { cluster, ground } = world;
  if (cluster?.spec.suspend !== true || isDeleting(cluster)) return false;
  return ground.timeline.now - Number(cluster.metadata.annotations?.[SUSPENDED_AT]) > history.windowMs;
}

/** Of a suspended cluster only statuses are written, and Events. */
export const suspendedIsNotWritten: OnWrite = (scene, { verb, resource, ref }) =>
  isSuspended(scene) && verb !== 'status' && resource.kind !== 'Event'
    ? `${verb} of ${resource.kind} ${ref.name} while the cluster is suspended`
    : undefined;

/** The members of a suspended cluster get no request that changes something. */
export const suspendedIsOnlyAsked: OnChange = (scene, { method }) =>
  isSuspended(scene) && !QUESTIONS.includes(method) ? `etcd ${method} while the cluster is suspended` : undefined;
