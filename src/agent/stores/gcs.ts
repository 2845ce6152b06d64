/** Google Cloud Storage: a resumable upload in parts; the object becomes visible with the last one. */
import type { Dispatcher } from 'undici';
import { misconfigured } from '../failure.ts';
import { Refusal } from '../transfer/error-info.ts';
import { type ErrorPhrases, LOCKED } from '../transfer/error-message.ts';
import type { Part } from '../transfer/multipart.ts';
import { LONG_CALL_MS, withRetry } from '../transfer/retry.ts';
import { type GcsClient, type GcsPlace, gcsClient, UNDER_HOLD } from './gcs-client.ts';
import { type Found, metadataOf, ownerIn, PAGE_SIZE, RemoteStore, type Service, shown, type Upload } from './remote.ts';
import type { ReadSecret, Store } from './store.ts';

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
  return new RemoteStore(gcsService(place.bucket, await gcsClient(place, secrets)));
}

type Query = Readonly<Record<string, string | undefined>>;

function gcsService(bucket: string, client: GcsClient): Service {
  const objects = `/storage/v1/b/${encodeURIComponent(bucket)}/o`;
  const phrases = gcsPhrases(bucket, client.base);
  const object = (key: string, query: Query = {}): URL => client.url(`${objects}/${encodeURIComponent(key)}`, query);

  const page = async (
    query: Query,
    signal: AbortSignal,
  ): Promise<{ readonly items?: readonly Description[]; readonly nextPageToken?: string }> => {
    const url = client.url(objects, { fields: `nextPageToken,items(${FIELDS})`, ...query });
    try {
      const answer = await client.call(url, { signal, wanted: [200] });
      return (await answer.body.json()) as object;
    } catch (error) {
      throw error instanceof Refusal && error.status === 404 ? new Refusal(404, 'NoSuchBucket') : error;
    }
  };

  return {
    phrases,
    /** One part is in flight while the next is filled: Google requires them in order. */
    width: 2,

    async find(key, signal) {
      const answer = await client.call(object(key, { fields: FIELDS }), { signal, wanted: [200, 404] });
      if (answer.statusCode === 200) return described((await answer.body.json()) as Description);
      await answer.body.dump();
      await page({ prefix: key, maxResults: '1' }, signal); // a missing bucket has the same status as a missing object
      return undefined;
    },

    async begin({ key, contentType, signal, over = '0', ...owner }) {
      const query = { uploadType: 'resumable', name: key, ifGenerationMatch: over };
      const url = client.url(`/upload${objects}`, query);
      const body = JSON.stringify({ name: key, contentType, metadata: metadataOf(owner) });
      const headers = { 'content-type': 'application/json', 'x-upload-content-type': contentType };
      const session = await withRetry({ signal }, async (stop) => {
        const answer = await client.call(url, { method: 'POST', headers, body, signal: stop, wanted: DONE });
        await answer.body.dump();
        return URL.parse(String(answer.headers['location']));
      });
      // The bytes are sent to the user's endpoint, not to an address in a response.
      if (session?.origin !== client.base.origin)
        throw misconfigured(
          `${phrases.place}: the service redirects the upload to another host, and redirects are not followed: check the endpoint`,
        );
      return gcsUpload(client, session);
    },

    async read({ key, version }, from, signal) {
      const headers = from > 0 ? { range: `bytes=${from}-` } : {};
      const url = object(key, { alt: 'media', generation: version });
      return (await client.call(url, { headers, signal, wanted: from > 0 ? [206] : [200] })).body;
    },

    async list(prefix, pageToken, signal) {
      const { items = [], nextPageToken } = await page({ prefix, pageToken, maxResults: String(PAGE_SIZE) }, signal);
      return { objects: items.map((item) => shown(described(item))), next: nextPageToken || undefined };
    },

    async remove(key, signal) {
      const answer = await client.call(object(key), { method: 'DELETE', signal, wanted: [200, 204, 404] });
      await answer.body.dump();
      return 'deleted';
    },

    uri: (key) => `gs://${bucket}/${key}`,
  };
}

const described = ({ name, size, generation, metadata }: Description): Found => ({
  key: name,
  size: Number(size),
  version: String(generation),
  ...ownerIn(metadata),
});

function gcsUpload(client: GcsClient, session: URL): Upload {
  /**
   * The service ignores bytes that it already has, so a part whose fate is unknown is sent again; it may also accept
   * less than was sent.
   */
  const sendPart = async ({ bytes, offset, last }: Part, signal: AbortSignal): Promise<void> => {
    const end = offset + bytes.length;
    const total = last ? String(end) : '*';
    for (let begin = offset; ; ) {
      const body = bytes.subarray(begin - offset);
      const range = body.length === 0 ? `bytes */${total}` : `bytes ${begin}-${end - 1}/${total}`;
      const wanted = last ? [RESUME, ...DONE] : [RESUME];
      const answer = await withRetry({ signal, timeoutMs: LONG_CALL_MS }, async (stop) => {
        const call = { method: 'PUT', headers: { 'content-range': range }, body, signal: stop, wanted } as const;
        const each = await client.call(session, call);
        await each.body.dump();
        return each;
      });
      if (answer.statusCode !== RESUME) return;
      const received = receivedOf(answer);
      if (received === end && !last) return;
      if (received <= begin || received > end) throw new Refusal(RESUME, 'NoProgress');
      begin = received;
    }
  };

  let turn: Promise<void> = Promise.resolve();
  return {
    send(piece, signal) {
      const sent = turn.then(() => sendPart(piece, signal));
      turn = sent;
      return sent;
    },

    /** The last part completed the upload. */
    commit: async () => {},

    async cancel(signal) {
      await withRetry({ signal }, (stop) =>
        client.call(session, { method: 'DELETE', signal: stop, wanted: [200, 204, 404, 410, 499] }),
      );
    },
  };
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
      retentionPolicyNotMet: LOCKED,
      [UNDER_HOLD]: LOCKED,
      quotaExceeded: ['NoSpace', 'the quota of the project is exceeded: raise it, or remove old snapshots'],
      invalid_grant: [
        'AccessDenied',
        'the credentials are not accepted: check that the service account and its key exist',
      ],
    },
  };
}
