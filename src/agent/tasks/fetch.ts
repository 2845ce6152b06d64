/**
 * A stored snapshot as a file on a volume: fetched, unsealed, decompressed, and compared with everything that is known about
 * it. The file is whole and as it was taken, or there is a failure that says why not.
 */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open, statfs } from 'node:fs/promises';
import { manifestKey, type RestoreTask } from '../../domain/agent-task.ts';
import { DIGEST_BYTES } from '../../etcd/snapshot.ts';
import { AgentFailure } from '../failure.ts';
import { type DatabaseFacts, readFacts } from '../format/bolt.ts';
import { decompress } from '../format/compress.ts';
import { type Manifest, readManifest } from '../format/manifest.ts';
import { mountedSealKey, type SealKey, unseal } from '../format/seal.ts';
import { openStore, type Store } from '../stores/store.ts';

/** Pages are a multiple of this, so what is left over shows whether the digest of the database is behind it. */
const SECTOR = 512;
const MI = 1024 ** 2;
/** etcd makes files for its log of this size in advance. */
const WAL_BYTES = 64 * MI;
const MARGIN_BYTES = 16 * MI;

export interface Wanted {
  readonly store: Store;
  readonly key: string;
  /** The key that the user named; absent when none was. */
  readonly sealKey?: SealKey;
  readonly signal: AbortSignal;
}

export interface Fetched {
  readonly facts: DatabaseFacts;
  /** With the digest behind it. */
  readonly sizeBytes: number;
}

export async function wantedBy(
  { from, key, encrypted }: Pick<RestoreTask, 'from' | 'key' | 'encrypted'>,
  signal: AbortSignal,
): Promise<Wanted> {
  const sealKey = encrypted ? await mountedSealKey() : undefined;
  return { store: await openStore(from), key, signal, ...(sealKey && { sealKey }) };
}

/** S3 says so too of what is not there, to whoever may not list the bucket: the digest at the end of the object is left. */
const unknown = (error: unknown): undefined => {
  if (error instanceof AgentFailure && error.reason === 'AccessDenied') return undefined;
  throw error;
};

/** What stands next to the object; earlier operators and etcdctl leave nothing there. */
export async function fetchManifest({ store, key, signal }: Wanted): Promise<Manifest | undefined> {
  if (!(await store.head(manifestKey(key)).catch(unknown))) return undefined;
  return readManifest(store, key, signal);
}

/** Nobody but who has the key can have made it: a snapshot that is not encrypted does not stand in for one that is. */
function checkKey({ key, sealKey }: Wanted, encrypted: boolean): void {
  if (encrypted === (sealKey !== undefined)) return;
  throw new AgentFailure(
    'WrongKey',
    encrypted
      ? `${key} is encrypted, and no key was named: name the Secret with the key that it was taken with in encryption.keySecretRef`
      : `${key} is not encrypted, and a key was named: it may not be the snapshot that was meant. Leave encryption out if it is`,
  );
}

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / MI)} MiB`;

/** The file and the copy that etcd's tool makes of it; and then etcd with its log and the next piece of it. */
const roomFor = (databaseBytes: number): number =>
  databaseBytes + Math.max(databaseBytes + WAL_BYTES, 2 * WAL_BYTES) + MARGIN_BYTES;

async function checkRoom(folder: string, databaseBytes: number): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const needed = roomFor(databaseBytes);
  if (free < needed)
    throw noSpace(
      `${mebibytes(needed)} are needed for a database of ${mebibytes(databaseBytes)}, and ${mebibytes(free)} are free`,
    );
  return free;
}

const noSpace = (how: string, options?: ErrorOptions): AgentFailure =>
  new AgentFailure(
    'NoSpace',
    `the volume is too small for the snapshot: ${how}. Set a larger storage.size, or storageSize of the drill`,
    options,
  );

const damaged = (how: string): AgentFailure =>
  new AgentFailure(
    'SnapshotDamaged',
    `the snapshot ${how}. Restore another one, or fetch this one again from where it came from`,
  );

/** Counts and digests what passes. */
class Meter {
  bytes = 0;
  readonly #hash: Hash = createHash('sha256');
  async *through(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
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

/** The last 32 bytes are the digest of all before them: so much is always held back. */
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

/** Writes the stream to a new file, and to the disk. Nobody else writes there: a full disk is the only failure that is expected. */
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

/** Fetches the snapshot into a new file of the folder that has to have room for all that follows. */
export async function fetchSnapshot(
  wanted: Wanted,
  manifest: Manifest | undefined,
  folder: string,
  path: string,
): Promise<Fetched> {
  const { store, key, sealKey, signal } = wanted;
  const encrypted = manifest ? manifest.encryption !== undefined : key.endsWith('.enc');
  const compressed = manifest ? manifest.compression === 'zstd' : /\.zst(\.enc)?$/.test(key);
  checkKey(wanted, encrypted);
  const { size, body } = await store.get(key, signal);
  if (manifest && size !== manifest.object.sizeBytes)
    throw damaged(`${key} has ${size} bytes, and its manifest says ${manifest.object.sizeBytes}`);
  const free = await checkRoom(folder, manifest?.database.sizeBytes ?? size);
  const stored = new Meter();
  const database = new Meter();
  const most = (): AgentFailure | undefined => {
    if (manifest && database.bytes > manifest.database.sizeBytes)
      return damaged(`${key} is longer than its manifest says`);
    return roomFor(database.bytes) > free ? noSpace(`${mebibytes(free)} are free, and it needs more`) : undefined;
  };
  const asStored = stored.through(body);
  const opened = encrypted && sealKey ? unseal(sealKey, asStored) : asStored;
  const pages = database.through(compressed ? decompress(opened) : opened);
  const file = await open(path, 'wx+', 0o600);
  try {
    const right = await write(file, pages, most);
    if (stored.bytes !== size) throw damaged(`${key} ended after ${stored.bytes} of ${size} bytes`);
    if (manifest && stored.sha256() !== manifest.object.sha256)
      throw damaged(`${key} does not have the SHA-256 of its manifest`);
    if (database.bytes % SECTOR !== DIGEST_BYTES)
      throw damaged(
        `${key} has no digest at its end: it was cut, or it is a copy of a member's file and not what "etcdctl snapshot save" or an EtcdSnapshot makes`,
      );
    if (!right) throw damaged(`${key} does not have the digest that etcd put at its end: bytes of it have changed`);
    if (manifest && (database.bytes !== manifest.database.sizeBytes || database.sha256() !== manifest.database.sha256))
      throw damaged(`${key} holds another database than its manifest says`);
    const read = async (into: Uint8Array, position: number) =>
      (await file.read(into, 0, into.length, position)).bytesRead;
    return { facts: await readFacts(read, database.bytes - DIGEST_BYTES), sizeBytes: database.bytes };
  } finally {
    await file.close();
  }
}
