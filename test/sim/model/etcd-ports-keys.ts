/** Keys and leases of the model: what is refused for its size, for an alarm, and to whom. */
import type { EtcdError } from '../../../src/etcd/errors.ts';
import { type Bytes, bytes, type Keys, type KvPort, type Operation, type RangeAnswer } from '../../../src/etcd/kv.ts';
import type { LeasePort } from '../../../src/etcd/lease.ts';
import { ELECTION_MS, revoke } from './etcd.ts';
import { agreed, type Call, type Gate } from './etcd-gate.ts';
import { costOf } from './etcd-keys.ts';
import { sizeOf } from './etcd-node.ts';
import { said } from './etcd-said.ts';
import { minorOf } from './etcd-version.ts';

/** Of one request. */
const MOST_BYTES = 1.5 * 1024 ** 2;
export const DEFAULT_QUOTA = 2 * 1024 ** 3;
const KEYS = { who: 'user' } as const;

/** What an alarm refuses of a change: the one for corruption every, the one for space those that grow the database. */
function stopped({ node, state }: Call, grows: boolean): EtcdError | undefined {
  const alarm = state.alarms.stops(minorOf(node.version));
  return alarm === 'corrupt' || (alarm === 'noSpace' && grows) ? said(alarm) : undefined;
}

const may = ({ state, user }: Call, what: 'read' | 'write', keys: Keys): EtcdError | undefined =>
  user === undefined || state.users.may(user, what, keys) ? undefined : said('permissionDenied');

/** A database that would exceed its quota takes nothing more, and raises the alarm for all. */
function roomFor(call: Call, cost: number): EtcdError | undefined {
  const { node, disk, group } = call;
  if (cost > MOST_BYTES) return said('tooLarge');
  if (sizeOf(disk) + cost < (node.options.quotaBytes ?? DEFAULT_QUOTA)) return undefined;
  const alarm = { memberId: disk.id, alarm: 'noSpace' } as const;
  if (group.leader !== undefined) group.commit(({ alarms }) => alarms.raise(alarm));
  return said('noSpace');
}

const noKey = (key: Bytes): EtcdError | undefined =>
  key.length === 0 ? { kind: 'other', message: 'etcdserver: key is not provided' } : undefined;

function refusedPut(call: Call, key: Bytes, value: Bytes, lease: bigint): EtcdError | undefined {
  return (
    noKey(key) ??
    roomFor(call, costOf(key, value)) ??
    stopped(call, true) ??
    may(call, 'write', { key }) ??
    (lease !== 0n && !call.state.leases.has(lease) ? said('notFound') : undefined)
  );
}

function refusedOperation(call: Call, op: Operation): EtcdError | undefined {
  if (op.do === 'put') return refusedPut(call, op.key, op.value, op.lease ?? 0n);
  if (op.do === 'range') return may(call, 'read', op);
  return stopped(call, false) ?? may(call, 'write', op);
}

export const keysPort = (gate: Gate): KvPort => ({
  range: (ask, options) =>
    gate.ask<RangeAnswer>(ask, { ...KEYS, learner: options.serializable ?? false }, (call) => {
      if (!options.serializable && call.group.leader === undefined) return said('timeout');
      return may(call, 'read', options) ?? call.state.keys.range(options);
    }),
  put: (ask, key, value, { lease = 0n } = {}) =>
    gate.ask<bigint>(
      ask,
      KEYS,
      (call) => refusedPut(call, key, value, lease) ?? agreed(call, ({ keys }) => keys.put(key, value, lease)),
    ),
  delete: (ask, keys) =>
    gate.ask<bigint>(
      ask,
      KEYS,
      (call) =>
        stopped(call, false) ?? may(call, 'write', keys) ?? agreed(call, (state) => BigInt(state.keys.delete(keys))),
    ),
  txn: (ask, { when, do: steps, otherwise = [] }) =>
    gate.ask(ask, KEYS, (call) => {
      for (const op of [...steps, ...otherwise]) {
        const refused = refusedOperation(call, op);
        if (refused) return refused;
      }
      return agreed(call, ({ keys }) => {
        const succeeded = when.every((condition) => keys.holds(condition));
        const answers = keys.run(succeeded ? steps : otherwise);
        return { revision: keys.revision, succeeded, answers };
      });
    }),
  compact: (ask, revision) =>
    gate.ask<void>(ask, { who: 'root' }, (call) => {
      const refused = stopped(call, false);
      return refused ?? agreed(call, ({ keys }) => keys.compact(revision));
    }),
});

/** A lease lasts for one and a half elections at least. */
const LEAST_SECONDS = BigInt(Math.ceil((1.5 * ELECTION_MS) / 1_000));

export function leasesPort(gate: Gate): LeasePort {
  let count = 0n;
  const left = ({ group }: Call, id: bigint): bigint =>
    BigInt(Math.ceil(((group.leaseEnds.get(id) ?? 0) - gate.model.now) / 1_000));
  return {
    grant: (ask, ttlSeconds, id = 0n) =>
      gate.ask(ask, KEYS, (call) => {
        const refused = stopped(call, true);
        if (refused) return refused;
        const lease = id === 0n ? 0x1000n + ++count : id;
        if (call.state.leases.has(lease)) return said('alreadyExists');
        const given = ttlSeconds > LEAST_SECONDS ? ttlSeconds : LEAST_SECONDS;
        return agreed(call, ({ leases }) => {
          leases.set(lease, given);
          return { id: lease, ttlSeconds: given };
        });
      }),
    revoke: (ask, id) =>
      gate.ask<void>(ask, KEYS, (call) => {
        const refused = stopped(call, false) ?? (call.state.leases.has(id) ? undefined : said('notFound'));
        return refused ?? agreed(call, (state) => revoke(state, id));
      }),
    keepAlive: (ask, id) =>
      gate.ask(ask, KEYS, ({ group, state }) => {
        const ttlSeconds = state.leases.get(id);
        if (ttlSeconds === undefined) return said('notFound');
        if (group.leader === undefined) return said('timeout');
        group.leaseEnds.set(id, gate.model.now + Number(ttlSeconds) * 1_000);
        return { id, ttlSeconds };
      }),
    timeToLive: (ask, id, { keys = false } = {}) =>
      gate.ask(ask, KEYS, (call) => {
        const grantedSeconds = call.state.leases.get(id);
        if (grantedSeconds === undefined) return said('notFound');
        const held = keys ? call.state.keys.leased(id).map(({ key }) => bytes(key)) : [];
        return { id, ttlSeconds: left(call, id), grantedSeconds, keys: held };
      }),
    list: (ask) => gate.ask(ask, KEYS, ({ state }) => [...state.leases.keys()]),
  };
}
