/** Keys: for users of etcd. The operator itself reads and writes none of them. */
import { KV, type KeyValue as WireKeyValue } from '../gen/etcd/kv_pb.ts';
import type { Ask, Caller } from './call.ts';
import { type ClientOptions, EtcdClient } from './client.ts';
import type { Result } from './errors.ts';

export type Bytes = string | Uint8Array;

export interface KeyValue {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly modRevision: bigint;
}

/** One key; with `prefix` all keys with it, and an empty prefix is every key; with `end` all keys from the key up to it. */
export interface Keys {
  readonly key: Bytes;
  readonly prefix?: boolean;
  readonly end?: Bytes;
}

export interface RangeOptions extends Keys {
  readonly limit?: number;
  readonly revision?: bigint;
  readonly serializable?: boolean;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
}

export interface RangeAnswer {
  readonly revision: bigint;
  readonly kvs: readonly KeyValue[];
  /** Of all matches, whatever the limit. */
  readonly count: bigint;
  readonly more: boolean;
}

export interface KeysPort {
  range(ask: Ask, options: RangeOptions): Promise<Result<RangeAnswer>>;
  /** Returns the revision of the change. */
  put(ask: Ask, key: Bytes, value: Bytes): Promise<Result<bigint>>;
  /** Returns the number of deleted keys. */
  delete(ask: Ask, keys: Keys): Promise<Result<bigint>>;
}

const encoder = new TextEncoder();
export const bytes = (data: Bytes): Uint8Array => (typeof data === 'string' ? encoder.encode(data) : data);

const EVERYTHING = new Uint8Array([0]);

/** The first key after all keys with the prefix. */
function prefixEnd(prefix: Uint8Array): Uint8Array {
  const last = prefix.findLastIndex((byte) => byte < 0xff);
  if (last < 0) return EVERYTHING;
  const end = prefix.slice(0, last + 1);
  end[last] = (end[last] ?? 0) + 1;
  return end;
}

export function keyRange({ key, prefix, end }: Keys): { readonly key: Uint8Array; readonly rangeEnd: Uint8Array } {
  const start = bytes(key);
  if (!prefix) return { key: start, rangeEnd: end === undefined ? new Uint8Array() : bytes(end) };
  return { key: start.length === 0 ? EVERYTHING : start, rangeEnd: prefixEnd(start) };
}

export const keyValue = ({ key, value, modRevision }: WireKeyValue): KeyValue => ({ key, value, modRevision });

export const keysPort = (caller: Caller): KeysPort => ({
  range: (ask, { limit = 0, key, prefix = false, end, ...options }) =>
    caller.unary(
      ask,
      KV.method.range,
      { ...keyRange({ key, prefix, ...(end !== undefined && { end }) }), ...options, limit: BigInt(limit) },
      ({ header, kvs, count, more }) => ({ revision: header?.revision ?? 0n, kvs: kvs.map(keyValue), count, more }),
      'bulk',
    ),
  put: (ask, key, value) =>
    caller.unary(ask, KV.method.put, { key: bytes(key), value: bytes(value) }, ({ header }) => header?.revision ?? 0n),
  delete: (ask, keys) => caller.unary(ask, KV.method.deleteRange, keyRange(keys), ({ deleted }) => deleted),
});

/** The operator's client and keys. */
export class KeysClient extends EtcdClient {
  readonly keys: KeysPort;

  constructor(monotonic: () => number, options: ClientOptions = {}) {
    super(monotonic, options);
    this.keys = keysPort(this.caller);
  }
}
