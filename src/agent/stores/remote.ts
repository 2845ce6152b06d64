/** A store that is a cloud service: the part that all of them share. A Service implements the calls of one. */
import { randomUUID } from 'node:crypto';
import { AgentFailure } from '../failure.ts';
import { type ErrorPhrases, errorMessage } from '../transfer/error-message.ts';
import { atOnce, type Part, partBytes, sendParts } from '../transfer/multipart.ts';
import { opened, wholeBody } from '../transfer/resumable-download.ts';
import { NEVER, withRetry } from '../transfer/retry.ts';
import type { Download, PutOptions, Store, StoredObject } from './store.ts';

/** Of a listing. */
export const PAGE_SIZE = 200;

export interface Found extends StoredObject {
  /** Changes whenever the object does: an etag, or a generation. */
  readonly version: string;
  /** The id of the put call that wrote it. */
  readonly upload?: string;
}

export interface StartedUpload {
  readonly key: string;
  readonly uid: string;
  readonly upload: string;
  readonly contentType: string;
  /** The version to replace; absent: the object must not exist. */
  readonly over?: string;
  readonly signal: AbortSignal;
}

/** One upload. Nothing is visible before `commit`, or before the last part where that is the same. */
export interface Upload {
  send(piece: Part, signal: AbortSignal): Promise<void>;
  commit(signal: AbortSignal): Promise<void>;
  cancel(signal: AbortSignal): Promise<void>;
}

/** Of a listing, in the order of keys. */
export interface Page {
  readonly objects: readonly StoredObject[];
  /** Absent on the last page. */
  readonly next?: string | undefined;
}

/** The caller turns what these calls throw into a message with the phrases, and retries those that make one attempt. */
export interface Service {
  readonly phrases: ErrorPhrases;
  /** At most this number of parts at once. */
  readonly width: number;
  /** One attempt. */
  find(key: string, signal: AbortSignal): Promise<Found | undefined>;
  /** Aborts what a killed agent left of the same key, as far as the service lists it. */
  begin(started: StartedUpload): Promise<Upload>;
  /** From this byte on, of exactly this version. One attempt. */
  read(found: Found, from: number, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** One attempt. `from`: where the previous page ended. */
  list(prefix: string, from: string | undefined, signal: AbortSignal): Promise<Page>;
  /** One attempt. Succeeds when the object does not exist. */
  remove(key: string, signal: AbortSignal): Promise<unknown>;
  uri(key: string): string;
}

/** Shorter than the grace period of a Pod, within which the clean-up has to end. */
const CLEAN_UP_MS = 20_000;

export class RemoteStore implements Store {
  readonly #service: Service;

  constructor(service: Service) {
    this.#service = service;
  }

  async #explained<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw errorMessage(error, this.#service.phrases, key);
    }
  }

  head(key: string): Promise<StoredObject | undefined> {
    return this.#explained(key, async () => {
      const found = await this.#find(key, NEVER);
      return found && shown(found);
    });
  }

  #find(key: string, signal: AbortSignal): Promise<Found | undefined> {
    return withRetry({ signal }, (stop) => this.#service.find(key, stop));
  }

  async #remove(key: string, signal: AbortSignal): Promise<void> {
    await withRetry({ signal }, (stop) => this.#service.remove(key, stop));
  }

  put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<void> {
    return this.#explained(key, () => this.#put(key, body, options));
  }

  async #put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<void> {
    const { uid, signal, contentType = 'application/octet-stream' } = options;
    const there = await this.#find(key, signal);
    if (there && !(options.replace && there.uid === uid)) throw exists(this.uri(key), there.uid === uid);
    const started = { key, uid, upload: randomUUID(), contentType, signal, ...(there && { over: there.version }) };
    const upload = await this.#service.begin(started);
    let sent = 0;
    try {
      const size = partBytes(options.expectedBytes);
      await sendParts(body, { size, width: Math.min(this.#service.width, atOnce(size)), signal }, (piece, stop) => {
        sent += piece.bytes.length;
        return upload.send(piece, stop);
      });
      await upload.commit(signal);
    } catch (error) {
      if (!(await this.#existsNevertheless(started, upload))) throw error;
    }
    await this.#requireWhole(started, sent);
  }

  /** A service that lost a part, or took one twice, stored a damaged object, which must not be found later. */
  async #requireWhole({ key, upload, signal }: StartedUpload, size: number): Promise<void> {
    const found = await this.#find(key, signal);
    if (found?.size === size) return;
    if (found?.upload === upload) await this.#remove(key, signal);
    throw new AgentFailure(
      'StoreUnreachable',
      `${this.uri(key)} has ${found?.size ?? 'no'} bytes after ${size} were sent: try again`,
    );
  }

  /**
   * The response to the last call may have been lost, and its retry refused because our object exists: that is a
   * success. Otherwise, or after an abort, nothing is left behind.
   */
  async #existsNevertheless({ key, upload: id, signal }: StartedUpload, upload: Upload): Promise<boolean> {
    const limited = AbortSignal.timeout(CLEAN_UP_MS);
    await upload.cancel(limited).catch(() => undefined);
    const found = await this.#find(key, limited).catch(() => undefined);
    if (found?.upload !== id) return false;
    if (!signal.aborted) return true;
    await this.#remove(key, limited).catch(() => undefined);
    return false;
  }

  get(key: string, signal: AbortSignal): Promise<Download> {
    return this.#explained(key, async () => {
      const found = await this.#find(key, signal);
      if (!found)
        throw new AgentFailure(
          'ObjectNotFound',
          `there is no ${this.uri(key)}: check the key; it is the full name of the object, with all suffixes`,
        );
      // Requests the first bytes here, so that `get` itself reports a refusal and not the reader of the body.
      const read = (from: number, stop: AbortSignal) => this.#service.read(found, from, stop);
      const body = wholeBody(await opened(read, 0, signal), found.size, read, signal);
      return { size: found.size, body: this.#explainedBody(key, body) };
    });
  }

  async *#explainedBody(key: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      throw errorMessage(error, this.#service.phrases, key);
    }
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    for (let from: string | undefined; ; ) {
      const page = await this.#explained(prefix, () => withRetry({}, (stop) => this.#service.list(prefix, from, stop)));
      yield* page.objects;
      if (page.next === undefined) return;
      from = page.next;
    }
  }

  delete(key: string): Promise<void> {
    return this.#explained(key, () => this.#remove(key, NEVER));
  }

  uri(key: string): string {
    return this.#service.uri(key);
  }
}

export const shown = ({ key, size, uid }: Found): StoredObject => ({ key, size, ...(uid !== undefined && { uid }) });

export function exists(uri: string, own: boolean): AgentFailure {
  return new AgentFailure(
    'ObjectExists',
    own
      ? `${uri} was already written for this snapshot and must not be replaced`
      : `${uri} exists and belongs to another snapshot or writer; it was not overwritten: use another key or bucket, or another name for the snapshot`,
  );
}
