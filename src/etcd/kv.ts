/** How many keys a cluster has. The operator reads and writes none of them: they belong to the users. A restore drill writes one to its own copy. */
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
  count(ask: Ask, options?: CountOptions): Promise<Result<bigint>>;
  /** Returns the revision of the change. */
  put(ask: Ask, key: string, value: string): Promise<Result<bigint>>;
}

/** From the first possible key on, without an end. */
const EVERY_KEY = { key: new Uint8Array([0]), rangeEnd: new Uint8Array([0]) };

export const kvPort = (caller: Caller): KvPort => ({
  count: (ask, options) =>
    caller.unary(ask, KV.method.range, { ...EVERY_KEY, countOnly: true, ...options }, ({ count }) => count, 'bulk'),
  put: (ask, key, value) => {
    const bytes = new TextEncoder();
    const request = { key: bytes.encode(key), value: bytes.encode(value) };
    return caller.unary(ask, KV.method.put, request, ({ header }) => header?.revision ?? 0n);
  },
});
