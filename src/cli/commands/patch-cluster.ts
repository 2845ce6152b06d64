/** Edits of an EtcdCluster that overwrite no edit of another user. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { ApiError } from '../../kube/errors.ts';
import { type Context, UserError } from '../context.ts';
import { clusters, readCluster } from '../gather/objects.ts';

const MAX_TRIES = 5;
const CONFLICT = 409;

export interface ClusterEdit {
  readonly metadata?: object;
  readonly spec?: object;
}

/** With the resourceVersion that the plan was made from. A status that the operator has written since is no edit. */
export async function patchCluster(
  { client }: Pick<Context, 'client'>,
  planned: EtcdCluster,
  { metadata = {}, spec }: ClusterEdit,
): Promise<EtcdCluster> {
  const { namespace = '', name = '', generation } = planned.metadata;
  const ref = { namespace, name };
  let cluster = planned;
  for (let tries = 1; ; tries++) {
    const { resourceVersion } = cluster.metadata;
    try {
      return await client.patch(clusters, ref, {
        metadata: { ...metadata, resourceVersion },
        ...(spec && { spec }),
      });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== CONFLICT || tries === MAX_TRIES) throw error;
      cluster = await readCluster(client, ref);
      if (cluster.metadata.uid !== planned.metadata.uid || cluster.metadata.generation !== generation)
        throw new UserError(`${name} was edited meanwhile: look at it, and run the command again`, { cause: error });
    }
  }
}
