/** Leases: keys that go when nobody keeps them. */
import { Lease } from '../gen/etcd/lease_pb.ts';
import type { Ask, Caller } from './call.ts';
import { type Answer, classify, failure } from './errors.ts';

export interface LeaseGrant {
  readonly id: bigint;
  /** What etcd gave, which is never less than one and a half election time-outs. */
  readonly ttlSeconds: bigint;
}

export interface LeaseState extends LeaseGrant {
  readonly grantedSeconds: bigint;
  readonly keys: readonly Uint8Array[];
}

export interface LeasePort {
  grant(ask: Ask, ttlSeconds: bigint, id?: bigint): Promise<Answer<LeaseGrant>>;
  revoke(ask: Ask, id: bigint): Promise<Answer<void>>;
  /** Once. Whoever holds a lease calls this again before a third of the time has passed. */
  keepAlive(ask: Ask, id: bigint): Promise<Answer<LeaseGrant>>;
  timeToLive(ask: Ask, id: bigint, options?: { readonly keys?: boolean }): Promise<Answer<LeaseState>>;
  list(ask: Ask): Promise<Answer<readonly bigint[]>>;
}

/** etcd tells that a lease is gone by a time to live of 0 or less, and by an error elsewhere: here it is always the error. */
const gone = (id: bigint): never => {
  throw failure('notFound', `there is no lease ${id.toString(16)}`);
};

export const leasePort = (caller: Caller): LeasePort => ({
  grant: (ask, TTL, ID = 0n) =>
    caller.unary(ask, Lease.method.leaseGrant, { TTL, ID }, (answer) => {
      if (answer.error !== '') throw failure('other', answer.error);
      return { id: answer.ID, ttlSeconds: answer.TTL };
    }),
  revoke: (ask, ID) => caller.unary(ask, Lease.method.leaseRevoke, { ID }, () => undefined),
  keepAlive: async (ask, id) => {
    try {
      for await (const { ID, TTL } of caller.stream(ask, Lease.method.leaseKeepAlive, once({ ID: id })))
        return { ok: true, value: TTL > 0n ? { id: ID, ttlSeconds: TTL } : gone(id) };
      throw failure('disconnected', 'the stream ended without an answer');
    } catch (error) {
      return { ok: false, error: classify(error) };
    }
  },
  timeToLive: (ask, ID, { keys = false } = {}) =>
    caller.unary(
      ask,
      Lease.method.leaseTimeToLive,
      { ID, keys },
      (answer) =>
        answer.TTL > 0n
          ? { id: ID, ttlSeconds: answer.TTL, grantedSeconds: answer.grantedTTL, keys: answer.keys }
          : gone(ID),
      'bulk',
    ),
  list: (ask) => caller.unary(ask, Lease.method.leaseLeases, {}, ({ leases }) => leases.map(({ ID }) => ID), 'bulk'),
});

async function* once<T>(request: T): AsyncGenerator<T, void, undefined> {
  yield request;
}
