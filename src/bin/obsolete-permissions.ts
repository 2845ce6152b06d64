/**
 * The permissions of the Go operator, which an upgrade of its release keeps until this operator holds the Lease
 * (`go-permissions.yaml` of the chart). From then on the Go operator must not act, and this one does not need them.
 */
import type { Client } from '../kube/client.ts';
import { isForbidden } from '../kube/errors.ts';
import type { Ref, Resource } from '../kube/object.ts';
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from '../kube/resources.ts';
import { backoffMs } from '../lib/backoff.ts';
import { type Clock, sleep } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';

const BACKOFF = { firstMs: 1_000, maxMs: 60_000 };
/** API servers read changed roles seconds later; after that, the operator does not have the permission. */
const MAX_REFUSALS = 5;

/** Resolves when all four are deleted, or when the roles of this operator do not grant it; retries everything else until the signal. */
export async function removePermissions(
  client: Client,
  { name, namespace }: Ref,
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const find = async (resource: Resource, ref: Ref) => {
    const uid = (await client.get(resource, ref, signal))?.metadata.uid;
    return async () => {
      if (uid !== undefined) await client.delete(resource, ref, { uid }, signal);
    };
  };
  const [wide, own] = [
    { name, namespace: '' },
    { name, namespace },
  ];
  const removeAll = async (): Promise<void> => {
    // Both requests leave at once: where the release has no ClusterRole, the permission to delete the two ends with either of them.
    const both = await Promise.all([find(clusterRoleBindings, wide), find(clusterRoles, wide)]);
    await Promise.all(both.map((remove) => remove()));
    await (await find(roles, own))();
    // The last one: the chart takes it as the sign that something is left to delete.
    await (await find(roleBindings, own))();
  };
  for (let failures = 0, refusals = 0; !signal.aborted && refusals < MAX_REFUSALS; failures++) {
    try {
      await removeAll();
      log.info({ name }, 'deleted the permissions that the Go operator had until this one held the Lease');
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (isForbidden(error)) refusals += 1;
      const remedy = `kubectl delete clusterrolebinding,clusterrole ${name}; kubectl delete -n ${namespace} rolebinding,role ${name}`;
      log.warn(
        { error: String(error) },
        `the permissions of the Go operator are not deleted yet. To delete them by hand: ${remedy}`,
      );
    }
    await sleep(clock, backoffMs(failures, clock.random(), BACKOFF), signal);
  }
}
