/** What the chart's roles grant: an API server with RBAC would refuse everything else. */
import { leaderElectionRbac, rbac } from '../../src/bin/rbac.ts';
import type { Resource } from '../../src/kube/object.ts';
import type { Write } from './world/operator-ports.ts';

const GRANTED = [...rbac, ...leaderElectionRbac];

export const isGranted = (verb: string, { group, plural }: Pick<Resource, 'group' | 'plural'>, part = ''): boolean =>
  GRANTED.some(
    ({ apiGroups, resources, verbs }) =>
      apiGroups?.includes(group) && resources?.includes(`${plural}${part}`) && verbs.includes(verb),
  );

/** Server-side apply is a PATCH that may create. */
export function writesAreGranted(_: unknown, { verb, resource }: Write): string | undefined {
  const isStatus = verb === 'status';
  const needed = isStatus || verb === 'apply' ? 'patch' : verb;
  return isGranted(needed, resource, isStatus ? '/status' : '')
    ? undefined
    : `the operator may not ${needed} ${resource.plural}${isStatus ? '/status' : ''}`;
}
