/**
 * Files below a folder and never outside it, even when another process creates symbolic links there at the same time.
 */
import { constants, type FileHandle, mkdir, open } from 'node:fs/promises';
import { AgentFailure } from '../failure.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const MAX_NAME_BYTES = 255;

export const refused = (key: string, message: string): AgentFailure =>
  new AgentFailure('PathRefused', `the path ${JSON.stringify(key.slice(0, 200))} ${message}: use another`);

/** The parts of a key: folders, and then the name of the file. */
export function segments(key: string): readonly string[] {
  if (key === '' || key.startsWith('/')) throw refused(key, 'is empty or begins with a slash');
  if (/[\p{Cc}\\]/u.test(key)) throw refused(key, 'contains a backslash or a control character');
  const parts = key.split('/');
  for (const part of parts) {
    if (part === '' || part === '.' || part === '..') throw refused(key, 'contains an empty part, "." or ".."');
    if (Buffer.byteLength(part) > MAX_NAME_BYTES)
      throw refused(key, `contains a part longer than ${MAX_NAME_BYTES} bytes`);
  }
  return parts;
}

/**
 * An open folder, and files in it by their name alone. The kernel finds the folder by its descriptor: a symbolic link
 * that replaces it meanwhile is not followed.
 */
export class Folder {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** The root may be a symbolic link: it is the operator's own mount. */
  static async root(path: string): Promise<Folder> {
    return new Folder(await open(path, O_RDONLY | O_DIRECTORY));
  }

  path(name: string): string {
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }

  async enter(name: string): Promise<Folder> {
    return new Folder(await open(this.path(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  }

  async make(name: string): Promise<void> {
    await mkdir(this.path(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }

  /** For reading. Without O_NONBLOCK, a pipe in place of the file would block for ever. */
  file(name: string): Promise<FileHandle> {
    return open(this.path(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  }

  sync(): Promise<void> {
    return this.#handle.sync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

/** Opens the folder of a key, works there and closes it. `make`: creates missing folders. */
export async function inFolder<T>(
  root: string,
  folders: readonly string[],
  { make }: { readonly make: boolean },
  work: (folder: Folder) => Promise<T>,
): Promise<T> {
  let folder = await Folder.root(root);
  try {
    for (const name of folders) {
      if (make) await folder.make(name);
      const next = await folder.enter(name);
      if (make) await folder.sync(); // a new folder must survive a power cut, like the files in it
      await folder.close();
      folder = next;
    }
    return await work(folder);
  } finally {
    await folder.close();
  }
}
