/** Google Cloud Storage: a resumable upload in parts; the object becomes visible with the last one. */
import type { Dispatcher } from 'undici';
import { AgentFailure } from '../failure.ts';
import { Refusal } from '../transfer/error-info.ts';
import type { ErrorPhrases } from '../transfer/error-message.ts';
import type { Part } from '../transfer/multipart.ts';
import { LONG_CALL_MS, withRetry } from '../transfer/retry.ts';
import { type GcsClient, type GcsPlace, gcsClient } from './gcs-client.ts';
import { type Found, PAGE_SIZE, RemoteStore, type Service, type StartedUpload, type Upload } from './remote.ts';
import type { ReadSecret, Store, StoredObject } from './store.ts';

const UID = 'etcd-snapshot-uid';
const UPLOAD = 'etcd-snapshot-upload';
/** Google's status for "resume incomplete". */
const RESUME = 308;
const DONE = [200, 201];

/** The requested fields of an object. */
const FIELDS = 'name,size,generation,metadata';
interface Description {
  readonly name: string;
  readonly size: string;
  readonly generation: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export async function openGcs(place: GcsPlace, secrets: ReadSecret): Promise<Store> {
  return new RemoteStore(new GcsService(place.bucket, await gcsClient(place, secrets)));
}

class GcsService implements Service {
  readonly phrases: ErrorPhrases;
  /** One part is in flight while the next is filled: Google requires them in order. */
  readonly width = 2;
  readonly #client: GcsClient;
  readonly #bucket: string;
  readonly #objects: string;

  constructor(bucket: string, client: GcsClient) {
    this.#client = client;
    this.#bucket = bucket;
    this.#objects = `/storage/v1/b/${encodeURIComponent(bucket)}/o`;
    this.phrases = gcsPhrases(bucket, client.base);
  }

  #object(key: string, query: Readonly<Record<string, string | undefined>> = {}): URL {
    return this.#client.url(`${this.#objects}/${encodeURIComponent(key)}`, query);
  }

  find(key: string, signal: AbortSignal): Promise<Found | undefined> {
    return withRetry({ signal }, async (stop) => {
      const answer = await this.#client.call(this.#object(key, { fields: FIELDS }), {
        signal: stop,
        wanted: [200, 404],
      });
      if (answer.statusCode === 200) return described((await answer.body.json()) as Description);
      await answer.body.dump();
      await this.#page({ prefix: key, maxResults: '1' }, stop); // a missing bucket has the same status as a missing object
      return undefined;
    });
  }

  async #page(
    query: Readonly<Record<string, string | undefined>>,
    signal: AbortSignal,
  ): Promise<{ readonly items?: readonly Description[]; readonly nextPageToken?: string }> {
    const url = this.#client.url(this.#objects, { fields: `nextPageToken,items(${FIELDS})`, ...query });
    try {
      const answer = await this.#client.call(url, { signal, wanted: [200] });
      return (await answer.body.json()) as object;
    } catch (error) {
      throw error instanceof Refusal && error.status === 404 ? new Refusal(404, 'NoSuchBucket') : error;
    }
  }

  async begin(started: StartedUpload): Promise<Upload> {
    const { key, uid, upload, contentType, signal, over = '0' } = started;
    const query = { uploadType: 'resumable', name: key, ifGenerationMatch: over };
    const url = this.#client.url(`/upload${this.#objects}`, query);
    const body = JSON.stringify({ name: key, contentType, metadata: { [UID]: uid, [UPLOAD]: upload } });
    const headers = { 'content-type': 'application/json', 'x-upload-content-type': contentType };
    const session = await withRetry({ signal }, async (stop) => {
      const answer = await this.#client.call(url, { method: 'POST', headers, body, signal: stop, wanted: DONE });
      await answer.body.dump();
      return URL.parse(String(answer.headers['location']));
    });
    // The bytes are sent to the user's endpoint, not to an address in a response.
    if (session?.origin !== this.#client.base.origin)
      throw new AgentFailure(
        'Misconfigured',
        `${this.phrases.place}: the service redirects the upload to another host, and redirects are not followed: check the endpoint`,
      );
    return new GcsUpload(this.#client, session);
  }

  async read({ key, version }: Found, from: number, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const headers = from > 0 ? { range: `bytes=${from}-` } : {};
    const url = this.#object(key, { alt: 'media', generation: version });
    return (await this.#client.call(url, { headers, signal, wanted: from > 0 ? [206] : [200] })).body;
  }

  async *list(prefix: string): AsyncGenerator<StoredObject, void, undefined> {
    for (let pageToken: string | undefined; ; ) {
      const page = await withRetry({}, (stop) =>
        this.#page({ prefix, pageToken, maxResults: String(PAGE_SIZE) }, stop),
      );
      for (const item of page.items ?? []) {
        const { key, size, uid } = described(item);
        yield { key, size, ...(uid !== undefined && { uid }) };
      }
      if (!page.nextPageToken) return;
      pageToken = page.nextPageToken;
    }
  }

  async remove(key: string, signal: AbortSignal): Promise<void> {
    await withRetry({ signal }, async (stop) => {
      const answer = await this.#client.call(this.#object(key), {
        method: 'DELETE',
        signal: stop,
        wanted: [200, 204, 404],
      });
      await answer.body.dump();
    });
  }

  uri(key: string): string {
    return `gs://${this.#bucket}/${key}`;
  }
}

