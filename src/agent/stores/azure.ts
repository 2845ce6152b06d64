/** Azure Blob Storage: blocks are invisible until they are committed. */
import type { BlobItem, BlockBlobClient, ContainerClient } from '@azure/storage-blob';
import { present } from '../../lib/present.ts';
import { errorInfo } from '../transfer/error-info.ts';
import { type ErrorPhrases, LOCKED } from '../transfer/error-message.ts';
import { LONG_CALL_MS, withRetry } from '../transfer/retry.ts';
import { type AzurePlace, azureContainer } from './azure-client.ts';
import {
  metadataOf,
  ownerIn,
  PAGE_SIZE,
  RemoteStore,
  type Service,
  type StartedUpload,
  type Upload,
} from './remote.ts';
import type { ReadSecret, Store } from './store.ts';

/** Metadata names are identifiers here: no hyphens. */
const SEPARATOR = '_';

export async function openAzure(place: AzurePlace, secrets: ReadSecret): Promise<Store> {
  return new RemoteStore(azureService(await azureContainer(place, secrets)));
}

const azureService = (container: ContainerClient): Service => ({
  phrases: azurePhrases(container),
  width: 4,

  async find(key, abortSignal) {
    try {
      const blob = await container.getBlockBlobClient(key).getProperties({ abortSignal });
      const owner = ownerIn(blob.metadata, SEPARATOR);
      return { key, size: blob.contentLength ?? 0, version: blob.etag ?? '', ...owner };
    } catch (error) {
      const { status, code } = errorInfo(error);
      if (status !== 404 || code === 'ContainerNotFound') throw error;
      return undefined;
    }
  },

  /** The next commit discards uncommitted blocks, or the service does after a week. */
  begin: async (started) => azureUpload(container.getBlockBlobClient(started.key), started),

  async read({ key, version }, from, abortSignal) {
    const options = { conditions: { ifMatch: version }, abortSignal, maxRetryRequests: 0 };
    const { readableStreamBody } = await container.getBlockBlobClient(key).download(from, undefined, options);
    return readableStreamBody as unknown as AsyncIterable<Uint8Array>;
  },

  async list(prefix, continuationToken, abortSignal) {
    const from = { ...(continuationToken && { continuationToken }), maxPageSize: PAGE_SIZE };
    const pages = container.listBlobsFlat({ prefix, includeMetadata: true, abortSignal }).byPage(from);
    const page = (await pages.next()).value;
    const objects = (page?.segment.blobItems ?? []).map(({ name, properties, metadata }: BlobItem) => {
      const { uid, schedule } = ownerIn(metadata, SEPARATOR);
      return { key: name, size: properties.contentLength ?? 0, ...present({ uid, schedule }) };
    });
    return { objects, next: page?.continuationToken || undefined };
  },

  async remove(key, abortSignal) {
    await container.getBlockBlobClient(key).deleteIfExists({ abortSignal });
    return 'deleted';
  },

  /** Without the query, which may contain a SAS token. */
  uri(key) {
    const url = new URL(container.getBlobClient(key).url);
    return `${url.origin}${url.pathname}`;
  },
});

function azureUpload(blob: BlockBlobClient, { contentType, over, ...owner }: StartedUpload): Upload {
  let count = 0;
  /** All of one length, as the service requires, and unique to this upload: blocks of a killed upload are not committed. */
  const blockId = (number: number): string =>
    Buffer.from(`${owner.upload}-${String(number).padStart(6, '0')}`).toString('base64');
  return {
    async send({ bytes, number }, signal) {
      if (bytes.length === 0) return; // an empty object has no block
      await withRetry({ signal, timeoutMs: LONG_CALL_MS }, (abortSignal) =>
        blob.stageBlock(blockId(number), bytes, bytes.length, { abortSignal }),
      );
      count = Math.max(count, number);
    },

    async commit(signal) {
      const ids = Array.from({ length: count }, (_, index) => blockId(index + 1));
      await withRetry({ signal, timeoutMs: LONG_CALL_MS }, (abortSignal) =>
        blob.commitBlockList(ids, {
          abortSignal,
          conditions: over === undefined ? { ifNoneMatch: '*' } : { ifMatch: over },
          metadata: metadataOf(owner, SEPARATOR),
          blobHTTPHeaders: { blobContentType: contentType },
        }),
      );
    },

    cancel: async () => {},
  };
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
      BlobImmutableDueToPolicy: LOCKED,
      BlobImmutableDueToLegalHold: LOCKED,
      LeaseIdMissing: LOCKED,
      BlobNotFound: ['ObjectNotFound', 'there is no such blob'],
      AuthenticationFailed: ['AccessDenied', 'the key or token is not accepted: check it, and that it has not expired'],
      CredentialUnavailableError: noIdentity,
      AggregateAuthenticationError: noIdentity,
      AuthenticationError: ['AccessDenied', 'the identity of the Pod is not accepted: check its federated credentials'],
      InvalidBlockList: ['ObjectExists', 'another process wrote it meanwhile; it was not overwritten'],
    },
  };
}
