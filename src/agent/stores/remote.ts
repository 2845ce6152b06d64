/** A store that is a cloud service: the part that all of them share. A Service implements the calls of one. */
import { randomUUID } from 'node:crypto';
import { present } from '../../lib/present.ts';
import { AgentFailure } from '../failure.ts';
import { type ErrorPhrases, errorMessage } from '../transfer/error-message.ts';
import { atOnce, BodyFailure, type Part, partBytes, sendParts } from '../transfer/multipart.ts';
import { opened, wholeBody } from '../transfer/resumable-download.ts';
import { NEVER, withRetry } from '../transfer/retry.ts';
import type { Deletion, Download, PutOptions, Store, StoredObject } from './store.ts';

/** Of a listing. */
export const PAGE_SIZE = 200;
/**
 * A hostile or broken service lists for ever: the agent would run until it has no memory, or its deadline has passed.
 * Retention keeps at most 100,000 snapshots by number, and each is two objects.
 */
export const MAX_LISTED = 250_000;

export interface Found extends StoredObject {
  /** Changes whenever the object does: an etag, or a generation. */
  readonly version: string;
}

export interface StartedUpload {
  readonly key: string;
  readonly uid: string;
  readonly schedule?: string | undefined;
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
  /**
   * Once the object is visible, no other upload of its key can succeed: aborts those that the service lists. Not
   * earlier: one of them may be the upload of another cluster, which would lose its snapshot to ours that then fails.
   */
  abortOthers?(signal: AbortSignal): Promise<void>;
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
  begin(started: StartedUpload): Promise<Upload>;
  /** From this byte on, of exactly this version. One attempt. */
  read(found: Found, from: number, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** One attempt. `from`: where the previous page ended. */
  list(prefix: string, from: string | undefined, signal: AbortSignal): Promise<Page>;
  /** One attempt. Succeeds when the object does not exist. */
  remove(key: string, signal: AbortSignal): Promise<Deletion>;
  /** Absent where the service itself expires unfinished uploads. */
  removeUnfinished?(prefix: string, before: number): Promise<number>;
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

  #remove(key: string, signal: AbortSignal): Promise<Deletion> {
    return withRetry({ signal }, (stop) => this.#service.remove(key, stop));
  }

  put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<void> {
    return this.#explained(key, () => this.#put(key, body, options));
  }

  async #put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<void> {
    const { uid, schedule, signal, contentType = 'application/octet-stream' } = options;
    const before = await this.#find(key, signal);
    if (before && !(options.replace && before.uid === uid)) throw exists(this.uri(key), before.uid === uid);
    const over = before && { over: before.version };
    const started: StartedUpload = { key, uid, schedule, upload: randomUUID(), contentType, signal, ...over };
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
      const there = await this.#foundAfterFailure(started, upload);
      const isOther = there !== undefined && there.upload !== started.upload && there.version !== started.over;
      if (isOther && !(error instanceof BodyFailure) && !signal.aborted) throw exists(this.uri(key), there.uid === uid);
      if (there?.upload !== started.upload) throw error;
    }
    await this.#requireWhole(started, sent);
    await upload.abortOthers?.(signal);
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
   * success. Otherwise, or after an abort, nothing of ours is left behind, and there may be the object of another agent.
   */
  async #foundAfterFailure({ key, upload: id, signal }: StartedUpload, upload: Upload): Promise<Found | undefined> {
    const limited = AbortSignal.timeout(CLEAN_UP_MS);
    await upload.cancel(limited).catch(() => undefined);
    const found = await this.#find(key, limited).catch(() => undefined);
    if (found?.upload !== id || !signal.aborted) return found;
    await this.#remove(key, limited).catch(() => undefined);
    return undefined;
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
    let [from, listed]: [string | undefined, number] = [undefined, 0];
    do {
      const page = await this.#explained(prefix, () => withRetry({}, (stop) => this.#service.list(prefix, from, stop)));
      listed += page.objects.length;
      if (listed > MAX_LISTED || (page.next !== undefined && page.next === from)) throw this.#endless(prefix, listed);
      yield* page.objects;
      from = page.next;
    } while (from !== undefined);
  }

  #endless(prefix: string, listed: number): AgentFailure {
    const message = `the listing of ${this.uri(prefix)} does not end after ${listed} objects: check the service, or use a key prefix of its own for each cluster`;
    return new AgentFailure('Misconfigured', message);
  }

  delete(key: string): Promise<Deletion> {
    return this.#explained(key, () => this.#remove(key, NEVER));
  }

  removeUnfinished(prefix: string, before: number): Promise<number> {
    return this.#explained(prefix, async () => (await this.#service.removeUnfinished?.(prefix, before)) ?? 0);
  }

  uri(key: string): string {
    return this.#service.uri(key);
  }
}

export const shown = ({ key, size, uid, schedule, upload }: Found): StoredObject => ({
  key,
  size,
  ...present({ uid, schedule, upload }),
});

type Metadata = Readonly<Record<string, string>>;
/** Whose an object is, in its metadata. Where their names must be identifiers, `separator` is an underscore. */
const metadataName = (what: 'uid' | 'schedule' | 'upload', separator: string): string =>
  ['etcd', 'snapshot', what].join(separator);

export const metadataOf = (
  { uid, schedule, upload }: Pick<StartedUpload, 'uid' | 'schedule' | 'upload'>,
  separator = '-',
): Record<string, string> => ({
  [metadataName('uid', separator)]: uid,
  [metadataName('upload', separator)]: upload,
  ...(schedule !== undefined && { [metadataName('schedule', separator)]: schedule }),
});

export function ownerIn(metadata: Metadata = {}, separator = '-'): Pick<Found, 'uid' | 'schedule' | 'upload'> {
  const read = (what: 'uid' | 'schedule' | 'upload') => metadata[metadataName(what, separator)] || undefined;
  return present({ uid: read('uid'), schedule: read('schedule'), upload: read('upload') });
}

export function exists(uri: string, own: boolean): AgentFailure {
  return new AgentFailure(
    'ObjectExists',
    own
      ? `${uri} was already written for this snapshot and must not be replaced`
      : `${uri} exists and belongs to another snapshot or writer; it was not overwritten: use another key or bucket, or another name for the snapshot`,
  );
}
