/** What the credentials chain needs to know of the cluster. */
import type { CredentialsFacts } from './credentials/observed.ts';
import { atVoters } from './etcd-calls.ts';
import { desired, entriesOf, type Gathered, isEntryOf, isFormed } from './observed.ts';
import { isHealthy } from './quorum.ts';

export function credentialsFacts(o: Gathered): CredentialsFacts {
  const entries = entriesOf(o) ?? [];
  const started = entries.filter(({ name }) => name !== ''); // others serve no client
  return {
    ...o,
    formed: isFormed(o),
    replicas: desired(o),
    pods: o.members.map(({ pod }) => pod),
    etcd: o.etcd.is,
    voters: atVoters(o),
    single: entries.length === 1,
    allHealthy:
      started.length > 0 &&
      started.every((entry) => o.members.some((m) => isEntryOf(entry, m.object) && isHealthy(o, m))),
  };
}
