/**
 * Reads a stream as fast as it arrives, whatever the speed of its consumer: what the consumer has not taken yet is in memory, and
 * then in a file. A member keeps every page that is freed while it streams, so a slow store would make its database grow.
 */
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentFailure } from '../failure.ts';

/** An agent stays below 200 MiB with the parts that are being sent. */
const IN_MEMORY_BYTES = 8 * 2 ** 20;
const READ_BYTES = 2 ** 20;
/** How often `giveUp` is asked while the stream is held up. */
const HELD_UP_MS = 500;
const FULL = new Set(['ENOSPC', 'EDQUOT']);

export interface SpoolOptions {
  /** Absent: nothing but memory. */
  readonly folder?: string;
  /** Of the file. */
  readonly maxBytes: number;
  /** Asked while memory and file are full, and the stream waits for the consumer: why it is not to wait any longer. */
  readonly giveUp: () => Promise<AgentFailure | undefined>;
}

export async function* spooled(source: AsyncIterable<Uint8Array>, options: SpoolOptions): AsyncGenerator<Uint8Array> {
  const spool = new Spool(source[Symbol.asyncIterator](), options);
  try {
    yield* spool.read();
  } finally {
    await spool.close();
  }
}

class Spool {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #options: SpoolOptions;
  readonly #memory: Uint8Array[] = [];
  #inMemory = 0;
  #file: FileHandle | undefined;
  #maxBytes: number;
  #written = 0;
  #taken = 0;
  #ended: { readonly error?: unknown } | undefined;
  #changed = Promise.withResolvers<void>();
  readonly #filling: Promise<void>;

  constructor(source: AsyncIterator<Uint8Array>, options: SpoolOptions) {
    this.#source = source;
    this.#options = options;
    this.#maxBytes = options.folder === undefined ? 0 : options.maxBytes;
    this.#filling = this.#fill();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  async #fill(): Promise<void> {
    try {
      for (;;) {
        const next = await this.#source.next();
        if (next.done === true) break;
        await this.#put(next.value);
        if (this.#ended) return void (await this.#source.return?.());
        this.#wake();
      }
      this.#ended ??= {};
    } catch (error) {
      this.#ended ??= { error };
      // A body that fails elsewhere ends the stream as well: the member would keep its pages until the connection ends.
      await this.#source.return?.().catch(() => undefined);
    }
    this.#wake();
  }

  /** Once something is in the file, all that follows goes there until the consumer has taken all of it. */
  async #put(bytes: Uint8Array): Promise<void> {
    while (!this.#ended) {
      const changed = this.#changed.promise;
      if (this.#taken === this.#written) [this.#taken, this.#written] = [0, 0];
      if (this.#written === 0 && (this.#inMemory === 0 || this.#inMemory + bytes.length <= IN_MEMORY_BYTES)) {
        this.#memory.push(bytes);
        this.#inMemory += bytes.length;
        return;
      }
      if (this.#written + bytes.length > this.#maxBytes) await this.#heldUp(changed);
      else if (await this.#append(bytes, this.#options.folder ?? '')) return;
      else this.#maxBytes = this.#written;
    }
  }

  /** False: the disk is full. */
  async #append(bytes: Uint8Array, folder: string): Promise<boolean> {
    const path = join(folder, 'spool');
    try {
      if (!this.#file) {
        this.#file = await open(path, 'w+', 0o600);
        await rm(path); // the space is free again whenever the process ends
      }
      for (let done = 0; done < bytes.length; )
        done += (await this.#file.write(bytes, done, bytes.length - done, this.#written + done)).bytesWritten;
    } catch (error) {
      if (!FULL.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
      return false;
    }
    this.#written += bytes.length;
    return true;
  }

  async #heldUp(changed: Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, HELD_UP_MS, 'late');
    });
    const first = await Promise.race([changed, late]);
    clearTimeout(timer);
    const failure = first === 'late' ? await this.#options.giveUp() : undefined;
    if (failure) throw failure;
  }

  async *read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const changed = this.#changed.promise;
      if (this.#ended && 'error' in this.#ended) throw this.#ended.error;
      const bytes = this.#memory.shift();
      if (bytes) {
        this.#inMemory -= bytes.length;
        yield bytes;
      } else if (this.#file && this.#taken < this.#written) yield await this.#next(this.#file);
      else if (this.#ended) return;
      else await changed;
      this.#wake();
    }
  }

  async #next(file: FileHandle): Promise<Uint8Array> {
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, this.#written - this.#taken));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, this.#taken);
    if (bytesRead === 0) throw new AgentFailure('Internal', 'the spool file is shorter than what was written to it');
    this.#taken += bytesRead;
    return buffer.subarray(0, bytesRead);
  }

  async close(): Promise<void> {
    this.#ended ??= {};
    this.#wake();
    // A source that hangs in `next` would hang this: the signal of the task ends it.
    await Promise.race([this.#filling, new Promise((resolve) => setTimeout(resolve, 1_000).unref())]);
    await this.#file?.close();
  }
}
