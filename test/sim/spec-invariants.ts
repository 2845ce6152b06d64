/** What must never happen between the spec of a cluster and what the operator does. */
import type { EtcdMember } from '../../src/api/etcd-member.ts';
import { FORBIDDEN } from './faults/stage.ts';
import type { OnWrite } from './invariants.ts';

/** Nothing of a spec with a forbidden image is applied: neither its image nor its replicas, of which 0 would stop every member. */
export const blockedEditsAreNotApplied: OnWrite = ({ world }, { verb, resource, ref, body }) => {
  const made = verb === 'create' && ['EtcdMember', 'Pod'].includes(resource.kind);
  if (made && JSON.stringify(body).includes(FORBIDDEN))
    return `${resource.kind} ${ref.name} is created with a forbidden image`;
  const { spec, status } = world.cluster ?? {};
  const pauses = (body as Partial<EtcdMember> | undefined)?.spec?.dormant === true;
  return pauses && spec?.image?.repository === FORBIDDEN && status?.observed?.replicas !== 0
    ? `${ref.name} is paused by an edit that is not allowed`
    : undefined;
};
