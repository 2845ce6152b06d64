/** Files of a volume in one folder: written completely or not at all, each with an owner. */
import { createHash, randomUUID } from 'node:crypto';
import { constants, type FileHandle, link, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { present } from '../../lib/present.ts';
import { cut } from '../transfer/multipart.ts';
import { NEVER } from '../transfer/retry.ts';
import { type Folder, refused } from './pvc-path.ts';
import type { StoredObject } from './store.ts';

export const SIDECAR = '.uid';
const LONGEST_UID = 256;
/** An agent writes a sidecar and publishes its file at once: after this, it was killed in between. */
const ABANDONED_MS = 3_600_000;
const PARTIAL = '.partial-';
export const PAGE = 2 ** 20;
/** A snapshot contains everything that etcd has: readable for the agent's user and group only. */
const MODE = 0o640;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** Errors of file systems without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Names of sidecars and partial files: not objects. */
export const ours = (name: string): boolean => name.endsWith(SIDECAR) || name.startsWith(PARTIAL);

export function nameOf(key: string, parts: readonly string[]): string {
  const name = parts.at(-1) ?? '';
  if (ours(name)) throw refused(key, `has a name that is reserved for the agent's own files (${SIDECAR}, ${PARTIAL})`);
  return name;
}

const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);
/** The same prefix for all partial files of one key, or of one key and writer, however long their names are. */
const partials = (name: string, uid?: string): string =>
  `${PARTIAL}${short(name)}-${uid === undefined ? '' : `${short(uid)}-`}`;
export const partial = (name: string, uid: string): string => `${partials(name, uid)}${randomUUID()}`;

/** With a uid, only those of that writer: another one may be writing the same key at this moment. */
export async function removeLeftovers(folder: Folder, name: string, uid?: string): Promise<void> {
  for (const each of await readdir(folder.path('')))
    if (each.startsWith(partials(name, uid))) await rm(folder.path(each), { force: true });
}

/** Partial files in the folder, of any key, that no agent has written to since. */
export async function removeOldPartials(folder: Folder, before: number): Promise<number> {
  let removed = 0;
  for (const each of await readdir(folder.path(''))) {
    if (!each.startsWith(PARTIAL) || (await lstat(folder.path(each))).mtimeMs >= before) continue;
    await rm(folder.path(each), { force: true });
    removed += 1;
  }
  return removed;
}

/** Opens it if it is a regular file: not a symbolic link, a pipe or a folder. */
export async function regular(folder: Folder, name: string, key: string): Promise<FileHandle | undefined> {
  const handle = await folder.file(name).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error.code === 'ENXIO' ? refused(key, 'is not a file') : error;
  });
  if (!handle || (await handle.stat()).isFile()) return handle;
  await handle.close();
  throw refused(key, 'is not a file');
}

export async function describe(folder: Folder, name: string, key: string): Promise<StoredObject | undefined> {
  const handle = await regular(folder, name, key);
  if (!handle) return undefined;
  const { size } = await handle.stat();
  await handle.close();
  return { key, size, ...(await sidecarOf(folder, name)) };
}

export type Owner = Pick<StoredObject, 'uid' | 'schedule' | 'upload'>;

/** An unreadable sidecar means a foreign file. */
async function sidecarOf(folder: Folder, name: string): Promise<Owner> {
  const handle = await regular(folder, `${name}${SIDECAR}`, name).catch(() => undefined);
  if (!handle) return {};
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(LONGEST_UID), 0, LONGEST_UID, 0);
    const [uid, schedule, upload] = buffer.toString('utf8', 0, bytesRead).trim().split('\n');
    return present({ uid, schedule: schedule || undefined, upload });
  } finally {
    await handle.close();
  }
}

/** Returns after fsync. */
export async function write(
  folder: Folder,
  name: string,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const handle = await open(folder.path(name), CREATE, MODE);
  try {
    const buffer = Buffer.allocUnsafe(PAGE);
    for await (const { bytes } of cut(body, PAGE, signal, () => buffer))
      for (let written = 0; written < bytes.length; )
        written += (await handle.write(bytes, written, bytes.length - written)).bytesWritten;
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A hard link fails where a file was created meanwhile; a rename would replace it. */
export async function publish(folder: Folder, from: string, to: string, replace: boolean): Promise<void> {
  if (!replace) {
    try {
      await link(folder.path(from), folder.path(to));
      await rm(folder.path(from));
      return;
    } catch (error) {
      if (!NO_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
  await rename(folder.path(from), folder.path(to));
}

async function* one(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/**
 * The sidecar is written before the file: after a crash in between, a file without one would be foreign to its own
 * writer for ever. Its creator alone publishes the file. False: it already exists, from an attempt of ours that was
 * killed. That of another writer is replaced when it has been without a file for a while: a user deleted the file, or
 * the agent was killed.
 */
export async function claim(
  folder: Folder,
  name: string,
  { uid, schedule }: { readonly uid: string; readonly schedule?: string | undefined },
): Promise<boolean> {
  const sidecar = partial(name, uid);
  const final = `${name}${SIDECAR}`;
  await write(folder, sidecar, one([uid, schedule ?? '', randomUUID()].join('\n')), NEVER);
  try {
    await publish(folder, sidecar, final, false);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if ((await sidecarOf(folder, name)).uid !== uid) {
      if (!(await isAbandoned(folder, final, sidecar))) throw error;
      await publish(folder, sidecar, final, true);
      return true;
    }
    await rm(folder.path(sidecar), { force: true });
    return false;
  }
}

/** Both times are of the same file system: no clock of a node is involved. */
async function isAbandoned(folder: Folder, sidecar: string, fresh: string): Promise<boolean> {
  const [old, now] = [await lstat(folder.path(sidecar)), await lstat(folder.path(fresh))];
  return now.mtimeMs - old.mtimeMs > ABANDONED_MS;
}
