/** How many keys a cluster has, and compaction. The operator reads and writes no keys: they belong to the users. A restore drill writes one to its own copy. */
import { KV } from '../gen/etcd/kv_pb.ts';
import type { Ask, Caller } from './call.ts';
import type { Result } from './errors.ts';

export interface CountOptions {
  /** As of this revision instead of now. */
  readonly revision?: bigint;
  /** As this member knows it, without a quorum: may be stale. */
  readonly serializable?: boolean;
}

export interface KvPort {
  /** Succeeds when the member reads from its database. While it is being defragmented, it does not. */
  read(ask: Ask): Promise<Result<void>>;
  count(ask: Ask, options?: CountOptions): Promise<Result<bigint>>;
  /** Returns the revision of the change. */
  put(ask: Ask, key: string, value: string): Promise<Result<bigint>>;
  /** Physical: responds when the old revisions are removed from the database, not only hidden. */
  compact(ask: Ask, revision: bigint, options?: { readonly physical?: boolean }): Promise<Result<void>>;
}

/** From the first possible key on, without an end. */
const EVERY_KEY = { key: new Uint8Array([0]), rangeEnd: new Uint8Array([0]) };

/** A key that no client uses: nothing is read of users. */
const NO_KEY = { key: new Uint8Array([0]), countOnly: true, serializable: true };

export const kvPort = (caller: Caller): KvPort => ({
  read: (ask) => caller.unary(ask, KV.method.range, NO_KEY, () => undefined),
  count: (ask, options) =>
    caller.unary(ask, KV.method.range, { ...EVERY_KEY, countOnly: true, ...options }, ({ count }) => count, 'bulk'),
  put: (ask, key, value) => {
    const bytes = new TextEncoder();
    const request = { key: bytes.encode(key), value: bytes.encode(value) };
    return caller.unary(ask, KV.method.put, request, ({ header }) => header?.revision ?? 0n);
  },
  compact: (ask, revision, { physical = false } = {}) =>
    caller.unary(ask, KV.method.compact, { revision, physical }, () => undefined),
});
