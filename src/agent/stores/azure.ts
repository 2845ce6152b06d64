/** Azure Blob Storage: blocks are invisible until they are committed. */
import type { BlockBlobClient, ContainerClient } from '@azure/storage-blob';
import { errorInfo } from '../transfer/error-info.ts';
import type { ErrorPhrases } from '../transfer/error-message.ts';
import type { Part } from '../transfer/multipart.ts';
import { LONG_CALL_MS, withRetry } from '../transfer/retry.ts';
import { type AzurePlace, azureContainer } from './azure-client.ts';
import { type Found, PAGE_SIZE, RemoteStore, type Service, type StartedUpload, type Upload } from './remote.ts';
import type { ReadSecret, Store, StoredObject } from './store.ts';

/** Metadata names are identifiers here: no hyphens. */
const UID = 'etcd_snapshot_uid';
const UPLOAD = 'etcd_snapshot_upload';

export async function openAzure(place: AzurePlace, secrets: ReadSecret): Promise<Store> {
  return new RemoteStore(new AzureService(await azureContainer(place, secrets)));
}

class AzureService implements Service {
  readonly phrases: ErrorPhrases;
  readonly width = 4;
  readonly #container: ContainerClient;

  constructor(container: ContainerClient) {
    this.#container = container;
    this.phrases = azurePhrases(container);
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

  /** The next commit discards uncommitted blocks, or the service does after a week. */
  async begin(started: StartedUpload): Promise<Upload> {
    return new AzureUpload(this.#container.getBlockBlobClient(started.key), started);
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

  /** Without the query, which may contain a SAS token. */
  uri(key: string): string {
    const url = new URL(this.#container.getBlobClient(key).url);
    return `${url.origin}${url.pathname}`;
  }
}

class AzureUpload implements Upload {
  readonly #blob: BlockBlobClient;
  readonly #started: StartedUpload;
  #count = 0;

  constructor(blob: BlockBlobClient, started: StartedUpload) {
    this.#blob = blob;
    this.#started = started;
  }

  /**
   * All of one length, as the service requires, and unique to this upload: blocks of a killed upload are not committed.
   */
  #id(number: number): string {
    return Buffer.from(`${this.#started.upload}-${String(number).padStart(6, '0')}`).toString('base64');
  }

  async send({ bytes, number }: Part, signal: AbortSignal): Promise<void> {
    if (bytes.length === 0) return; // an empty object has no block
    await withRetry({ signal, timeoutMs: LONG_CALL_MS }, (abortSignal) =>
      this.#blob.stageBlock(this.#id(number), bytes, bytes.length, { abortSignal }),
    );
    this.#count = Math.max(this.#count, number);
  }

  async commit(signal: AbortSignal): Promise<void> {
    const { uid, upload, contentType, over } = this.#started;
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

function azurePhrases(container: ContainerClient): ErrorPhrases {
  const { origin, pathname } = new URL(container.url);
  const noIdentity = [
    'Misconfigured',
    'the Pod has no cloud identity: set a Secret with credentials, or a service account with a workload identity',
  ] as const;
  return {
    place: `the container ${origin}${pathname}`,
    permissions: 'they need to read, write, list and delete blobs, such as the role Storage Blob Data Contributor',
    codes: {
      ContainerNotFound: ['BucketNotFound', 'there is no such container: create it, or check the name'],
      ContainerBeingDeleted: ['BucketNotFound', 'the container is being deleted'],
      BlobNotFound: ['ObjectNotFound', 'there is no such blob'],
      AuthenticationFailed: ['AccessDenied', 'the key or token is not accepted: check it, and that it has not expired'],
      CredentialUnavailableError: noIdentity,
      AggregateAuthenticationError: noIdentity,
      AuthenticationError: ['AccessDenied', 'the identity of the Pod is not accepted: check its federated credentials'],
      InvalidBlockList: ['ObjectExists', 'another process wrote it meanwhile; it was not overwritten'],
    },
  };
}