function described({ name, size, generation, metadata = {} }: Description): Found {
  const { [UID]: uid, [UPLOAD]: upload } = metadata;
  return { key: name, size: Number(size), version: String(generation), ...(uid && { uid }), ...(upload && { upload }) };
}

class GcsUpload implements Upload {
  readonly #client: GcsClient;
  readonly #session: URL;
  #turn: Promise<void> = Promise.resolve();

  constructor(client: GcsClient, session: URL) {
    this.#client = client;
    this.#session = session;
  }

  send(piece: Part, signal: AbortSignal): Promise<void> {
    const sent = this.#turn.then(() => this.#send(piece, signal));
    this.#turn = sent;
    return sent;
  }

  /**
   * The service ignores bytes that it already has, so a part whose fate is unknown is sent again; it may also accept
   * less than was sent.
   */
  async #send({ bytes, offset, last }: Part, signal: AbortSignal): Promise<void> {
    const end = offset + bytes.length;
    const total = last ? String(end) : '*';
    for (let begin = offset; ; ) {
      const body = bytes.subarray(begin - offset);
      const range = body.length === 0 ? `bytes */${total}` : `bytes ${begin}-${end - 1}/${total}`;
      const wanted = last ? [RESUME, ...DONE] : [RESUME];
      const answer = await withRetry({ signal, timeoutMs: LONG_CALL_MS }, async (stop) => {
        const call = { method: 'PUT', headers: { 'content-range': range }, body, signal: stop, wanted } as const;
        const each = await this.#client.call(this.#session, call);
        await each.body.dump();
        return each;
      });
      if (answer.statusCode !== RESUME) return;
      const received = receivedOf(answer);
      if (received === end && !last) return;
      if (received <= begin || received > end) throw new Refusal(RESUME, 'NoProgress');
      begin = received;
    }
  }

  /** The last part completed the upload. */
  async commit(): Promise<void> {}

  async cancel(signal: AbortSignal): Promise<void> {
    await withRetry({ signal }, (stop) =>
      this.#client.call(this.#session, { method: 'DELETE', signal: stop, wanted: [200, 204, 404, 410, 499] }),
    );
  }
}

/** How many bytes the service has, from the start. */
function receivedOf({ headers }: Dispatcher.ResponseData): number {
  const [, last] = /^bytes=0-(\d+)$/.exec(String(headers['range'] ?? '')) ?? [];
  return last === undefined ? 0 : Number(last) + 1;
}

function gcsPhrases(bucket: string, base: URL): ErrorPhrases {
  return {
    place: `the bucket "${bucket}" at ${base.origin}`,
    permissions: 'the service account needs storage.objects.create, get, list and delete on the bucket',
    codes: {
      NoSuchBucket: ['BucketNotFound', 'there is no such bucket: create it, or check the name'],
      NoProgress: ['StoreUnreachable', 'the service accepts no more bytes of the upload: try again later'],
      quotaExceeded: ['NoSpace', 'the quota of the project is exceeded: raise it, or remove old snapshots'],
      invalid_grant: [
        'AccessDenied',
        'the credentials are not accepted: check that the service account and its key exist',
      ],
    },
  };
}
