/** What users do to objects: edit them, delete them, and create foreign objects under names that the operator needs. */
import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import type { EtcdMember } from '../../../src/api/etcd-member.ts';
import {
  clientServiceName,
  etcdClusters,
  etcdMembers,
  headlessServiceName,
  memberName,
  pdbName,
  QUARANTINE_LABEL,
  volumeClaimName,
} from '../../../src/api/names.ts';
import { controllerOf, isMemberOf } from '../../../src/domain/ownership.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import { persistentVolumeClaims, podDisruptionBudgets, pods, services } from '../../../src/kube/resources.ts';
import { SUSPENDED_AT } from '../suspend-invariants.ts';
import { isDeleting, membersOf } from '../world/facts.ts';
import { NAMESPACE, refTo } from '../world/ground.ts';
import type { Run } from '../world/pod-run.ts';
import { CLUSTER, type World } from '../world/world.ts';
import { holdWatch } from './processes.ts';
import { chosen, type Deeds, FORBIDDEN, runs, type Stage } from './stage.ts';

const clusters: Resource<EtcdCluster> = etcdClusters;
const members: Resource<EtcdMember> = etcdMembers;

function remove({ scene, world }: Stage, resource: Resource, object: KubeObject | undefined): boolean {
  if (!object || isDeleting(object)) return false;
  const { uid = '' } = object.metadata;
  scene.deletedByPerson.add(uid);
  world.ground.write((api) => api.delete(resource, refTo(object), { uid }));
  return true;
}

const podOf = (world: World, run: Run | undefined): KubeObject | undefined => {
  const pod = run && world.ground.find(pods, run.name);
  return pod?.metadata.uid === run?.uid ? pod : undefined;
};

function edit({ scene, world }: Stage, spec: Partial<EtcdCluster['spec']>): boolean {
  const { cluster, ground } = world;
  if (!cluster || isDeleting(cluster)) return false;
  scene.edited ||= 'options' in spec;
  ground.patch(clusters, refTo(cluster), { spec });
  return true;
}

/** A user resumes the cluster after this time, or when the faults end. */
function suspend(stage: Stage, ms: number): boolean {
  const { world, undo } = stage;
  const { cluster, ground } = world;
  if (!cluster || cluster.spec.suspend === true || !edit(stage, { suspend: true })) return false;
  const annotations = { [SUSPENDED_AT]: String(ground.timeline.now) };
  ground.patch(clusters, refTo(cluster), { metadata: { annotations } });
  const resume = (): void => {
    if (undo.delete(resume)) edit(stage, { suspend: false });
  };
  undo.add(resume);
  ground.timeline.after(ms, resume);
  return true;
}

const FOREIGN: readonly Resource[] = [services, podDisruptionBudgets, pods, persistentVolumeClaims];

/** The name that the operator needs now, or next. */
function wantedName(world: World, what: string): readonly [Resource, string] {
  const { metadata, status } = world.cluster ?? { metadata: {}, status: {} };
  const next = memberName(CLUSTER, metadata.uid ?? '', (status?.membersNamed ?? 0) + 1);
  switch (what) {
    case 'headless':
      return [services, headlessServiceName(CLUSTER)];
    case 'client':
      return [services, clientServiceName(CLUSTER)];
    case 'budget':
      return [podDisruptionBudgets, pdbName(CLUSTER)];
    case 'pod':
      return [pods, next];
    default:
      return [persistentVolumeClaims, volumeClaimName(next)];
  }
}

function makeForeign({ ground }: World, resource: Resource, name: string): boolean {
  if (ground.find(resource, name)) return false;
  const { kind } = resource;
  const metadata = { name, namespace: NAMESPACE, labels: { foreign: 'true' } };
  const apiVersion = kind === 'PodDisruptionBudget' ? 'policy/v1' : 'v1';
  ground.write((api) => api.create(resource, { apiVersion, kind, metadata }));
  return true;
}

const isForeign = ({ metadata }: KubeObject): boolean => metadata.labels?.['foreign'] === 'true';

/** Deletes the foreign objects again. */
export function removeForeign({ ground }: World): void {
  for (const resource of FOREIGN)
    for (const object of ground.api.peek(resource))
      if (isForeign(object))
        ground.write((api) => api.delete(resource, refTo(object), { uid: object.metadata.uid ?? '' }));
}

