/** A stored snapshot as a stream: decrypted, decompressed, and compared with everything that is known about it. */
import { createHash, type Hash } from 'node:crypto';
import { DIGEST_BYTES } from '../../etcd/snapshot.ts';
import { AgentFailure } from '../failure.ts';
import { decompress } from '../format/compress.ts';
import type { ReadManifest } from '../format/manifest.ts';
import { type Identity, isAtPath, unseal } from '../format/seal.ts';
import type { KeyRing } from '../format/seal-key.ts';
import type { Download, Store } from '../stores/store.ts';
import { paced } from '../transfer/pace.ts';

/** Pages are a multiple of this, so the remainder shows whether the digest follows the database. */
const SECTOR = 512;

export interface Wanted {
  readonly store: Store;
  readonly key: string;
  /** The keys that the user set; absent without encryption. */
  readonly keys?: KeyRing;
  readonly signal: AbortSignal;
  /** That the stored object must have. */
  readonly sha256?: string;
  /** At most so fast: others need the network of the node as well. */
  readonly bytesPerSecond?: number;
}

/** Only a holder of the key can have made an encrypted snapshot: an unencrypted one must not replace it. */
function checkKey({ key, keys }: Wanted, encrypted: boolean): void {
  if (encrypted === (keys !== undefined)) return;
  throw new AgentFailure(
    'WrongKey',
    encrypted
      ? `${key} is encrypted, and no encryption key was set: set encryption.keySecretRef to the Secret with the key that it was taken with`
      : `${key} is not encrypted, and an encryption key was set: it may be the wrong snapshot. Remove encryption if it is the right one`,
  );
}

/** A client that may write to the store can put another snapshot of the same key there: an older one, or one of another cluster. */
function checkIdentity(key: string, identity: Identity | undefined, manifest: ReadManifest | undefined): void {
  if (!identity) return;
  const { path, uid, takenAt } = identity;
  if (!isAtPath(key, path))
    throw damaged(
      `${key} is the snapshot ${path} of ${takenAt}: if that is the right one, copy it to a key that ends with ${path}`,
    );
  if (manifest && (manifest.authentic !== true || manifest.snapshot.uid !== uid || manifest.takenAt !== takenAt))
    throw damaged(`${key} has the manifest of another snapshot, or one that was changed`);
}

const damaged = (how: string): AgentFailure =>
  new AgentFailure(
    'SnapshotDamaged',
    `the snapshot ${how}. Restore another one, or copy this one again from its source`,
  );

/** Counts and digests the bytes that are streamed. */
class Meter {
  bytes = 0;
  readonly #hash: Hash = createHash('sha256');
  async *through(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of body) {
      this.bytes += piece.length;
      this.#hash.update(piece);
      yield piece;
    }
  }
  sha256(): string {
    return this.#hash.digest('hex');
  }
}

/** The last 32 bytes are the digest of all before them, so that many are always held back. */
class Trailer {
  readonly #hash: Hash = createHash('sha256');
  #last: Buffer = Buffer.alloc(0);
  add(piece: Uint8Array): void {
    const cut = Math.max(0, piece.length - DIGEST_BYTES);
    const held = Buffer.concat([this.#last, piece.subarray(cut)]);
    const known = cut > 0 ? this.#last.length : Math.max(0, held.length - DIGEST_BYTES);
    this.#hash.update(held.subarray(0, known)).update(piece.subarray(0, cut));
    this.#last = held.subarray(known);
  }
  isRight(): boolean {
    return this.#last.equals(this.#hash.digest());
  }
}

export interface Opened {
  /** Of the database, as far as the manifest records it. */
  readonly expectedBytes: number;
  /** The database and its digest. Throws at the end, or before it, unless everything is as it was when it was stored. */
  readonly pages: AsyncIterable<Uint8Array>;
}

export async function openSnapshot(wanted: Wanted, manifest: ReadManifest | undefined): Promise<Opened> {
  const { key } = wanted;
  const encrypted = manifest ? manifest.encryption !== undefined : key.endsWith('.enc');
  checkKey(wanted, encrypted);
  const { size, body } = await download(wanted, manifest);
  const pages = verified(wanted, manifest, { size, body, encrypted });
  return { expectedBytes: manifest?.database.sizeBytes ?? size, pages };
}

async function download(
  { store, key, signal, bytesPerSecond }: Wanted,
  manifest: ReadManifest | undefined,
): Promise<Download> {
  const { size, body } = await store.get(key, signal);
  if (manifest && size !== manifest.object.sizeBytes)
    throw damaged(`${key} has ${size} bytes, and its manifest records ${manifest.object.sizeBytes}`);
  return { size, body: bytesPerSecond === undefined ? body : paced(body, bytesPerSecond, signal) };
}

/** As it is stored, compressed and encrypted. Throws at the end, or before it, unless the manifest describes it. */
export async function* storedBytes(wanted: Wanted, manifest: ReadManifest): AsyncGenerator<Uint8Array> {
  const { size, body } = await download(wanted, manifest);
  const stored = new Meter();
  yield* stored.through(body);
  if (stored.bytes !== size) throw damaged(`${wanted.key} ended after ${stored.bytes} of ${size} bytes`);
  if (stored.sha256() !== manifest.object.sha256)
    throw damaged(`${wanted.key} does not match the SHA-256 in its manifest`);
}

async function* verified(
  wanted: Wanted,
  manifest: ReadManifest | undefined,
  {
    size,
    body,
    encrypted,
  }: { readonly size: number; readonly body: AsyncIterable<Uint8Array>; readonly encrypted: boolean },
): AsyncGenerator<Uint8Array> {
  const { key, keys } = wanted;
  const compressed = manifest ? manifest.compression === 'zstd' : /\.zst(\.enc)?$/.test(key);
  const [stored, database, trailer] = [new Meter(), new Meter(), new Trailer()];
  const asStored = stored.through(body);
  const check = (identity: Identity | undefined): void => checkIdentity(key, identity, manifest);
  const opened = encrypted && keys ? unseal(keys.all, asStored, check) : asStored;
  for await (const piece of database.through(compressed ? decompress(opened) : opened)) {
    if (manifest && database.bytes > manifest.database.sizeBytes)
      throw damaged(`${key} is longer than its manifest records`);
    trailer.add(piece);
    yield piece;
  }
  if (stored.bytes !== size) throw damaged(`${key} ended after ${stored.bytes} of ${size} bytes`);
  const sha256 = stored.sha256();
  if (wanted.sha256 !== undefined && sha256 !== wanted.sha256)
    throw damaged(
      `${key} has the checksum sha256:${sha256}, and source.checksum is another: it was replaced or damaged`,
    );
  if (manifest && sha256 !== manifest.object.sha256) throw damaged(`${key} does not match the SHA-256 in its manifest`);
  if (database.bytes % SECTOR !== DIGEST_BYTES)
    throw damaged(
      `${key} has no digest at its end: it is truncated, or it is a copy of a member's file and not what "etcdctl snapshot save" or an EtcdSnapshot makes`,
    );
  if (!trailer.isRight()) throw damaged(`${key} does not match the digest at its end: it is corrupt`);
  if (manifest && (database.bytes !== manifest.database.sizeBytes || database.sha256() !== manifest.database.sha256))
    throw damaged(`${key} contains another database than its manifest describes`);
}
