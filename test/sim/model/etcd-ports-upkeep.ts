/** Status and maintenance of a member of the model. */
import { createHash } from 'node:crypto';
import type { Ask, MemberStatus } from '../../../src/etcd/client.ts';
import { type EtcdError, EtcdFailure, failure } from '../../../src/etcd/errors.ts';
import type { SnapshotStream } from '../../../src/etcd/snapshot.ts';
import type { UserMaintenance } from '../../support/etcd-client.ts';
import { agreed, type Call, type Gate } from './etcd-gate.ts';
import { voters } from './etcd-group.ts';
import { inUse, sizeOf } from './etcd-node.ts';
import { DEFAULT_QUOTA } from './etcd-ports-keys.ts';
import { etcdError, isRefusal } from './etcd-said.ts';
import { downgrade, minorOf, storageVersion } from './etcd-version.ts';

const WORKED_ON = { who: 'root' } as const;

function statusOf({ node, disk, group, state }: Call): MemberStatus {
  const modern = minorOf(node.version) >= 6;
  const written = storageVersion(node, state);
  return {
    clusterId: group.clusterId,
    memberId: disk.id,
    version: node.version,
    leader: group.leader ?? 0n,
    isLearner: state.members.get(disk.id)?.isLearner ?? false,
    alarms: state.alarms.all.map(({ memberId, alarm }) => ({ memberId, alarm: alarm.toUpperCase() })),
    revision: state.keys.revision,
    raftTerm: group.term,
    raftIndex: BigInt(disk.applied),
    raftAppliedIndex: BigInt(disk.applied),
    dbSize: sizeOf(disk),
    dbSizeInUse: inUse(disk),
    ...(modern && { dbSizeQuota: node.options.quotaBytes ?? DEFAULT_QUOTA }),
    ...(written !== undefined && { storageVersion: written }),
    ...(modern && state.downgradeTo !== undefined && { downgradeTo: state.downgradeTo }),
  };
}

export const upkeepPort = (gate: Gate): UserMaintenance => ({
  status: (ask) => gate.ask(ask, { who: 'user', learner: true }, statusOf),
  alarms: (ask) => gate.ask(ask, { who: 'user' }, (call) => agreed(call, ({ alarms }) => alarms.all)),
  activate: (ask, entry) => gate.ask(ask, WORKED_ON, (call) => agreed(call, ({ alarms }) => alarms.raise(entry))),
  disarm: (ask, entry) => gate.ask(ask, WORKED_ON, (call) => agreed(call, ({ alarms }) => alarms.disarm(entry))),
  defragment: (ask) =>
    gate.ask<void>(ask, WORKED_ON, ({ node }) => {
      const ms = gate.model.defragmentMs();
      gate.model.defragment(node, ms);
      return ms > ask.timeoutMs ? etcdError('timeout') : undefined; // it goes on without its client
    }),
  hashKV: (ask, revision) =>
    gate.ask(ask, WORKED_ON, (call) => {
      const { keys } = call.state;
      const hash = hashOf(call, revision);
      if (isRefusal(hash)) return hash;
      const upTo = revision === 0n ? keys.revision : revision;
      return {
        hash,
        compactRevision: keys.compacted,
        ...(minorOf(call.node.version) >= 6 && { hashRevision: upTo }),
        memberId: call.disk.id,
      };
    }),
  snapshot: (ask, { maxBytes = Number.MAX_SAFE_INTEGER } = {}) => snapshot(gate, ask, maxBytes),
  moveLeader: (ask, to) => gate.ask<void>(ask, WORKED_ON, (call) => moveLeader(gate, call, to)),
  downgrade: (ask, action, version = '') =>
    gate.ask(ask, WORKED_ON, ({ node, disk }) => downgrade(node, disk, action, version)),
});

function hashOf({ state: { keys }, disk }: Call, revision: bigint): number | EtcdError {
  const hash = keys.hash(revision === 0n ? keys.revision : revision);
  return typeof hash === 'number' && disk.corrupted ? hash ^ 1 : hash;
}

function moveLeader(gate: Gate, { group, disk }: Call, to: bigint): EtcdError | undefined {
  if (group.leader === undefined) return etcdError('timeout');
  if (group.leader !== disk.id) return etcdError('notLeader');
  if (!voters(group).some((voter) => voter.id === to))
    return { kind: 'notFound', message: 'etcdserver: bad leader transferee' };
  if (gate.model.live(group).some((node) => node.disk?.id === to)) {
    gate.model.lead(group, to);
    return undefined;
  }
  return etcdError('timeout');
}

/** As many pages as the database has, and their digest; a real etcd could not start from them. */
function snapshot(gate: Gate, ask: Ask, maxBytes: number): SnapshotStream {
  const stream = {
    totalBytes: undefined as number | undefined,
    receivedBytes: 0,
    storageVersion: undefined as string | undefined,
    digest: undefined as string | undefined,
    fileDigest: undefined as string | undefined,
    async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
      const answer = await gate.ask(ask, { who: 'root', learner: true }, ({ node, disk, state }) => ({
        size: sizeOf(disk),
        version: storageVersion(node, state),
      }));
      if (!answer.ok) throw new EtcdFailure(answer.error);
      const { size, version } = answer.value;
      stream.totalBytes = size;
      stream.storageVersion = version;
      if (size > maxBytes)
        throw failure('tooLarge', `the database has ${size} bytes, more than the allowed ${maxBytes}`);
      const pages = new Uint8Array(size);
      const digest = createHash('sha256').update(pages).digest();
      yield pages;
      stream.receivedBytes = size;
      stream.digest = digest.toString('hex');
      stream.fileDigest = createHash('sha256').update(pages).update(digest).digest('hex');
      yield digest;
    },
  };
  return stream;
}
