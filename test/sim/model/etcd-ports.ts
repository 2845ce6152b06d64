/** The model behind the client's own ports. */
import type { Ask, MemberEntry, MemberStatus, Membership } from '../../../src/etcd/client.ts';
import type { EtcdError } from '../../../src/etcd/errors.ts';
import { bytes, type KeyValue, type RangeAnswer } from '../../../src/etcd/kv.ts';
import type { WorldPorts } from '../../contract/etcd-world.ts';
import { type ModelEtcd, type ModelNode, membershipOf } from './etcd.ts';
import {
  type Group,
  mayAdd,
  mayPromote,
  mayRemove,
  mayUpdate,
  memberIdOf,
  type Refusal,
  refusal,
  voters,
} from './etcd-group.ts';

type Disk = NonNullable<ModelNode['disk']>;

const isLearner = ({ group, id }: Disk): boolean => group.members.get(id)?.isLearner ?? false;

/** Refused by a learner, and without a leader: what every call but a few needs. */
function unable(disk: Disk): EtcdError | undefined {
  if (isLearner(disk)) return refusal('learnerRefused');
  return disk.group.leader === undefined ? refusal('timeout') : undefined;
}

/** The checks that need no agreement come first, as in etcd: they answer without a quorum too. */
function change(disk: Disk, refused: Refusal | undefined, make: (group: Group) => void): Membership | EtcdError {
  if (isLearner(disk)) return refusal('learnerRefused');
  if (refused) return refusal(refused);
  if (disk.group.leader === undefined) return refusal('timeout');
  make(disk.group);
  disk.group.index++;
  return membershipOf(disk.group);
}

const statusOf = ({ group, id, applied }: Disk): MemberStatus => ({
  clusterId: group.clusterId,
  memberId: id,
  version: '3.6.16',
  leader: group.leader ?? 0n,
  isLearner: group.members.get(id)?.isLearner ?? false,
  errors: group.leader === undefined ? ['etcdserver: no leader'] : [],
  revision: group.revision,
  raftTerm: group.term,
  raftIndex: BigInt(group.index),
  raftAppliedIndex: BigInt(applied),
  dbSize: 20_480,
  dbSizeInUse: 16_384,
  dbSizeQuota: 2_147_483_648,
  storageVersion: '3.6.0',
});

function keyValues(disk: Disk, key: string): readonly KeyValue[] {
  const seen = disk.group.keys.get(key)?.findLast(({ index }) => index <= disk.applied);
  if (!seen) return [];
  const { value, revision } = seen;
  return [{ key: bytes(key), value, createRevision: revision, modRevision: revision, version: 1n, lease: 0n }];
}

const text = (data: string | Uint8Array): string => (typeof data === 'string' ? data : new TextDecoder().decode(data));

export function modelPorts(model: ModelEtcd): WorldPorts {
  return {
    maintenance: {
      status: (ask) => model.ask(ask, (_, disk) => statusOf(disk)),
      moveLeader: (ask, to) => model.ask<void>(ask, (_, disk) => moveLeader(disk, to)),
    },
    kv: {
      put: (ask, key, value) =>
        model.ask<bigint>(ask, (_, disk) => unable(disk) ?? put(disk.group, text(key), bytes(value))),
      range: (ask, { key, serializable }) =>
        model.ask<RangeAnswer>(ask, (_, disk) => {
          const refused = serializable ? undefined : unable(disk);
          if (refused) return refused;
          const kvs = keyValues(disk, text(key));
          return { revision: disk.group.revision, kvs, count: BigInt(kvs.length), more: false };
        }),
    },
    members: membersOf(model),
  };
}

function membersOf(model: ModelEtcd): WorldPorts['members'] {
  const change_ = (
    ask: Ask,
    check: (node: ModelNode, disk: Disk) => Refusal | undefined,
    make: (group: Group) => void,
  ) => model.ask<Membership>(ask, (node, disk) => change(disk, check(node, disk), make));
  return {
    list: (ask, { linearizable }) =>
      model.ask<Membership>(ask, (_, disk) => {
        if (isLearner(disk)) return refusal('learnerRefused');
        return linearizable && disk.group.leader === undefined ? refusal('timeout') : membershipOf(disk.group);
      }),
    add: (ask, peerURLs, { learner }) =>
      model.ask(ask, (node, disk) => {
        const id = memberIdOf(peerURLs, 'added', Math.floor(model.now / 1000));
        const added: MemberEntry = { id, name: '', peerURLs, clientURLs: [], isLearner: learner };
        const { maxLearners } = node;
        const refused = mayAdd(disk.group, model.peers(node, disk), { peerURLs, learner, maxLearners });
        const answer = change(disk, refused, ({ members }) => members.set(id, added));
        return 'kind' in answer ? answer : { ...answer, added };
      }),
    promote: (ask, id) =>
      change_(
        ask,
        (node, disk) => mayPromote(disk.group, model.peers(node, disk), id),
        ({ members }) => replace(members, id, { isLearner: false }),
      ),
    remove: (ask, id) =>
      change_(
        ask,
        (node, disk) => mayRemove(disk.group, model.peers(node, disk), id),
        ({ members, removed }) => {
          members.delete(id);
          removed.add(id);
        },
      ),
    update: (ask, id, peerURLs) =>
      change_(
        ask,
        (_, disk) => mayUpdate(disk.group, id, peerURLs),
        ({ members }) => replace(members, id, { peerURLs }),
      ),
  };
}

function moveLeader({ group, id }: Disk, to: bigint): EtcdError | undefined {
  if (group.leader === undefined) return refusal('timeout');
  if (group.leader !== id) return refusal('notLeader');
  if (!voters(group).some((voter) => voter.id === to))
    return { kind: 'notFound', message: 'etcdserver: bad leader transferee' };
  group.leader = to;
  group.term++;
  return undefined;
}

function put(group: Group, key: string, value: Uint8Array): bigint {
  const revision = ++group.revision;
  const history = group.keys.get(key) ?? [];
  history.push({ value, index: ++group.index, revision });
  group.keys.set(key, history);
  return revision;
}

function replace(members: Map<bigint, MemberEntry>, id: bigint, changes: Partial<MemberEntry>): void {
  const entry = members.get(id);
  if (entry) members.set(id, { ...entry, ...changes });
}
