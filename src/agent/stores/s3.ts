/** S3 and compatible services. */
import { setTimeout } from 'node:timers/promises';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type MultipartUpload,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { errorInfo } from '../transfer/error-info.ts';
import { type ErrorPhrases, LOCKED } from '../transfer/error-message.ts';
import { LONG_CALL_MS, NEVER, withRetry } from '../transfer/retry.ts';
import {
  metadataOf,
  ownerIn,
  PAGE_SIZE,
  RemoteStore,
  type Service,
  type StartedUpload,
  type Upload,
} from './remote.ts';
import { type S3Place, s3Client } from './s3-client.ts';
import type { ReadSecret, Store } from './store.ts';

export async function openS3(place: S3Place, secrets: ReadSecret): Promise<Store> {
  return new RemoteStore(s3Service(place, await s3Client(place, secrets)));
}

interface At {
  readonly Bucket: string;
  readonly Key: string;
}

function s3Service(place: S3Place, client: S3Client): Service {
  const { bucket: Bucket } = place;
  return {
    phrases: s3Phrases(place),
    width: 4,

    async find(key, abortSignal) {
      try {
        const head = await client.send(new HeadObjectCommand({ Bucket, Key: key }), { abortSignal });
        return { key, size: head.ContentLength ?? 0, version: head.ETag ?? '', ...ownerIn(head.Metadata) };
      } catch (error) {
        if (errorInfo(error).status !== 404) throw error;
        // A response to HEAD has no body, so it does not tell a missing bucket from a missing object.
        await client.send(new HeadBucketCommand({ Bucket }), { abortSignal }).catch(missing);
        return undefined;
      }
    },

    begin: async (started) => s3Upload(client, place, started),

    async read({ key, version }, from, abortSignal) {
      const part = { Bucket, Key: key, IfMatch: version, ...(from > 0 && { Range: `bytes=${from}-` }) };
      const { Body } = await client.send(new GetObjectCommand(part), { abortSignal });
      return Body as unknown as AsyncIterable<Uint8Array>;
    },

    async list(Prefix, from, abortSignal) {
      const wanted = { Bucket, Prefix, MaxKeys: PAGE_SIZE, ...(from !== undefined && { ContinuationToken: from }) };
      const page = await client.send(new ListObjectsV2Command(wanted), { abortSignal });
      const objects = (page.Contents ?? []).flatMap(({ Key, Size = 0 }) =>
        Key === undefined ? [] : [{ key: Key, size: Size }],
      );
      return { objects, next: page.IsTruncated ? page.NextContinuationToken : undefined };
    },

    /** In a bucket with versions, a deletion only adds a marker. */
    async remove(key, abortSignal) {
      const command = new DeleteObjectCommand({ Bucket, Key: key });
      const { DeleteMarker } = await client.send(command, { abortSignal }).catch(locked);
      return DeleteMarker === true ? 'hidden' : 'deleted';
    },

    async removeUnfinished(prefix, before) {
      const old = (await uploadsBelow(client, { Bucket, Prefix: prefix }, NEVER)).filter(
        ({ Initiated }) => Initiated !== undefined && Initiated.getTime() < before,
      );
      for (const { Key = '', UploadId = '' } of old) await abortUpload(client, { Bucket, Key, UploadId }, NEVER);
      return old.length;
    },

    uri: (key) => `s3://${Bucket}/${key}`,
  };
}

/** One request when everything fits into one part; otherwise a multipart upload, created with the first part. */
function s3Upload(client: S3Client, { bucket, serverSideEncryption }: S3Place, started: StartedUpload): Upload {
  const at = { Bucket: bucket, Key: started.key };
  const object = {
    ...at,
    Metadata: metadataOf(started),
    ContentType: started.contentType,
    ...(serverSideEncryption && {
      ServerSideEncryption: serverSideEncryption.algorithm,
      ...(serverSideEncryption.kmsKeyId !== undefined && { SSEKMSKeyId: serverSideEncryption.kmsKeyId }),
    }),
  };
  const tags: { PartNumber: number; ETag: string | undefined }[] = [];
  let id: Promise<string> | undefined;

  const create = async (signal: AbortSignal): Promise<string> => {
    const { UploadId } = await withRetry({ signal }, (abortSignal) =>
      client.send(new CreateMultipartUploadCommand(object), { abortSignal }),
    );
    return UploadId ?? '';
  };

  return {
    async send({ bytes, number, last }, signal) {
      if (last && number === 1) {
        const whole = { ...object, Body: bytes };
        return conditionally(signal, started.over, (condition, abortSignal) =>
          client.send(new PutObjectCommand({ ...whole, ...condition }), { abortSignal }),
        );
      }
      id ??= create(signal);
      const part = { ...at, UploadId: await id, PartNumber: number, Body: bytes };
      const { ETag } = await withRetry({ signal, timeoutMs: LONG_CALL_MS }, (abortSignal) =>
        client.send(new UploadPartCommand(part), { abortSignal }),
      );
      tags[number - 1] = { PartNumber: number, ETag };
    },

    async commit(signal) {
      if (id === undefined) return;
      const whole = { ...at, UploadId: await id, MultipartUpload: { Parts: tags } };
      await conditionally(signal, started.over, (condition, abortSignal) =>
        client.send(new CompleteMultipartUploadCommand({ ...whole, ...condition }), { abortSignal }),
      );
    },

    async abortOthers(signal) {
      for (const UploadId of await uploadsOf(client, at, signal))
        await abortUpload(client, { ...at, UploadId }, signal);
    },

    /** A part in flight can bring an aborted upload back: it is aborted until it is no longer listed. */
    async cancel(signal) {
      const UploadId = await id?.catch(() => undefined);
      if (UploadId === undefined) return;
      for (const pause of PAUSES_MS) {
        await abortUpload(client, { ...at, UploadId }, signal);
        if (!(await uploadsOf(client, at, signal)).includes(UploadId)) return;
        await setTimeout(pause, undefined, { signal });
      }
    },
  };
}

