/** The model behind the ports of the etcd client. */
import type { Ask, MemberEntry, Membership } from '../../../src/etcd/client.ts';
import type { EtcdError, Result } from '../../../src/etcd/errors.ts';
import type { MembersPort } from '../../../src/etcd/members.ts';
import type { UserEtcd } from '../../support/etcd-client.ts';
import { type ModelEtcd, membershipOf } from './etcd.ts';
import { agreed, type Call, Gate } from './etcd-gate.ts';
import { mayAdd, mayPromote, mayRemove, mayUpdate, memberIdOf, type State } from './etcd-group.ts';
import { keysPort } from './etcd-ports-keys.ts';
import { upkeepPort } from './etcd-ports-upkeep.ts';
import { usersPort } from './etcd-ports-users.ts';
import { etcdError, isRefusal, type Refusal } from './etcd-said.ts';

export function modelPorts(model: ModelEtcd): UserEtcd {
  const gate = new Gate(model);
  const [members, maintenance, kv] = [membersPort(gate), upkeepPort(gate), keysPort(gate)];
  return {
    members,
    maintenance,
    kv,
    auth: usersPort(gate),
    status: (ask) => maintenance.status(ask),
    memberList: (ask) => members.list(ask, ask),
    put: (ask, key, value) => kv.put(ask, key, value),
    retain: () => {}, // the model has no sessions
    reset: () => {},
    forget: (cluster) => gate.forget(cluster),
  };
}

const listOf = ({ group: { clusterId }, state: { members } }: Call): Membership => membershipOf({ clusterId, members });

function membersPort(gate: Gate): MembersPort {
  /** As in etcd, the checks that need no consensus come first: they respond without a quorum, too. */
  const change = (
    ask: Ask,
    check: (call: Call) => Refusal | undefined,
    make: (state: State) => void,
  ): Promise<Result<Membership>> => gate.ask(ask, { who: 'root' }, (call) => changed(call, check(call), make));
  const peersOf = ({ node, disk }: Call) => gate.model.peers(node, disk);
  return {
    list: (ask, { linearizable }) =>
      gate.ask(ask, { who: 'user', whileDefragmenting: true }, (call) =>
        linearizable && call.group.leader === undefined ? etcdError('timeout') : listOf(call),
      ),
    add: (ask, peerURLs, { learner }) =>
      gate.ask(ask, { who: 'root' }, (call) => {
        const id = memberIdOf(peerURLs, 'added', Math.floor(gate.model.now / 1000));
        const added: MemberEntry = { id, name: '', peerURLs, clientURLs: [], isLearner: learner };
        const refused = mayAdd(call.group, peersOf(call), added, call.node.maxLearners);
        const answer = changed(call, refused, ({ members }) => members.set(id, added));
        return isRefusal(answer) ? answer : { ...answer, added };
      }),
    promote: (ask, id) =>
      change(
        ask,
        (call) => mayPromote(call.group, peersOf(call), id),
        ({ members }) => replace(members, id, { isLearner: false }),
      ),
    remove: (ask, id) =>
      change(
        ask,
        (call) => mayRemove(call.group, peersOf(call), id),
        ({ members, removed }) => {
          members.delete(id);
          removed.add(id);
        },
      ),
    update: (ask, id, peerURLs) =>
      change(
        ask,
        (call) => mayUpdate(call.group, id, peerURLs),
        ({ members }) => replace(members, id, { peerURLs }),
      ),
  };
}

function changed(call: Call, refused: Refusal | undefined, make: (state: State) => void): Membership | EtcdError {
  if (refused) return etcdError(refused);
  return agreed(call, (state) => {
    make(state);
    return membershipOf({ clusterId: call.group.clusterId, members: state.members });
  });
}

function replace(members: Map<bigint, MemberEntry>, id: bigint, changes: Partial<MemberEntry>): void {
  const entry = members.get(id);
  if (entry) members.set(id, { ...entry, ...changes });
}
