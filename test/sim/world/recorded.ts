/** The state of another cluster as a world's start: its objects, its etcd, and the processes that ran. */
import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import type { EtcdMember } from '../../../src/api/etcd-member.ts';
import { etcdClusters, etcdMembers, volumeClaimName } from '../../../src/api/names.ts';
import { hexId } from '../../../src/etcd/ids.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import { persistentVolumeClaims, podDisruptionBudgets, pods, secrets, services } from '../../../src/kube/resources.ts';
import { ELECTION_MS } from '../model/etcd.ts';
import { Group, HEALTH_MS } from '../model/etcd-group.ts';
import { type Disk, newDisk } from '../model/etcd-node.ts';
import type { World } from './world.ts';

export interface RecordedEtcd {
  readonly clusterId: string;
  /** Absent: no member ran. */
  readonly leader?: string;
  readonly members: readonly {
    readonly id: string;
    /** Empty: it was never started. */
    readonly name: string;
    readonly peerURLs: readonly string[];
    readonly isLearner: boolean;
  }[];
  /** Absent: auth was disabled. */
  readonly rootPassword?: string;
}

export interface Recorded {
  /** The wall clock then: certificates are valid, and deadlines pend. */
  readonly at: number;
  readonly etcd?: RecordedEtcd | undefined;
  readonly objects: readonly KubeObject[];
}

const members: Resource<EtcdMember> = etcdMembers;
const clusters: Resource<EtcdCluster> = etcdClusters;
const RESOURCES: readonly Resource[] = [
  etcdClusters,
  etcdMembers,
  pods,
  persistentVolumeClaims,
  secrets,
  services,
  podDisruptionBudgets,
];

const idOf = (hex: string): bigint => BigInt(`0x${hex}`);

export function load(world: World, { objects, etcd }: Recorded): void {
  const { api } = world.ground;
  for (const object of objects) {
    const resource = RESOURCES.find(({ kind }) => kind === object.kind);
    if (!resource) throw new Error(`the model does not know the kind ${object.kind}`);
    api.load(resource, object);
  }
  const group = etcd && groupOf(world, etcd);
  for (const [i, member] of api.peek(members).entries()) resume(world, member, i, group);
  // They have been connected for a while, and have a leader.
  for (const node of world.etcd.nodes) node.startedAt = node.reachableSince = -2 * HEALTH_MS;
  if (group && etcd?.leader !== undefined) world.etcd.lead(group, idOf(etcd.leader));
  world.etcd.settle();
}

function groupOf(world: World, { clusterId, members: entries, rootPassword }: RecordedEtcd): Group {
  const founders = entries.map((entry) => ({ ...entry, id: idOf(entry.id), clientURLs: [] }));
  const group = new Group(idOf(clusterId), founders, -ELECTION_MS);
  const removed = world.ground.api
    .peek(members)
    .flatMap(({ status }) => (status?.memberID === undefined ? [] : [idOf(status.memberID)]))
    .filter((id) => !group.members.has(id));
  group.commit((state) => {
    for (const id of removed) state.removed.add(id);
    if (rootPassword === undefined) return;
    state.users.add('root', rootPassword);
    state.users.grantRole('root', 'root');
    state.users.enable();
  });
  for (const { id, name } of founders) if (name !== '') group.bootstrapped.add(id);
  world.etcd.groups.set(group.clusterId, group);
  const token = world.ground.api.peek(clusters)[0]?.status?.clusterToken ?? '';
  world.kubelet.bootstraps.push({ member: founders[0]?.name ?? '', token, group, restored: false, at: 0 });
  return group;
}

/** The only node of the recording becomes one for each member, and the PVCs are bound, as on a cluster with storage. */
function resume(world: World, member: EtcdMember, i: number, group: Group | undefined): void {
  const { ground, nodes, volumes, kubelet } = world;
  const { name = '' } = member.metadata;
  const disk = group && diskOf(group, member);
  const node = nodes.all[i % nodes.all.length]?.name ?? '';
  const claim = ground.find(persistentVolumeClaims, volumeClaimName(name));
  const pod = ground.find(pods, name);
  if (claim && (disk || pod)) {
    const voted = disk !== undefined && group?.members.get(disk.id)?.isLearner === false;
    Object.assign(volumes.bind(claim, node), { disk, voted });
  }
  if (pod?.spec?.nodeName === undefined) return;
  ground.api.load(pods, { ...pod, spec: { ...pod.spec, nodeName: node } });
  kubelet.takeOver(ground.find(pods, name) ?? pod, disk);
}

/** A member that was started, even one that has been removed since, has its data directory. */
function diskOf(group: Group, { metadata, status }: EtcdMember): Disk | undefined {
  const started = [...group.members.values()].find(({ name }) => name === metadata.name)?.id;
  const removed = [...group.removed].find((id) => hexId(id) === status?.memberID);
  const id = started ?? removed;
  return id === undefined ? undefined : { ...newDisk(group, id), applied: group.index };
}