/** A service without conditional writes gets an unconditional one: the check before the upload has to be enough. */
async function conditionally(
  signal: AbortSignal,
  over: string | undefined,
  call: (condition: object, signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const condition = over === undefined ? { IfNoneMatch: '*' } : { IfMatch: over };
  const limits = { signal, timeoutMs: LONG_CALL_MS };
  await withRetry(limits, (abortSignal) => call(condition, abortSignal)).catch((error: unknown) => {
    const { status, code } = errorInfo(error);
    if (status !== 501 && code !== 'NotImplemented') throw error;
    return withRetry(limits, (abortSignal) => call({}, abortSignal));
  });
}

const PAUSES_MS = [100, 300, 1_000, 3_000];

/**
 * Parts of an unfinished upload are billed and invisible. Where uploads cannot be listed, the snapshot continues
 * without.
 */
async function uploadsBelow(
  client: S3Client,
  below: { readonly Bucket: string; readonly Prefix: string },
  signal: AbortSignal,
): Promise<readonly MultipartUpload[]> {
  const listed = await withRetry({ signal }, (abortSignal) =>
    client.send(new ListMultipartUploadsCommand(below), { abortSignal }),
  ).catch((error: unknown) => {
    if (signal.aborted || errorInfo(error).code === 'NoSuchBucket') throw error;
    return undefined;
  });
  return listed?.Uploads ?? [];
}

async function uploadsOf(client: S3Client, { Bucket, Key }: At, signal: AbortSignal): Promise<readonly string[]> {
  const below = await uploadsBelow(client, { Bucket, Prefix: Key }, signal);
  return below.flatMap((one) => (one.Key === Key && one.UploadId ? [one.UploadId] : []));
}

async function abortUpload(
  client: S3Client,
  upload: At & { readonly UploadId: string },
  signal: AbortSignal,
): Promise<void> {
  const command = new AbortMultipartUploadCommand(upload);
  await withRetry({ signal }, (abortSignal) => client.send(command, { abortSignal })).catch((error: unknown) => {
    if (signal.aborted) throw error; // an upload that no longer exists, or may not be aborted, is left to the bucket's lifecycle rules
  });
}

function missing(error: unknown): void {
  if (errorInfo(error).status === 404)
    throw Object.assign(new Error('no bucket', { cause: error }), { code: 'NoSuchBucket' });
}

/** Services word their refusal of a locked object differently, and none has a code of its own for it. */
function locked(error: unknown): never {
  const { message } = error as Error;
  if (/\bWORM\b|object[ -]?lock|legal hold/i.test(message))
    throw Object.assign(new Error('locked', { cause: error }), { code: 'ObjectLocked' });
  throw error;
}

function s3Phrases({ bucket, endpoint, region }: S3Place): ErrorPhrases {
  return {
    place: `the bucket "${bucket}" at ${endpoint}`,
    permissions:
      'they need GetObject, PutObject, DeleteObject and AbortMultipartUpload on its objects and ListBucket on the bucket, without which a missing object looks like a forbidden one',
    codes: {
      NoSuchBucket: ['BucketNotFound', 'there is no such bucket: create it, or check the endpoint and the name'],
      NoSuchKey: ['ObjectNotFound', 'there is no such object'],
      NoSuchUpload: [
        'StoreUnreachable',
        'the service no longer has this upload: another process or a lifecycle rule of the bucket aborted it',
      ],
      ObjectLocked: LOCKED,
      InvalidBucketName: ['Misconfigured', 'the bucket name is not valid: check it'],
      InvalidAccessKeyId: ['AccessDenied', 'the access key is unknown: check AWS_ACCESS_KEY_ID'],
      SignatureDoesNotMatch: ['AccessDenied', 'the signature does not match: check AWS_SECRET_ACCESS_KEY'],
      ExpiredToken: ['AccessDenied', 'the session token has expired: renew the credentials'],
      InvalidToken: ['AccessDenied', 'the session token is not valid: renew the credentials'],
      RequestTimeTooSkewed: ['AccessDenied', 'the clocks of the service and of this node differ too much: check NTP'],
      CredentialsProviderError: [
        'Misconfigured',
        'the Pod has no cloud credentials: set a Secret with credentials, or a service account with a workload identity',
      ],
      AuthorizationHeaderMalformed: ['Misconfigured', `the bucket is in another region than ${region}: set its region`],
      PermanentRedirect: ['Misconfigured', `the bucket is in another region than ${region}: set its region`],
      QuotaExceeded: ['NoSpace', 'the quota of the bucket is exceeded: raise it, or remove old snapshots'],
      XMinioStorageFull: ['NoSpace', 'the service has no space left: enlarge it, or remove old snapshots'],
    },
  };
}
