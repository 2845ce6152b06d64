/** Members of etcd that users added: the operator neither runs nor removes them. */
import { headlessServiceName } from '../../api/names.ts';
import { identity } from '../../domain/ownership.ts';
import { type ClusterFacts, type EtcdMemberEntry, entriesOf, memberOf } from './observed.ts';

/** Its address is outside the headless Service, so the operator never gave it out: a user mirrors the data, or moves it elsewhere. */
export function foreignMembers(o: ClusterFacts): readonly EtcdMemberEntry[] {
  const { name, namespace } = identity(o.cluster);
  const domain = `.${headlessServiceName(name)}.${namespace}.svc`;
  return (entriesOf(o) ?? []).filter(
    (entry) => !memberOf(o, entry) && !entry.peerURLs.some((url) => url.includes(domain)),
  );
}

/** The others that etcd lists. They alone count towards the number of members that the spec asks for. */
export function ownEntries(o: ClusterFacts): readonly EtcdMemberEntry[] {
  const foreign = foreignMembers(o);
  return (entriesOf(o) ?? []).filter((entry) => !foreign.includes(entry));
}

export function foreignMessage(o: ClusterFacts): string | undefined {
  const named = foreignMembers(o).map(
    ({ id, name, peerURLs, isLearner }) =>
      `${isLearner ? 'learner' : 'voter'} ${id}${name === '' ? '' : ` (${name})`} at ${peerURLs.join(', ')}`,
  );
  return named.length === 0
    ? undefined
    : `etcd lists members that the operator did not add: ${named.join('; ')}. It neither watches nor removes them, and the quorum needs the voters among them. Remove one that is not wanted with: etcdctl member remove <id>`;
}
