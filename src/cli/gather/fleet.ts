/** All clusters of a namespace, or of all namespaces: one request for every 500 of them, and none to a member. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { type Client, listAll } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { UserError } from '../context.ts';
import { clusters } from './objects.ts';

export async function gatherFleet(
  client: Pick<Client, 'pages'>,
  namespace: string | undefined,
): Promise<readonly EtcdCluster[]> {
  try {
    return await listAll(client, clusters, namespace === undefined ? {} : { namespace });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new UserError('the API server does not know EtcdClusters: install the operator with its CRDs', {
      cause: error,
    });
  }
}
