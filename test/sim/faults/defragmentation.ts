/** Users ask for a defragmentation, and snapshots stream from members. */
import type { EtcdDefrag } from '../../../src/api/etcd-defrag.ts';
import type { EtcdSnapshot } from '../../../src/api/etcd-snapshot.ts';
import { API_VERSION, etcdDefrags, etcdSnapshots } from '../../../src/api/names.ts';
import { isFinished } from '../../../src/domain/defragmentation.ts';
import type { Resource } from '../../../src/kube/object.ts';
import { membersOf } from '../world/facts.ts';
import { NAMESPACE } from '../world/ground.ts';
import { CLUSTER, type World } from '../world/world.ts';
import { chosen, type Deeds } from './stage.ts';

const defrags: Resource<EtcdDefrag> = etcdDefrags;
const snapshots: Resource<EtcdSnapshot> = etcdSnapshots;

/** One after the other: each may wait for 45 minutes. */
function defragment({ ground, etcd, cluster }: World, ms: number): boolean {
  const all = ground.api.peek(defrags);
  if (!cluster || all.some((defrag) => !isFinished(defrag))) return false;
  etcd.defragmentMs = () => ms;
  const metadata = { name: `defrag-${all.length + 1}`, namespace: NAMESPACE };
  const spec = { clusterRef: { name: CLUSTER }, rule: { all: true } };
  ground.write((api) => api.create(defrags, { apiVersion: API_VERSION, kind: 'EtcdDefrag', metadata, spec }));
  return true;
}

/** An EtcdSnapshot that has finished has no Job, so the world needs no agents: only `streamsFrom` is read of it. */
function stream({ ground }: World, member: string | undefined, ms: number): boolean {
  if (member === undefined) return false;
  const ref = { namespace: NAMESPACE, name: `snapshot-${ground.api.peek(snapshots).length + 1}` };
  const spec = { clusterRef: { name: CLUSTER }, destination: {} };
  const status = { phase: 'Complete', streamsFrom: [member], startTime: String(ground.timeline.now) };
  const uid = `00000000-0000-4000-9000-${String(ground.timeline.now).padStart(12, '0')}`;
  const metadata = { ...ref, uid };
  // With its status at once: an operator that observes it without one starts its Job.
  ground.api.load(snapshots, { apiVersion: API_VERSION, kind: 'EtcdSnapshot', metadata, spec, status });
  ground.changedAt = ground.timeline.now;
  ground.timeline.after(ms, () => ground.patchStatus(snapshots, ref, { streamsFrom: null }));
  return true;
}

export const defragDeeds: Deeds<'defragment' | 'stream'> = {
  defragment: ({ world }, { ms }) => defragment(world, ms),
  stream: ({ world }, { n, ms }) => stream(world, chosen(membersOf(world), n)?.metadata.name, ms),
};
