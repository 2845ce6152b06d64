/** Names of objects, for completion. */
import type { Client } from '../../kube/client.ts';
import { listAll } from '../../kube/client.ts';
import type { KubeObject, Resource } from '../../kube/object.ts';
import { pods } from '../../kube/resources.ts';
import type { Listed } from '../completion.ts';
import { clusters, members, schedules, snapshots } from './objects.ts';

const NAMESPACES: Resource<KubeObject> = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace' };

const KINDS: Readonly<Record<Listed, Resource<KubeObject>>> = {
  cluster: clusters,
  member: members,
  schedule: schedules,
  snapshot: snapshots,
  pod: pods,
  namespace: NAMESPACES,
};

export async function namesOf(
  client: Pick<Client, 'pages'>,
  kind: Listed,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const where = kind === 'namespace' ? {} : { namespace };
  const found = await listAll(client, KINDS[kind], { ...where, signal });
  return found.map(({ metadata }) => metadata.name ?? '');
}
