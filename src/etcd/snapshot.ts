/**
 * A member's database as a stream. etcd sends the pages and then, as the last message, the SHA-256 of all of them; it
 * is computed along the way and compared, so a snapshot that was read to its end is the one that etcd sent.
 */
import { createHash } from 'node:crypto';
import { Maintenance } from '../gen/etcd/maintenance_pb.ts';
import type { Ask, Caller } from './call.ts';
import { failure } from './errors.ts';

/** The bytes as `etcdctl snapshot save` writes them: the database, then the 32 bytes of its digest. */
export interface SnapshotStream extends AsyncIterable<Uint8Array> {
  /** Of the database, without the digest. Known once the first chunk was received. */
  readonly totalBytes: number | undefined;
  readonly receivedBytes: number;
  /** From 3.6 on, such as `3.6.0`. */
  readonly storageVersion: string | undefined;
  /** In hexadecimal; known only after the stream was read to its end and the digest matched. */
  readonly digest: string | undefined;
  /** Of all bytes of the stream, etcd's digest included; known at the same time. */
  readonly fileDigest: string | undefined;
}

type State = { -readonly [Field in Exclude<keyof SnapshotStream, symbol>]: SnapshotStream[Field] };

/** The SHA-256 after the database. */
export const DIGEST_BYTES = 32;

export function snapshotStream(
  caller: Caller,
  ask: Ask,
  { maxBytes = Number.MAX_SAFE_INTEGER }: { readonly maxBytes?: number } = {},
): SnapshotStream {
  const state: State = {
    totalBytes: undefined,
    receivedBytes: 0,
    storageVersion: undefined,
    digest: undefined,
    fileDigest: undefined,
  };
  return Object.assign(state, { [Symbol.asyncIterator]: () => pieces(caller, ask, state, maxBytes) });
}

async function* pieces(caller: Caller, ask: Ask, state: State, maxBytes: number): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let sent: Uint8Array | undefined;
  for await (const { blob, remainingBytes, version } of caller.stream(ask, Maintenance.method.snapshot, one({}))) {
    state.totalBytes ??= blob.length + Number(remainingBytes);
    if (state.totalBytes > maxBytes)
      throw failure('tooLarge', `the database has ${state.totalBytes} bytes, more than the allowed ${maxBytes}`);
    if (version !== '') state.storageVersion = version;
    if (blob.length === 0) continue;
    if (sent) throw failure('badDigest', 'the snapshot continues after its digest');
    if (state.receivedBytes === state.totalBytes) {
      sent = blob; // not passed on before it is known to match
      continue;
    }
    if (state.receivedBytes + blob.length > state.totalBytes)
      throw failure('badDigest', `the snapshot is longer than the ${state.totalBytes} bytes that were promised`);
    state.receivedBytes += blob.length;
    hash.update(blob);
    yield blob;
  }
  if (state.receivedBytes !== state.totalBytes)
    throw failure('badDigest', `the snapshot ended after ${state.receivedBytes} of ${state.totalBytes ?? 0} bytes`);
  if (sent?.length !== DIGEST_BYTES) throw failure('badDigest', 'the snapshot ended without its digest');
  const whole = hash.copy();
  const computed = hash.digest();
  if (!computed.equals(sent))
    throw failure('badDigest', 'the bytes of the snapshot do not match the digest that etcd sent');
  state.digest = computed.toString('hex');
  state.fileDigest = whole.update(sent).digest('hex');
  yield sent;
}

async function* one<T>(request: T): AsyncGenerator<T> {
  yield request;
}
