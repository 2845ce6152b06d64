/** Azure Blob Storage: blocks that are nobody's until they are committed. */
import type { BlockBlobClient, ContainerClient } from '@azure/storage-blob';
import { errorInfo } from '../transfer/error-info.ts';
import type { ErrorPhrases } from '../transfer/error-message.ts';
import type { Part } from '../transfer/multipart.ts';
import { LONG_CALL_MS, withRetry } from '../transfer/retry.ts';
import { type AzurePlace, azureContainer } from './azure-client.ts';
import { type Found, PAGE_SIZE, RemoteStore, type Service, type StartedUpload, type Upload } from './remote.ts';
import type { ReadSecret, Store, StoredObject } from './store.ts';

/** Names of metadata are identifiers here: no hyphens. */
const UID = 'etcd_snapshot_uid';
const UPLOAD = 'etcd_snapshot_upload';

export async function openAzure(place: AzurePlace, secrets: ReadSecret): Promise<Store> {
  return new RemoteStore(new AzureService(await azureContainer(place, secrets)));
}

class AzureService implements Service {
  readonly words: ErrorPhrases;
  readonly width = 4;
  readonly #container: ContainerClient;

  constructor(container: ContainerClient) {
    this.#container = container;
    this.words = azureWords(container);
  }

  find(key: string, signal: AbortSignal): Promise<Found | undefined> {
    return withRetry({ signal }, async (abortSignal) => {
      try {
        const blob = await this.#container.getBlockBlobClient(key).getProperties({ abortSignal });
        const { [UID]: uid, [UPLOAD]: upload } = blob.metadata ?? {};
        const version = blob.etag ?? '';
        return { key, size: blob.contentLength ?? 0, version, ...(uid && { uid }), ...(upload && { upload }) };
      } catch (error) {
        const { status, code } = errorInfo(error);
        if (status !== 404 || code === 'ContainerNotFound') throw error;
        return undefined;
      }
    });
  }

  /** Blocks that were never committed are dropped by the next commit, or by the service after a week. */
  async begin(begun: StartedUpload): Promise<Upload> {
    return new AzureUpload(this.#container.getBlockBlobClient(begun.key), begun);
  }

  async read({ key, version }: Found, from: number, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const options = { conditions: { ifMatch: version }, abortSignal: signal, maxRetryRequests: 0 };
    const { readableStreamBody } = await this.#container.getBlockBlobClient(key).download(from, undefined, options);
    return readableStreamBody as unknown as AsyncIterable<Uint8Array>;
  }

  async *list(prefix: string): AsyncGenerator<StoredObject, void, undefined> {
    for (let continuationToken: string | undefined; ; ) {
      const from = { ...(continuationToken && { continuationToken }), maxPageSize: PAGE_SIZE };
      const page = await withRetry({}, async (abortSignal) => {
        const pages = this.#container.listBlobsFlat({ prefix, includeMetadata: true, abortSignal }).byPage(from);
        return (await pages.next()).value;
      });
      for (const { name, properties, metadata } of page?.segment.blobItems ?? []) {
        const uid = metadata?.[UID];
        yield { key: name, size: properties.contentLength ?? 0, ...(uid !== undefined && { uid }) };
      }
      if (!page?.continuationToken) return;
      continuationToken = page.continuationToken;
    }
  }

  async remove(key: string, signal: AbortSignal): Promise<void> {
    await withRetry({ signal }, (abortSignal) =>
      this.#container.getBlockBlobClient(key).deleteIfExists({ abortSignal }),
    );
  }

  /** Without the query, which may be a token. */
  uri(key: string): string {
    const url = new URL(this.#container.getBlobClient(key).url);
    return `${url.origin}${url.pathname}`;
  }
}

class AzureUpload implements Upload {
  readonly #blob: BlockBlobClient;
  readonly #begun: StartedUpload;
  #count = 0;

  constructor(blob: BlockBlobClient, begun: StartedUpload) {
    this.#blob = blob;
    this.#begun = begun;
  }

  /** All of one length, as the service demands, and of this upload: those of a killed one are not taken for ours. */
  #id(number: number): string {
    return Buffer.from(`${this.#begun.upload}-${String(number).padStart(6, '0')}`).toString('base64');
  }

  async send({ bytes, number }: Part, signal: AbortSignal): Promise<void> {
    if (bytes.length === 0) return; // an empty object has no block
    await withRetry({ signal, timeoutMs: LONG_CALL_MS }, (abortSignal) =>
      this.#blob.stageBlock(this.#id(number), bytes, bytes.length, { abortSignal }),
    );
    this.#count = Math.max(this.#count, number);
  }

  async commit(signal: AbortSignal): Promise<void> {
    const { uid, upload, contentType, over } = this.#begun;
    const ids = Array.from({ length: this.#count }, (_, index) => this.#id(index + 1));
    await withRetry({ signal, timeoutMs: LONG_CALL_MS }, (abortSignal) =>
      this.#blob.commitBlockList(ids, {
        abortSignal,
        conditions: over === undefined ? { ifNoneMatch: '*' } : { ifMatch: over },
        metadata: { [UID]: uid, [UPLOAD]: upload },
        blobHTTPHeaders: { blobContentType: contentType },
      }),
    );
  }

  async cancel(): Promise<void> {}
}

function azureWords(container: ContainerClient): ErrorPhrases {
  const { origin, pathname } = new URL(container.url);
  const noIdentity = [
    'Misconfigured',
    'the Pod is given no identity by its cloud: name a Secret with credentials, or a service account that has one',
  ] as const;
  return {
    place: `the container ${origin}${pathname}`,
    rights: 'they need to read, write, list and delete blobs, such as the role Storage Blob Data Contributor',
    codes: {
      ContainerNotFound: ['BucketNotFound', 'there is no such container: create it, or check the name'],
      ContainerBeingDeleted: ['BucketNotFound', 'the container is being deleted'],
      BlobNotFound: ['ObjectNotFound', 'there is no such blob'],
      AuthenticationFailed: ['AccessDenied', 'the key or token is not accepted: check it, and that it has not expired'],
      CredentialUnavailableError: noIdentity,
      AggregateAuthenticationError: noIdentity,
      AuthenticationError: ['AccessDenied', 'the identity of the Pod is not accepted: check what it is federated with'],
      InvalidBlockList: ['ObjectExists', 'somebody else wrote it meanwhile, and that is left alone'],
    },
  };
}
