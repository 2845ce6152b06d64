/**
 * A stored snapshot as a file on a volume: downloaded, decrypted, decompressed, and verified with everything that is
 * known about it. The file is complete and unchanged, or there is an AgentFailure.
 */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { manifestKey, type RestoreTask } from '../../domain/agent-task.ts';
import { DIGEST_BYTES } from '../../etcd/snapshot.ts';
import { present } from '../../lib/present.ts';
import { AgentFailure } from '../failure.ts';
import { type DatabaseFacts, readFacts } from '../format/bolt.ts';
import { decompress } from '../format/compress.ts';
import { type ReadManifest, readManifest } from '../format/manifest.ts';
import { type Identity, isAtPath, unseal } from '../format/seal.ts';
import { type KeyRing, mountedKeys } from '../format/seal-key.ts';
import { openStore, type Store } from '../stores/store.ts';
import { type Folders, findRoom, noSpace } from './room.ts';

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
}

export interface Fetched {
  readonly path: string;
  readonly facts: DatabaseFacts;
  /** With the digest after it. */
  readonly sizeBytes: number;
}

export async function wantedBy(
  { from, key, encrypted, sha256 }: Pick<RestoreTask, 'from' | 'key' | 'encrypted' | 'sha256'>,
  signal: AbortSignal,
): Promise<Wanted> {
  const keys = encrypted ? await mountedKeys() : undefined;
  return { store: await openStore(from), key, signal, ...present({ keys, sha256 }) };
}

/**
 * S3 also responds 403 for a missing object when the credentials may not list the bucket: then only the digest at the
 * end of the object is verified.
 */
const unknown = (error: unknown): undefined => {
  if (error instanceof AgentFailure && error.reason === 'AccessDenied') return undefined;
  throw error;
};

/** The manifest next to the object; earlier operators and etcdctl write none. */
export async function fetchManifest({ store, key, keys, signal }: Wanted): Promise<ReadManifest | undefined> {
  if (!(await store.head(manifestKey(key)).catch(unknown))) return undefined;
  return readManifest(store, key, signal, keys?.all);
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

/**
 * Writes the stream to a new file, with fsync. No other process writes there: a full disk is the only expected failure.
 */
async function write(
  file: FileHandle,
  body: AsyncIterable<Uint8Array>,
  most: () => AgentFailure | undefined,
): Promise<boolean> {
  const trailer = new Trailer();
  try {
    for await (const piece of body) {
      const tooMuch = most();
      if (tooMuch) throw tooMuch;
      trailer.add(piece);
      for (let done = 0; done < piece.length; ) done += (await file.write(piece, done)).bytesWritten;
    }
    await file.sync();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!(error instanceof AgentFailure) && (code === 'ENOSPC' || code === 'EDQUOT'))
      throw noSpace('it is full', { cause: error });
    throw error;
  }
  return trailer.isRight();
}

/** Downloads the snapshot into a new file, where there is space for all later steps. */
export async function fetchSnapshot(
  wanted: Wanted,
  manifest: ReadManifest | undefined,
  folders: Folders,
  name: string,
): Promise<Fetched> {
  const { store, key, keys, signal } = wanted;
  const encrypted = manifest ? manifest.encryption !== undefined : key.endsWith('.enc');
  const compressed = manifest ? manifest.compression === 'zstd' : /\.zst(\.enc)?$/.test(key);
  checkKey(wanted, encrypted);
  const { size, body } = await store.get(key, signal);
  if (manifest && size !== manifest.object.sizeBytes)
    throw damaged(`${key} has ${size} bytes, and its manifest records ${manifest.object.sizeBytes}`);
  const room = await findRoom(folders, manifest?.database.sizeBytes ?? size);
  const stored = new Meter();
  const database = new Meter();
  const most = (): AgentFailure | undefined => {
    if (manifest && database.bytes > manifest.database.sizeBytes)
      return damaged(`${key} is longer than its manifest records`);
    return room.lack(database.bytes);
  };
  const asStored = stored.through(body);
  const check = (identity: Identity | undefined): void => checkIdentity(key, identity, manifest);
  const opened = encrypted && keys ? unseal(keys.all, asStored, check) : asStored;
  const pages = database.through(compressed ? decompress(opened) : opened);
  const path = join(room.folder, name);
  const file = await open(path, 'wx+', 0o600);
  try {
    const right = await write(file, pages, most);
    if (stored.bytes !== size) throw damaged(`${key} ended after ${stored.bytes} of ${size} bytes`);
    const sha256 = stored.sha256();
    if (wanted.sha256 !== undefined && sha256 !== wanted.sha256)
      throw damaged(
        `${key} has the checksum sha256:${sha256}, and source.checksum is another: it was replaced or damaged`,
      );
    if (manifest && sha256 !== manifest.object.sha256)
      throw damaged(`${key} does not match the SHA-256 in its manifest`);
    if (database.bytes % SECTOR !== DIGEST_BYTES)
      throw damaged(
        `${key} has no digest at its end: it is truncated, or it is a copy of a member's file and not what "etcdctl snapshot save" or an EtcdSnapshot makes`,
      );
    if (!right) throw damaged(`${key} does not match the digest at its end: it is corrupt`);
    if (manifest && (database.bytes !== manifest.database.sizeBytes || database.sha256() !== manifest.database.sha256))
      throw damaged(`${key} contains another database than its manifest describes`);
    return { path, facts: await readFacts(file, database.bytes - DIGEST_BYTES), sizeBytes: database.bytes };
  } finally {
    await file.close();
  }
}
