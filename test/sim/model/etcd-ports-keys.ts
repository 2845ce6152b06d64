/** The KV API of the model: what is refused for its size, for an alarm, or for missing permissions. */
import type { Ask } from '../../../src/etcd/client.ts';
import type { EtcdError, Result } from '../../../src/etcd/errors.ts';
import type { Bytes, RangeAnswer, RangeOptions } from '../../../src/etcd/keys.ts';
import type { UserKv } from '../../support/etcd-client.ts';
import { agreed, type Call, type Gate } from './etcd-gate.ts';
import { costOf } from './etcd-keys.ts';
import { sizeOf } from './etcd-node.ts';
import { etcdError } from './etcd-said.ts';
import { minorOf } from './etcd-version.ts';

/** Of one request. */
const MAX_REQUEST_BYTES = 1.5 * 1024 ** 2;
export const DEFAULT_QUOTA = 2 * 1024 ** 3;
const KEYS = { who: 'user' } as const;

/** What an alarm blocks: CORRUPT every change, NOSPACE those that grow the database. */
function stopped({ node, state }: Call, grows: boolean): EtcdError | undefined {
  const alarm = state.alarms.stops(minorOf(node.version));
  return alarm === 'corrupt' || (alarm === 'noSpace' && grows) ? etcdError(alarm) : undefined;
}

/** The operator grants no user but root permissions on keys. */
const may = ({ state, user }: Call): EtcdError | undefined =>
  user === undefined || state.users.isRoot(user) ? undefined : etcdError('permissionDenied');

/** A database that would exceed its quota refuses the change, and raises the alarm for the whole cluster. */
function roomFor(call: Call, cost: number): EtcdError | undefined {
  const { node, disk, group } = call;
  if (cost > MAX_REQUEST_BYTES) return etcdError('tooLarge');
  if (sizeOf(disk) + cost < (node.options.quotaBytes ?? DEFAULT_QUOTA)) return undefined;
  const alarm = { memberId: disk.id, alarm: 'noSpace' } as const;
  if (group.leader !== undefined) group.commit(({ alarms }) => alarms.raise(alarm));
  return etcdError('noSpace');
}

const noKey = (key: Bytes): EtcdError | undefined =>
  key.length === 0 ? { kind: 'other', message: 'etcdserver: key is not provided' } : undefined;

function refusedPut(call: Call, key: Bytes, value: Bytes): EtcdError | undefined {
  return noKey(key) ?? roomFor(call, costOf(key, value)) ?? stopped(call, true) ?? may(call);
}

const EVERY_KEY = { key: '', prefix: true, countOnly: true } as const;

export function keysPort(gate: Gate): UserKv {
  const range = (ask: Ask, options: RangeOptions): Promise<Result<RangeAnswer>> =>
    gate.ask<RangeAnswer>(ask, { ...KEYS, learner: options.serializable ?? false }, (call) => {
      if (!options.serializable && call.group.leader === undefined) return etcdError('timeout');
      return may(call) ?? call.state.keys.range(options);
    });
  return {
    range,
    read: async (ask) => {
      const answer = await range(ask, { key: '', serializable: true, countOnly: true });
      return answer.ok ? { ok: true, value: undefined } : answer;
    },
    count: async (ask, options) => {
      const answer = await range(ask, { ...EVERY_KEY, ...options });
      return answer.ok ? { ok: true, value: answer.value.count } : answer;
    },
    put: (ask, key, value) =>
      gate.ask<bigint>(
        ask,
        KEYS,
        (call) => refusedPut(call, key, value) ?? agreed(call, ({ keys }) => keys.put(key, value)),
      ),
    delete: (ask, keys) =>
      gate.ask<bigint>(
        ask,
        KEYS,
        (call) => stopped(call, false) ?? may(call) ?? agreed(call, (state) => BigInt(state.keys.delete(keys))),
      ),
    compact: (ask, revision) =>
      gate.ask<void>(ask, { who: 'root' }, (call) => {
        const refused = stopped(call, false);
        return refused ?? agreed(call, ({ keys }) => keys.compact(revision));
      }),
  };
}