/** A user deletes members without an owner whose cluster was deleted before it adopted them. */
export function removeOrphans({ ground, cluster }: World): void {
  for (const member of ground.api.peek(members))
    if (controllerOf(member) === undefined && !(cluster && isMemberOf(member, cluster)))
      ground.write((api) => api.delete(members, refTo(member), { uid: member.metadata.uid ?? '' }));
}

type Kinds =
  | 'refusePods'
  | 'deletePod'
  | 'deleteAllPods'
  | 'evictPod'
  | 'deleteMember'
  | 'deleteAllMembers'
  | 'stripOwner'
  | 'deleteClaim'
  | 'unlabelClaim'
  | 'deleteService'
  | 'deleteBudget'
  | 'foreign'
  | 'scale'
  | 'edit'
  | 'suspend'
  | 'editForbidden'
  | 'deleteCluster'
  | 'createAgain';

export const objectDeeds: Deeds<Kinds> = {
  refusePods: ({ world: { ground } }, { ms }) => {
    const { now } = ground.timeline;
    ground.podsRefused = { since: now, until: now + ms };
    return true;
  },
  deletePod: (stage, { n }) => remove(stage, pods, podOf(stage.world, chosen(runs(stage.world), n))),
  deleteAllPods: (stage) =>
    runs(stage.world)
      .map((run) => remove(stage, pods, podOf(stage.world, run)))
      .includes(true),
  evictPod: ({ world }, { n }) => {
    const pod = podOf(world, chosen(runs(world), n));
    if (pod) world.ground.write((api) => api.evict(refTo(pod), { uid: pod.metadata.uid ?? '' }));
    return pod !== undefined;
  },
  deleteMember: (stage, { n }) => remove(stage, etcdMembers, chosen(membersOf(stage.world), n)),
  deleteAllMembers: (stage) =>
    membersOf(stage.world)
      .map((member) => remove(stage, etcdMembers, member))
      .includes(true),
  stripOwner: ({ world }, { n, all }) => {
    const owned = membersOf(world).filter((member) => controllerOf(member) !== undefined);
    const one = chosen(owned, n);
    if (!world.cluster || !one) return false;
    for (const member of all ? owned : [one])
      world.ground.patch(etcdMembers, refTo(member), { metadata: { ownerReferences: null } });
    return true;
  },
  deleteClaim: (stage, { n }) =>
    remove(stage, persistentVolumeClaims, chosen(stage.world.ground.api.peek(persistentVolumeClaims), n)),
  unlabelClaim: ({ world }, { n }) => {
    // The label identifies a foreign PVC when it is to be deleted, and a retained PVC after everything else was deleted.
    const isKnown = (one: KubeObject): boolean =>
      isForeign(one) || one.metadata.labels?.[QUARANTINE_LABEL] !== undefined;
    const claim = chosen(
      world.ground.api.peek(persistentVolumeClaims).filter((one) => !isKnown(one)),
      n,
    );
    if (!claim?.metadata.labels) return false;
    world.ground.patch(persistentVolumeClaims, refTo(claim), { metadata: { labels: null } });
    return true;
  },
  deleteService: (stage, { which }) =>
    remove(stage, services, stage.world.ground.find(services, wantedName(stage.world, which)[1])),
  deleteBudget: (stage) =>
    remove(stage, podDisruptionBudgets, stage.world.ground.find(podDisruptionBudgets, pdbName(CLUSTER))),
  foreign: ({ world }, { what }) => makeForeign(world, ...wantedName(world, what)),
  scale: (stage, { replicas }) => edit(stage, { replicas }),
  edit: (stage, { quota }) => edit(stage, { options: { quotaBackendBytes: quota * 1024 * 1024 } }),
  suspend: (stage, { ms }) => suspend(stage, ms),
  editForbidden: (stage, { replicas }) => {
    const { ground } = stage.world;
    stage.undo.add(() => {
      const { cluster } = stage.world;
      if (cluster && !isDeleting(cluster)) ground.patch(clusters, refTo(cluster), { spec: { image: null } });
    });
    return edit(stage, { replicas, image: { repository: FORBIDDEN } });
  },
  deleteCluster: (stage, { unseenMs }) => {
    if (unseenMs > 0) holdWatch(stage, 'etcdclusters', unseenMs);
    return remove(stage, clusters, stage.world.cluster);
  },
  createAgain: ({ world, scene, spec }) => {
    if (world.cluster) return false;
    scene.servedAt = undefined;
    scene.edited = scene.connected = false;
    world.writer.startAgain();
    world.createCluster(spec);
    return true;
  },
};
