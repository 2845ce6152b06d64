/** The keys of a cluster with their history, the same on every member that has applied the same changes. */
import { crc32 } from 'node:zlib';
import type { EtcdError } from '../../../src/etcd/errors.ts';
import {
  type Bytes,
  bytes,
  type Keys,
  type KeyValue,
  keyRange,
  type RangeAnswer,
  type RangeOptions,
} from '../../../src/etcd/keys.ts';
import { etcdError } from './etcd-said.ts';

interface Change {
  readonly type: 'put' | 'delete';
  readonly kv: KeyValue;
}

const NOTHING = new Uint8Array();
/** What a version of a key takes in addition to its bytes. */
const OVERHEAD = 256;

/** Compares byte by byte, as etcd does. */
const nameOf = (key: Bytes): string => Buffer.from(bytes(key)).toString('latin1');
export const costOf = (key: Bytes, value: Bytes): number => OVERHEAD + bytes(key).length + bytes(value).length;

/** Whether a key is in the range: from the first up to the end; an end of one zero byte means all from the first on. */
function within(keys: Keys): (name: string) => boolean {
  const { key, rangeEnd } = keyRange(keys);
  const [first, end] = [nameOf(key), nameOf(rangeEnd)];
  if (end === '') return (name) => name === first;
  return end === '\0' ? (name) => name >= first : (name) => name >= first && name < end;
}

export class KeyStore {
  revision = 1n;
  compacted = 0n;
  /** Of all versions that are not compacted. */
  bytes = 0;
  readonly #history = new Map<string, Change[]>();

  put(key: Bytes, value: Bytes): bigint {
    const modRevision = ++this.revision;
    this.#add(nameOf(key), { type: 'put', kv: { key: bytes(key), value: bytes(value), modRevision } });
    return modRevision;
  }

  /** Returns the number of deleted keys. */
  delete(keys: Keys): number {
    const found = this.#found(within(keys), this.revision);
    const modRevision = found.length > 0 ? ++this.revision : this.revision;
    for (const [name, { key }] of found) this.#add(name, { type: 'delete', kv: { key, value: NOTHING, modRevision } });
    return found.length;
  }

  range({ revision = 0n, limit = 0, keysOnly, countOnly, ...keys }: RangeOptions): RangeAnswer | EtcdError {
    if (revision > this.revision) return etcdError('futureRevision');
    if (revision > 0n && revision < this.compacted) return etcdError('compacted');
    const found = this.#found(within(keys), revision > 0n ? revision : this.revision).map(([, kv]) => kv);
    const kvs = countOnly ? [] : limit > 0 ? found.slice(0, limit) : found;
    return {
      revision: this.revision,
      kvs: keysOnly ? kvs.map((kv) => ({ ...kv, value: NOTHING })) : kvs,
      count: BigInt(found.length),
      more: !countOnly && kvs.length < found.length,
    };
  }

  compact(revision: bigint): EtcdError | undefined {
    if (revision <= this.compacted) return etcdError('compacted');
    if (revision > this.revision) return etcdError('futureRevision');
    this.compacted = revision;
    for (const [name, history] of this.#history) {
      const last = history.findLastIndex(({ kv }) => kv.modRevision <= revision);
      const compacted = last >= 0 && history[last]?.type === 'delete' ? last + 1 : Math.max(last, 0);
      for (const { kv } of history.splice(0, compacted)) this.bytes -= costOf(kv.key, kv.value);
      if (history.length === 0) this.#history.delete(name);
    }
    return undefined;
  }

  /** Of everything up to a revision that is not compacted. */
  hash(revision = this.revision): number | EtcdError {
    if (revision > this.revision) return etcdError('futureRevision');
    if (revision < this.compacted) return etcdError('compacted');
    let hash = 1;
    for (const [, history] of [...this.#history].toSorted(([a], [b]) => (a < b ? -1 : 1)))
      for (const { type, kv } of history)
        if (kv.modRevision <= revision) hash = crc32(kv.value, crc32(kv.key, crc32(`${type} ${kv.modRevision}`, hash)));
    return hash;
  }

  #add(name: string, change: Change): void {
    const history = this.#history.get(name);
    if (history) history.push(change);
    else this.#history.set(name, [change]);
    this.bytes += costOf(change.kv.key, change.kv.value);
  }

  #last(name: string, revision: bigint): KeyValue | undefined {
    const change = this.#history.get(name)?.findLast(({ kv }) => kv.modRevision <= revision);
    return change?.type === 'put' ? change.kv : undefined;
  }

  #found(matches: (name: string) => boolean, revision: bigint): (readonly [string, KeyValue])[] {
    const found: (readonly [string, KeyValue])[] = [];
    for (const name of this.#history.keys()) {
      const kv = matches(name) ? this.#last(name, revision) : undefined;
      if (kv) found.push([name, kv]);
    }
    return found.sort(([a], [b]) => (a < b ? -1 : 1));
  }
}
