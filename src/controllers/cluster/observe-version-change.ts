/** What only a change of the minor needs to know: hashes of the members' data, and the snapshot that was taken before it. */
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { identity } from '../../domain/ownership.ts';
import { HASH_TIMEOUT_MS } from '../../domain/timing.ts';
import type { Ask } from '../../etcd/call.ts';
import type { MaintenancePort } from '../../etcd/maintenance.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { endpointsOf } from './etcd-calls.ts';
import { type ClusterFacts, type Gathered, type MemberHash, type MemberView, nameOf } from './observed.ts';
import { wantsHashes } from './rollout/preflight.ts';
import { isMinorChangeAhead, targetMinor } from './rollout/version-facts.ts';
import { nameFor } from './rollout/version-snapshot.ts';

export interface VersionPorts {
  readonly etcd: { readonly maintenance: Pick<MaintenancePort, 'hashKV'> };
  readonly snapshots: Store<EtcdSnapshot>;
}

export async function observeVersionChange(
  ports: VersionPorts,
  gathered: Gathered,
  ask: Omit<Ask, 'endpoint'>,
  revision: bigint,
): Promise<Pick<ClusterFacts, 'hashes' | 'versionSnapshot'>> {
  if (!isMinorChangeAhead(gathered)) return {};
  const { namespace } = identity(gathered.cluster);
  const snapshot = ports.snapshots.get(refKey({ namespace, name: nameFor(gathered, targetMinor(gathered)) }));
  const hashes = wantsHashes(gathered)
    ? { hashes: await Promise.all(gathered.members.map((m) => hashOf(ports, m, ask, revision))) }
    : {};
  return { ...hashes, ...(snapshot && { versionSnapshot: snapshot }) };
}

async function hashOf(
  { etcd }: VersionPorts,
  m: MemberView,
  ask: Omit<Ask, 'endpoint'>,
  revision: bigint,
): Promise<MemberHash> {
  const [endpoint] = endpointsOf(m);
  const member = nameOf(m);
  if (endpoint === undefined) return { member, hash: undefined, at: '' };
  const answer = await etcd.maintenance.hashKV({ ...ask, endpoint, timeoutMs: HASH_TIMEOUT_MS }, revision);
  if (!answer.ok) return { member, hash: undefined, at: '' };
  const { hash, compactRevision, hashRevision = revision } = answer.value;
  return { member, hash: hash.toString(16), at: `${hashRevision}, compacted up to ${compactRevision}` };
}
