/** A PersistentVolume: files, each with a sidecar that records its owner. */
import { readdir, rm } from 'node:fs/promises';
import { AgentFailure } from '../failure.ts';
import { mounted } from '../secrets.ts';
import { BodyFailure } from '../transfer/multipart.ts';
import {
  claim,
  describe,
  nameOf,
  ours,
  PAGE,
  partial,
  publish,
  regular,
  removeLeftovers,
  removeOldPartials,
  SIDECAR,
  write,
} from './pvc-files.ts';
import { Folder, inFolder, refused, segments } from './pvc-path.ts';
import { exists } from './remote.ts';
import type { Deletion, Download, PutOptions, Store, StoredObject } from './store.ts';

/** Another process published the same file, or removed ours as leftovers of a killed agent. */
const TAKEN = new Set(['EEXIST', 'ENOENT']);
const ABSENT = new Set(['ENOENT', 'ENOTDIR']);

export function openVolume(root: string): Store {
  return new VolumeStore(root);
}

class VolumeStore implements Store {
  readonly #shown: string;
  readonly #root: string;

  constructor(root: string) {
    this.#shown = root;
    this.#root = mounted(root);
  }

  /** The failure for an error code of the system. */
  async #explained<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#failureFor(error, key);
    }
  }

  #failureFor(error: unknown, key: string): unknown {
    if (error instanceof AgentFailure) return error;
    if (error instanceof BodyFailure) return error.cause;
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    const at = `${this.uri(key)} (${code})`;
    if (code === 'ELOOP' || code === 'ENOTDIR') return refused(key, 'leads through a symbolic link or a file');
    if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
      return new AgentFailure('NoSpace', `no space left on the volume for ${at}: enlarge it, or remove old snapshots`);
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
      return new AgentFailure(
        'AccessDenied',
        `permission denied on the volume at ${at}: check its owner, its fsGroup and that it is not read-only`,
      );
    return new AgentFailure('StoreUnreachable', `I/O error on the volume at ${at}: check its storage`);
  }

  /** Works in the folder of the key; returns `absent` when a folder in the path is missing. */
  async #at<T>(key: string, absent: T, work: (folder: Folder, name: string) => Promise<T>): Promise<T> {
    const parts = segments(key);
    const name = nameOf(key, parts);
    return this.#explained(key, async () => {
      try {
        return await inFolder(this.#root, parts.slice(0, -1), { make: false }, (folder) => work(folder, name));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
        await this.#requireRoot();
        return absent;
      }
    });
  }

  async #requireRoot(): Promise<void> {
    const folder = await Folder.root(this.#root).catch(() => undefined);
    if (!folder)
      throw new AgentFailure(
        'BucketNotFound',
        `there is no folder ${this.#shown}: check that the volume is mounted there`,
      );
    await folder.close();
  }

  async head(key: string): Promise<StoredObject | undefined> {
    return this.#at(key, undefined, (folder, name) => describe(folder, name, key));
  }

  async put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<void> {
    const parts = segments(key);
    const name = nameOf(key, parts);
    await this.#explained(key, async () => {
      await this.#requireRoot();
      await inFolder(this.#root, parts.slice(0, -1), { make: true }, (folder) =>
        this.#put(folder, name, key, body, options),
      );
    });
  }

  async #put(
    folder: Folder,
    name: string,
    key: string,
    body: AsyncIterable<Uint8Array>,
    { uid, schedule, replace, signal }: PutOptions,
  ): Promise<void> {
    const there = await describe(folder, name, key);
    if (there && !(replace && there.uid === uid)) throw exists(this.uri(key), there.uid === uid);
    await removeLeftovers(folder, name, uid);
    const file = partial(name, uid);
    let claimed = false;
    try {
      await write(folder, file, body, signal);
      if (!there) claimed = await claim(folder, name, { uid, schedule });
      await publish(folder, file, name, there !== undefined);
      await folder.sync();
      await removeLeftovers(folder, name); // no other upload of this key can succeed any more
    } catch (error) {
      await removeLeftovers(folder, name, uid).catch(() => undefined);
      if (claimed) await rm(folder.path(`${name}${SIDECAR}`), { force: true }).catch(() => undefined);
      const { code = '' } = error as NodeJS.ErrnoException;
      throw TAKEN.has(code) ? exists(this.uri(key), false) : error;
    }
  }

  async get(key: string, signal: AbortSignal): Promise<Download> {
    const handle = await this.#at(key, undefined, (folder, name) => regular(folder, name, key));
    if (!handle)
      throw new AgentFailure('ObjectNotFound', `there is no ${this.uri(key)}: check the path, with all suffixes`);
    const { size } = await handle.stat();
    return { size, body: this.#body(key, handle.createReadStream({ highWaterMark: PAGE, signal })) };
  }

  async *#body(key: string, stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* stream;
    } catch (error) {
      throw (error as Error).name === 'AbortError'
        ? new AgentFailure('TimedOut', `reading ${this.uri(key)} was stopped before its end`)
        : this.#failureFor(error, key);
    }
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    const below = prefix.slice(0, prefix.lastIndexOf('/') + 1);
    if (below !== '') segments(below.slice(0, -1));
    await this.#explained(prefix, () => this.#requireRoot());
    yield* this.#walk(below, prefix);
  }

  /**
   * `below` is empty or ends with a slash. Symbolic links are neither followed nor listed. Foreign files on the same
   * volume are not read: they may have names that we refuse, and folders without permission.
   */
  async *#walk(below: string, prefix: string): AsyncGenerator<StoredObject> {
    const entries = await this.#explained(below, () => this.#entries(below));
    for (const key of entries.map((entry) => `${below}${entry}`)) {
      if (!key.startsWith(prefix)) continue;
      if (key.endsWith('/')) yield* this.#walk(key, prefix);
      else {
        const object = await this.head(key);
        if (object) yield object;
      }
    }
  }

  /** Sorted by key, where a folder is its name with the slash. */
  async #entries(below: string): Promise<readonly string[]> {
    const folders = below.split('/').slice(0, -1);
    try {
      return await inFolder(this.#root, folders, { make: false }, async (folder) =>
        (await readdir(folder.path(''), { withFileTypes: true }))
          .filter((each) => each.isDirectory() || (each.isFile() && !ours(each.name)))
          .filter((each) => below !== '' || each.name !== 'lost+found')
          .map((each) => (each.isDirectory() ? `${each.name}/` : each.name))
          .sort((a, b) => (a < b ? -1 : 1)),
      );
    } catch (error) {
      if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return [];
      throw error;
    }
  }

  async removeUnfinished(prefix: string, before: number): Promise<number> {
    return this.#at(`${prefix}x`, 0, (folder) => removeOldPartials(folder, before));
  }

  async delete(key: string): Promise<Deletion> {
    await this.#at(key, undefined, async (folder, name) => {
      // The file first: a sidecar alone is ignored, a file alone would be foreign.
      for (const each of [name, `${name}${SIDECAR}`]) await rm(folder.path(each), { force: true });
      await folder.sync();
    });
    return 'deleted';
  }

  uri(key: string): string {
    return `file://${this.#shown.replace(/\/$/, '')}/${key}`;
  }
}
