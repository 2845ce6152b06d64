/** What only a change of the minor needs to know: hashes of the members' data, and the snapshot that was taken before it. */
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { identity } from '../../domain/ownership.ts';
import { HASH_INTERVAL_MS, HASH_TIMEOUT_MS } from '../../domain/timing.ts';
import type { Ask } from '../../etcd/call.ts';
import type { MaintenancePort } from '../../etcd/maintenance.ts';
import { keyOf, refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { endpointsOf } from './etcd-calls.ts';
import { type ClusterFacts, type Gathered, type MemberHash, type MemberView, nameOf } from './observed.ts';
import { wantsHashes } from './rollout/preflight.ts';
import { isMinorChangeAhead, targetMinor } from './rollout/version-facts.ts';
import { chosenSnapshot, snapshotNames } from './rollout/version-snapshot.ts';
import { withApplicableSpec } from './spec-drift.ts';

interface Asked {
  readonly at: number;
  readonly about: string;
  readonly hashes: readonly MemberHash[];
}

/** The hashes of members' data, and when they were asked for: every event causes a reconcile, and etcd applies no write while it hashes. */
export class HashLedger {
  readonly #asked = new Map<string, Asked>();

  /** The last hashes, or new ones if those are of other members or old. `about`: whose data is compared, and for what. */
  async hashes(
    key: string,
    about: string,
    now: number,
    ask: () => Promise<readonly MemberHash[]>,
  ): Promise<readonly MemberHash[]> {
    const last = this.#asked.get(key);
    if (last?.about === about && Math.abs(now - last.at) < HASH_INTERVAL_MS) return last.hashes;
    this.#asked.set(key, { at: now, about, hashes: [] }); // members that were asked in vain have hashed all the same
    const hashes = await ask();
    this.#asked.set(key, { at: now, about, hashes });
    return hashes;
  }

  forget(key: string): void {
    this.#asked.delete(key);
  }
}

export interface VersionPorts {
  readonly etcd: { readonly maintenance: Pick<MaintenancePort, 'hashKV'> };
  readonly snapshots: Store<EtcdSnapshot>;
  readonly hashes: Pick<HashLedger, 'hashes' | 'forget'>;
}

export async function observeVersionChange(
  ports: VersionPorts,
  gathered: Gathered,
  ask: Omit<Ask, 'endpoint'>,
): Promise<Pick<ClusterFacts, 'hashes' | 'versionSnapshot'>> {
  const o = withApplicableSpec(gathered);
  if (!isMinorChangeAhead(o)) return {};
  const { namespace } = identity(o.cluster);
  const stored = snapshotNames(o).flatMap((name) => ports.snapshots.get(refKey({ namespace, name })) ?? []);
  const snapshot = chosenSnapshot(o, stored);
  const hashes = wantsHashes(o) ? { hashes: await hashesOf(ports, o, ask, BigInt(o.revision ?? 0)) } : {};
  return { ...hashes, ...(snapshot && { versionSnapshot: snapshot }) };
}

function hashesOf(
  ports: VersionPorts,
  o: ClusterFacts,
  ask: Omit<Ask, 'endpoint'>,
  revision: bigint,
): Promise<readonly MemberHash[]> {
  const uids = o.members.map(({ object }) => object.metadata.uid);
  const about = [o.cluster.metadata.uid, targetMinor(o), ...uids].join(' ');
  return ports.hashes.hashes(keyOf(o.cluster), about, o.now, () =>
    Promise.all(o.members.map((m) => hashOf(ports, m, ask, revision))),
  );
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
