/**
 * A stored snapshot as a file on a volume: downloaded, decrypted, decompressed, and verified with everything that is
 * known about it. The file is complete and unchanged, or there is an AgentFailure.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { manifestKey, type RestoreTask } from '../../domain/agent-task.ts';
import { DIGEST_BYTES } from '../../etcd/snapshot.ts';
import { present } from '../../lib/present.ts';
import { AgentFailure } from '../failure.ts';
import { type DatabaseFacts, readFacts } from '../format/bolt.ts';
import { type ReadManifest, readManifest } from '../format/manifest.ts';
import { mountedKeys } from '../format/seal-key.ts';
import { openStore } from '../stores/store.ts';
import { type Opened, openSnapshot, type Wanted } from './open-snapshot.ts';
import { type Folders, findRoom, noSpace, type Room } from './room.ts';

export interface Fetched {
  readonly path: string;
  readonly facts: DatabaseFacts;
  /** With the digest after it. */
  readonly sizeBytes: number;
}

export async function wantedBy(
  { from, key, encrypted, sha256 }: Pick<RestoreTask, 'from' | 'key' | 'encrypted' | 'sha256'>,
  signal: AbortSignal,
  secrets?: Parameters<typeof openStore>[1],
): Promise<Wanted> {
  const keys = encrypted ? await mountedKeys() : undefined;
  return { store: await openStore(from, secrets), key, signal, ...present({ keys, sha256 }) };
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

/**
 * Writes the stream to a new file, with fsync. No other process writes there: a full disk is the only expected failure.
 */
async function write(file: FileHandle, { pages }: Opened, { lack }: Room): Promise<number> {
  let bytes = 0;
  try {
    for await (const piece of pages) {
      bytes += piece.length;
      const tooMuch = lack(bytes);
      if (tooMuch) throw tooMuch;
      for (let done = 0; done < piece.length; ) done += (await file.write(piece, done)).bytesWritten;
    }
    await file.sync();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!(error instanceof AgentFailure) && (code === 'ENOSPC' || code === 'EDQUOT'))
      throw noSpace('it is full', { cause: error });
    throw error;
  }
  return bytes;
}

/** Downloads the snapshot into a new file, where there is space for all later steps. */
export async function fetchSnapshot(
  wanted: Wanted,
  manifest: ReadManifest | undefined,
  folders: Folders,
  name: string,
): Promise<Fetched> {
  const opened = await openSnapshot(wanted, manifest);
  const room = await findRoom(folders, opened.expectedBytes);
  const path = join(room.folder, name);
  const file = await open(path, 'wx+', 0o600);
  try {
    const sizeBytes = await write(file, opened, room);
    return { path, facts: await readFacts(file, sizeBytes - DIGEST_BYTES), sizeBytes };
  } finally {
    await file.close();
  }
}
