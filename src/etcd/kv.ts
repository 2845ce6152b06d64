/** Keys and values. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Compare_CompareResult as CompareResult,
  type CompareSchema,
  Compare_CompareTarget as CompareTarget,
  KV,
  type RangeResponse,
  type RequestOpSchema,
  type ResponseOp,
  type KeyValue as WireKeyValue,
} from '../gen/etcd/kv_pb.ts';
import type { Ask, Caller } from './call.ts';
import type { Answer } from './errors.ts';

export type Bytes = string | Uint8Array;

export interface KeyValue {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  readonly version: bigint;
  readonly lease: bigint;
}

/** One key; with `prefix` all that begin with it, and an empty prefix is every key; with `end` all from the key up to it. */
export interface Keys {
  readonly key: Bytes;
  readonly prefix?: boolean;
  readonly end?: Bytes;
}

export interface RangeOptions extends Keys {
  readonly limit?: number;
  /** As of this revision instead of now. */
  readonly revision?: bigint;
  /** As this member knows it, without asking the others: answers without a quorum, and may be old. */
  readonly serializable?: boolean;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
}

export interface RangeAnswer {
  readonly revision: bigint;
  readonly kvs: readonly KeyValue[];
  /** Of all that match, however many were asked for. */
  readonly count: bigint;
  readonly more: boolean;
}

export interface Condition {
  readonly key: Bytes;
  readonly its: 'version' | 'createRevision' | 'modRevision' | 'lease' | 'value';
  readonly is: '=' | '!=' | '<' | '>';
  readonly than: bigint | Bytes;
}

export type Operation =
  | { readonly do: 'put'; readonly key: Bytes; readonly value: Bytes; readonly lease?: bigint }
  | ({ readonly do: 'delete' } & Keys)
  | ({ readonly do: 'range' } & RangeOptions);

export type OperationAnswer =
  | { readonly did: 'put' }
  | { readonly did: 'delete'; readonly deleted: bigint }
  | { readonly did: 'range'; readonly kvs: readonly KeyValue[]; readonly count: bigint; readonly more: boolean };

export interface Transaction {
  readonly when: readonly Condition[];
  readonly do: readonly Operation[];
  readonly otherwise?: readonly Operation[];
}

export interface TransactionAnswer {
  readonly revision: bigint;
  readonly succeeded: boolean;
  readonly answers: readonly OperationAnswer[];
}

export interface KvPort {
  range(ask: Ask, options: RangeOptions): Promise<Answer<RangeAnswer>>;
  /** The answer is the revision of the change. */
  put(ask: Ask, key: Bytes, value: Bytes, options?: { readonly lease?: bigint }): Promise<Answer<bigint>>;
  /** The answer is how many keys were deleted. */
  delete(ask: Ask, keys: Keys): Promise<Answer<bigint>>;
  txn(ask: Ask, transaction: Transaction): Promise<Answer<TransactionAnswer>>;
  /** Physical: answers when the old revisions are gone from the database, not only from view. */
  compact(ask: Ask, revision: bigint, options?: { readonly physical?: boolean }): Promise<Answer<void>>;
}

const encoder = new TextEncoder();
export const bytes = (data: Bytes): Uint8Array => (typeof data === 'string' ? encoder.encode(data) : data);

const EVERYTHING = new Uint8Array([0]);

/** The first key that does not begin with the prefix. */
export function prefixEnd(prefix: Uint8Array): Uint8Array {
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

export const keyValue = ({ key, value, createRevision, modRevision, version, lease }: WireKeyValue): KeyValue => ({
  key,
  value,
  createRevision,
  modRevision,
  version,
  lease,
});

const rangeRequest = ({ limit = 0, revision = 0n, ...options }: RangeOptions) => ({
  ...keyRange(options),
  limit: BigInt(limit),
  revision,
  serializable: options.serializable ?? false,
  keysOnly: options.keysOnly ?? false,
  countOnly: options.countOnly ?? false,
});

const found = ({ kvs, count, more }: RangeResponse) => ({ kvs: kvs.map(keyValue), count, more });

const RESULTS = {
  '=': CompareResult.EQUAL,
  '!=': CompareResult.NOT_EQUAL,
  '<': CompareResult.LESS,
  '>': CompareResult.GREATER,
} as const;
const TARGETS = {
  version: CompareTarget.VERSION,
  createRevision: CompareTarget.CREATE,
  modRevision: CompareTarget.MOD,
  lease: CompareTarget.LEASE,
  value: CompareTarget.VALUE,
} as const;

function compare({ key, its, is, than }: Condition): MessageInitShape<typeof CompareSchema> {
  const common = { key: bytes(key), result: RESULTS[is], target: TARGETS[its] };
  if (typeof than !== 'bigint') return { ...common, targetUnion: { case: 'value', value: bytes(than) } };
  if (its === 'value') throw new TypeError('a value is compared with bytes or text');
  return { ...common, targetUnion: { case: its, value: than } };
}

function operation(op: Operation): MessageInitShape<typeof RequestOpSchema> {
  switch (op.do) {
    case 'put': {
      const value = { key: bytes(op.key), value: bytes(op.value), lease: op.lease ?? 0n };
      return { request: { case: 'requestPut', value } };
    }
    case 'delete':
      return { request: { case: 'requestDeleteRange', value: keyRange(op) } };
    case 'range':
      return { request: { case: 'requestRange', value: rangeRequest(op) } };
  }
}

function operationAnswer({ response }: ResponseOp): OperationAnswer {
  switch (response.case) {
    case 'responseRange':
      return { did: 'range', ...found(response.value) };
    case 'responseDeleteRange':
      return { did: 'delete', deleted: response.value.deleted };
    case 'responsePut':
    case undefined:
      return { did: 'put' };
  }
}

export const kvPort = (caller: Caller): KvPort => ({
  range: (ask, options) =>
    caller.unary(
      ask,
      KV.method.range,
      rangeRequest(options),
      (answer) => ({ revision: answer.header?.revision ?? 0n, ...found(answer) }),
      'bulk',
    ),
  put: (ask, key, value, { lease = 0n } = {}) =>
    caller.unary(
      ask,
      KV.method.put,
      { key: bytes(key), value: bytes(value), lease },
      ({ header }) => header?.revision ?? 0n,
    ),
  delete: (ask, keys) => caller.unary(ask, KV.method.deleteRange, keyRange(keys), ({ deleted }) => deleted),
  txn: (ask, { when, do: steps, otherwise = [] }) =>
    caller.unary(
      ask,
      KV.method.txn,
      { compare: when.map(compare), success: steps.map(operation), failure: otherwise.map(operation) },
      ({ header, succeeded, responses }) => ({
        revision: header?.revision ?? 0n,
        succeeded,
        answers: responses.map(operationAnswer),
      }),
      'bulk',
    ),
  compact: (ask, revision, { physical = false } = {}) =>
    caller.unary(ask, KV.method.compact, { revision, physical }, () => undefined),
});
