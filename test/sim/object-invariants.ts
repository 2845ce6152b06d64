/** What must never happen to objects: to foreign ones, to members by an edit that is not allowed, to Pods without a successor. */
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import type { EtcdMember } from '../../src/api/etcd-member.ts';
import { FORBIDDEN } from './faults/stage.ts';
import type { OnWrite } from './invariants.ts';
import { groupOf, isDeleting, isReachable } from './world/facts.ts';

/** Foreign objects are neither changed nor deleted. */
export const foreignIsLeftAlone: OnWrite = ({ world }, { verb, resource, ref }) => {
  if (verb === 'create' || resource.kind === 'Event') return undefined;
  const object = world.ground.find(resource, ref.name, ref.namespace);
  return object?.metadata.labels?.['foreign'] === 'true'
    ? `${verb} of ${resource.kind} ${ref.name}, which is a foreign object`
    : undefined;
};

/** Nothing of a spec with a forbidden image is applied: neither its image nor its replicas, of which 0 would stop every member. */
export const blockedEditsAreNotApplied: OnWrite = ({ world }, { verb, resource, ref, body }) => {
  const made = verb === 'create' && ['EtcdMember', 'Pod'].includes(resource.kind);
  if (made && JSON.stringify(body).includes(FORBIDDEN))
    return `${resource.kind} ${ref.name} is created with a forbidden image`;
  const { observed } = (body as Partial<EtcdCluster> | undefined)?.status ?? {};
  if (observed?.image?.repository === FORBIDDEN) return 'a spec with a forbidden image is recorded as the target';
  const { spec, status } = world.cluster ?? {};
  const pauses = (body as Partial<EtcdMember> | undefined)?.spec?.dormant === true;
  return pauses && spec?.image?.repository === FORBIDDEN && status?.observed?.replicas !== 0
    ? `${ref.name} is paused by an edit that is not allowed`
    : undefined;
};

/** What the operator asked before the policy changed may be executed until then: a request takes ten seconds, the steps of a plan fifteen. */
const UNAWARE_MS = 40_000;

/** No Pod of a voter is taken away for a restart while its successor would be refused. */
export const successorsCouldRun: OnWrite = ({ world }, { verb, resource, ref }) => {
  if (verb !== 'delete' || resource.kind !== 'Pod' || !world.ground.refusesPods(UNAWARE_MS)) return undefined;
  const { cluster } = world;
  if (!cluster || isDeleting(cluster) || cluster.status?.observed?.replicas === 0) return undefined; // no successor is wanted
  const group = groupOf(world);
  const id = [...world.kubelet.runs.values()].find(({ name }) => name === ref.name)?.process?.disk?.id;
  return group && id !== undefined && isReachable(world, group, id) && group.members.get(id)?.isLearner === false
    ? `Pod ${ref.name} is deleted, and its successor would be refused`
    : undefined;
};
