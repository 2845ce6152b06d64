/** Whether a member can be replaced without an outage. */
import type { ClusterFacts } from './facts.ts';
import { isHealthy, listedMembers, memberOf, quorum } from './quorum.ts';

/** Why not; `undefined` when it can. Of an only member, the operator lets a successor join first. */
export function replacementRefusal(facts: ClusterFacts, name: string): string | undefined {
  if (facts.cluster.spec.suspend) return 'the operator is suspended for this cluster, and would not replace the member';
  const votes = quorum(facts);
  if (!votes || votes.source !== 'etcd') return 'the members could not be asked whether a quorum remains without it';
  const entry = listedMembers(facts).find((each) => memberOf(facts, each)?.object.metadata.name === name);
  const serves = entry !== undefined && isHealthy(facts, entry);
  if (votes.voters === 1) return serves ? undefined : 'the only voter is not healthy: no other could copy its data';
  const remaining = votes.healthy - (serves ? 1 : 0);
  return remaining < votes.needed
    ? `${votes.healthy} of ${votes.voters} voters are healthy, and ${votes.needed} are needed: without it, no quorum would remain`
    : undefined;
}
