/** Everything about one cluster: objects first, then the members, and what surrounds them at the same time. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { ClusterFacts, MemberFacts } from '../assess/facts.ts';
import type { Context } from '../context.ts';
import { askAll } from './members.ts';
import { readCluster, readMembers, readSurroundings, type Surroundings } from './objects.ts';
import { clusterSession } from './session.ts';

type Ports = Pick<Context, 'client' | 'reach' | 'now' | 'signal' | 'namespace'>;

export async function gatherCluster(context: Ports, name: string): Promise<ClusterFacts> {
  const cluster = await readCluster(context.client, { namespace: context.namespace, name });
  const members = await readMembers(context.client, cluster);
  const session = await clusterSession(context, cluster, members);
  try {
    const [answers, around] = await Promise.all([
      askAll(context, cluster, members, session),
      readSurroundings(context.client, cluster, members),
    ]);
    return factsOf(context.now(), cluster, answers, around, session.credentials);
  } finally {
    session.close();
  }
}

function factsOf(
  now: number,
  cluster: EtcdCluster,
  { members, list }: Pick<ClusterFacts, 'members' | 'list'>,
  { zones, ...around }: Surroundings,
  { certificates }: Pick<ClusterFacts, 'certificates'>,
): ClusterFacts {
  const placed = members.map((member): MemberFacts => {
    const zone = zones.get(member.pod?.spec?.nodeName ?? '');
    return zone === undefined ? member : { ...member, zone };
  });
  const unread = list.is === 'notAsked' ? [{ what: 'what the members respond', message: list.message }] : [];
  return {
    now,
    cluster,
    members: placed,
    list,
    ...(certificates && { certificates }),
    ...around,
    unread: [...unread, ...around.unread],
  };
}
