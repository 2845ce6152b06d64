/** A defragmentation takes a member away for as long as etcd rewrites its database. */
import { EVIDENCE } from '../../src/api/etcd-member.ts';
import type { EtcdSnapshot } from '../../src/api/etcd-snapshot.ts';
import { etcdSnapshots, ROLE_LABEL } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import type { Resource } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import type { OnChange, OnWrite, Scene } from './invariants.ts';
import { voters } from './model/etcd-group.ts';
import { groupOf, isClusterDeleted, membersOf } from './world/facts.ts';
import type { MembershipCall } from './world/operator-ports.ts';
import type { Run } from './world/pod-run.ts';

const snapshots: Resource<EtcdSnapshot> = etcdSnapshots;

const runAt = ({ world }: Scene, { ask }: MembershipCall): Run | undefined =>
  [...world.kubelet.runs.values()].find(({ ip }) => ask.endpoint.includes(`//${ip}:`));

/** Never two members away: no voter is defragmented while another one does not serve. */
const oneDefragmentation: OnChange = (scene, call) => {
  const { world, history } = scene;
  const group = groupOf(world);
  const id = runAt(scene, call)?.process?.disk?.id;
  if (call.method !== 'defragment' || !group || id === undefined) return undefined;
  const busy = world.etcd.nodes.find(({ disk, defragmentsUntil, running }) => {
    return running && disk?.group === group && disk.id !== id && defragmentsUntil > world.etcd.now;
  });
  if (busy) return `${runAt(scene, call)?.name} is defragmented while ${busy.name} is`;
  const away = voters(group).find((voter) => voter.id !== id && !history.wasReachableLately(voter.id));
  return away && `${runAt(scene, call)?.name} is defragmented while ${away.name} is down`;
};

/** etcd would wait for the end of the stream, and accept no writes meanwhile. */
const notWhileStreaming: OnChange = (scene, call) => {
  const { ground } = scene.world;
  if (call.method !== 'defragment') return undefined;
  const name = runAt(scene, call)?.name ?? '';
  // Within these five seconds it may have started after the operator had asked; its agent takes longer to start.
  const isOld = ({ status }: EtcdSnapshot): boolean => ground.timeline.now - Number(status?.startTime) > 5_000;
  const stream = ground.api.peek(snapshots).find((each) => each.status?.streamsFrom?.includes(name) && isOld(each));
  return stream && `${name} is defragmented while ${stream.metadata.name} streams from it`;
};

/** It serves nothing until etcd has finished, and is not lost. With failure evidence it is not judged by that. */
function leftAlone({ world }: Scene, disk: bigint | undefined, what: string): string | undefined {
  const node = world.etcd.nodes.find((each) => disk !== undefined && each.disk?.id === disk);
  const member = membersOf(world).find(({ metadata }) => metadata.name === node?.name);
  const reason = findCondition(member?.status?.conditions, 'Ready')?.reason ?? '';
  const isBusy = node?.running && !node.isolated && node.defragmentsUntil > world.etcd.now;
  return isBusy && !EVIDENCES.includes(reason) ? `${node.name} is ${what} while it is being defragmented` : undefined;
}
const EVIDENCES: readonly string[] = Object.values(EVIDENCE);

const notRemovedWhileDefragmented: OnChange = (scene, { method, args }) =>
  method === 'remove' ? leftAlone(scene, args[0] as bigint, 'removed') : undefined;

const notRestartedWhileDefragmented: OnWrite = (scene, { verb, resource, ref }) => {
  const { world } = scene;
  const { spec, status } = world.cluster ?? {};
  const isPausing = spec?.replicas === 0 || status?.observed?.replicas === 0;
  if (verb !== 'delete' || resource.kind !== 'Pod' || isPausing || isClusterDeleted(world)) return undefined;
  const run = [...world.kubelet.runs.values()].find(({ name }) => name === ref.name);
  return leftAlone(scene, run?.process?.disk?.id, 'restarted');
};

/** A member of several gets no new clients when it is defragmented. */
const outOfService: OnChange = (scene, call) => {
  const group = groupOf(scene.world);
  const run = runAt(scene, call);
  if (call.method !== 'defragment' || !group || voters(group).length < 2 || !run) return undefined;
  const pod = scene.world.ground.find(pods, run.name);
  return pod?.metadata.uid === run.uid && pod.metadata.labels?.[ROLE_LABEL] !== undefined
    ? `${run.name} is defragmented while clients are routed to it`
    : undefined;
};

const countDefragmentation: OnChange = ({ world }, { method }, answer) => {
  if (method === 'defragment') world.ground.count(answer?.ok ? 'defragmented' : 'defragmentation not answered');
  return undefined;
};

export const DEFRAGMENTATION = {
  beforeWrite: { notRestartedWhileDefragmented },
  beforeChange: { oneDefragmentation, notWhileStreaming, outOfService, notRemovedWhileDefragmented },
  afterChange: { countDefragmentation },
};
