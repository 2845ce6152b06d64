/** The Kubernetes objects of one cluster. What the user may not read is left out, with the permission that is missing. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import {
  clusterSelector,
  etcdClusters,
  etcdDefrags,
  etcdMembers,
  etcdSnapshotSchedules,
  etcdSnapshots,
  pdbName,
} from '../../api/names.ts';
import { controllerOf, isMemberOf } from '../../domain/ownership.ts';
import type { Event, Node, Pod, PodDisruptionBudget } from '../../gen/kube.ts';
import { type Client, listAll } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { Ref, Resource } from '../../kube/object.ts';
import { events, nodes, podDisruptionBudgets, pods } from '../../kube/resources.ts';
import type { Unread } from '../assess/facts.ts';
import { UserError } from '../context.ts';
import { explain } from './access-error.ts';

export const clusters: Resource<EtcdCluster> = etcdClusters;
export const members: Resource<EtcdMember> = etcdMembers;
export const snapshots: Resource<EtcdSnapshot> = etcdSnapshots;
export const defrags: Resource<EtcdDefrag> = etcdDefrags;
export const schedules: Resource<EtcdSnapshotSchedule> = etcdSnapshotSchedules;

type Reader = Pick<Client, 'get' | 'pages'>;

export async function readCluster(client: Reader, ref: Ref): Promise<EtcdCluster> {
  const cluster = await client.get(clusters, ref);
  if (cluster) return cluster;
  throw new UserError(
    `there is no EtcdCluster ${ref.name} in namespace ${ref.namespace}: choose another namespace with -n, or list all clusters with: kubectl etcd status -A`,
  );
}

export interface Member {
  readonly object: EtcdMember;
  readonly pod?: Pod;
}

/** EtcdMembers in the order of their names, each with the Pod that it controls. */
export async function readMembers(client: Reader, cluster: EtcdCluster): Promise<readonly Member[]> {
  const { namespace = '', name = '' } = cluster.metadata;
  const [objects, found] = await Promise.all([
    listAll(client, members, { namespace }),
    listAll(client, pods, { namespace, selector: clusterSelector(name) }),
  ]);
  return objects
    .filter((object) => isMemberOf(object, cluster))
    .map((object) => {
      const pod = found.find((each) => controllerOf(each)?.uid === object.metadata.uid);
      return pod ? { object, pod } : { object };
    })
    .toSorted((a, b) => ((a.object.metadata.name ?? '') < (b.object.metadata.name ?? '') ? -1 : 1));
}

export interface Surroundings {
  readonly schedules: readonly EtcdSnapshotSchedule[];
  readonly snapshots: readonly EtcdSnapshot[];
  readonly defrags: readonly EtcdDefrag[];
  readonly pdb?: PodDisruptionBudget;
  readonly events: readonly Event[];
  /** By the name of a node. */
  readonly zones: ReadonlyMap<string, string>;
  readonly unread: readonly Unread[];
}

const ZONE = 'topology.kubernetes.io/zone';

/** Everything else. None of it is needed to judge the health, so none of it may fail the command. */
export async function readSurroundings(
  client: Reader,
  cluster: EtcdCluster,
  found: readonly Member[],
): Promise<Surroundings> {
  const { namespace = '', name = '' } = cluster.metadata;
  const unread: Unread[] = [];
  const optional = async <T>(what: string, read: Promise<T>, instead: T): Promise<T> => {
    try {
      return await read;
    } catch (error) {
      // A kind that is not installed has no objects: an operator of an earlier version.
      if (!isNotFound(error)) unread.push({ what, message: explain(error) });
      return instead;
    }
  };
  const used = [...new Set(found.flatMap(({ pod }) => pod?.spec?.nodeName ?? []))];
  const [allSchedules, allSnapshots, allDefrags, pdb, allEvents, usedNodes] = await Promise.all([
    optional('schedules', listAll(client, schedules, { namespace }), []),
    optional('snapshots', listAll(client, snapshots, { namespace }), []),
    optional('defragmentations', listAll(client, defrags, { namespace }), []),
    optional(
      'the PodDisruptionBudget',
      client.get(podDisruptionBudgets, { namespace, name: pdbName(name) }),
      undefined,
    ),
    optional('Events', clusterEvents(client, cluster, found), []),
    optional('zones', Promise.all(used.map((node) => client.get(nodes, { namespace: '', name: node }))), []),
  ]);
  return {
    schedules: allSchedules.filter(({ spec }) => spec.clusterRef.name === name),
    snapshots: allSnapshots.filter(({ spec }) => spec.clusterRef.name === name),
    defrags: allDefrags.filter(({ spec }) => spec.clusterRef.name === name),
    ...(pdb && { pdb }),
    events: allEvents,
    zones: new Map(usedNodes.flatMap((node) => zoneOf(node))),
    unread,
  };
}

const zoneOf = (node: Node | undefined): readonly (readonly [string, string])[] => {
  const zone = node?.metadata.labels?.[ZONE];
  return zone === undefined ? [] : [[node?.metadata.name ?? '', zone]];
};

/** One request per name: a namespace may have thousands of Events of others. A Pod has the name of its EtcdMember. */
export async function clusterEvents(
  client: Reader,
  { metadata: { namespace = '', name = '' } }: EtcdCluster,
  found: readonly Member[],
): Promise<readonly Event[]> {
  const about = [name, ...found.map(({ object }) => object.metadata.name ?? '')];
  const lists = await Promise.all(
    about.map((each) => listAll(client, events, { namespace, fields: `regarding.name=${each}` })),
  );
  return lists.flat();
}
