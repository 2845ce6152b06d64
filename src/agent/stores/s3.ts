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
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { errorInfo } from '../transfer/error-info.ts';
import type { ErrorPhrases } from '../transfer/error-message.ts';
import type { Part } from '../transfer/multipart.ts';
import { LONG_CALL_MS, withRetry } from '../transfer/retry.ts';
import { type Found, PAGE_SIZE, RemoteStore, type Service, type StartedUpload, type Upload } from './remote.ts';
import { type S3Place, s3Config } from './s3-client.ts';
import type { ReadSecret, Store, StoredObject } from './store.ts';

const UID = 'etcd-snapshot-uid';
const UPLOAD = 'etcd-snapshot-upload';

export async function openS3(place: S3Place, secrets: ReadSecret): Promise<Store> {
  return new RemoteStore(new S3Service(place, new S3Client(await s3Config(place, secrets))));
}

class S3Service implements Service {
  readonly phrases: ErrorPhrases;
  readonly width = 4;
  readonly #client: S3Client;
  readonly #place: S3Place;

  constructor(place: S3Place, client: S3Client) {
    this.#client = client;
    this.#place = place;
    this.phrases = s3Phrases(place);
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#place.bucket, Key: key };
  }

  async find(key: string, signal: AbortSignal): Promise<Found | undefined> {
    return withRetry({ signal }, async (abortSignal) => {
      try {
        const head = await this.#client.send(new HeadObjectCommand(this.#at(key)), { abortSignal });
        const { [UID]: uid, [UPLOAD]: upload } = head.Metadata ?? {};
        const version = head.ETag ?? '';
        return { key, size: head.ContentLength ?? 0, version, ...(uid && { uid }), ...(upload && { upload }) };
      } catch (error) {
        if (errorInfo(error).status !== 404) throw error;
        // A response to HEAD has no body, so it does not tell a missing bucket from a missing object.
        await this.#client.send(new HeadBucketCommand({ Bucket: this.#place.bucket }), { abortSignal }).catch(missing);
        return undefined;
      }
    });
  }

  async begin(started: StartedUpload): Promise<Upload> {
    const at = this.#at(started.key);
    for (const UploadId of await uploadsOf(this.#client, at, started.signal))
      await abortUpload(this.#client, { ...at, UploadId }, started.signal);
    return new S3Upload(this.#client, this.#place, started);
  }

  async read(found: Found, from: number, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const part = { ...this.#at(found.key), IfMatch: found.version, ...(from > 0 && { Range: `bytes=${from}-` }) };
    const { Body } = await this.#client.send(new GetObjectCommand(part), { abortSignal: signal });
    return Body as unknown as AsyncIterable<Uint8Array>;
  }

  async *list(prefix: string): AsyncGenerator<StoredObject, void, undefined> {
    for (let token: string | undefined; ; ) {
      const page = new ListObjectsV2Command({
        Bucket: this.#place.bucket,
        Prefix: prefix,
        MaxKeys: PAGE_SIZE,
        ...(token !== undefined && { ContinuationToken: token }),
      });
      const answer = await withRetry({}, (abortSignal) => this.#client.send(page, { abortSignal }));
      for (const { Key, Size } of answer.Contents ?? []) if (Key !== undefined) yield { key: Key, size: Size ?? 0 };
      if (!answer.IsTruncated || answer.NextContinuationToken === undefined) return;
      token = answer.NextContinuationToken;
    }
  }

  async remove(key: string, signal: AbortSignal): Promise<void> {
    await withRetry({ signal }, (abortSignal) =>
      this.#client.send(new DeleteObjectCommand(this.#at(key)), { abortSignal }),
    );
  }

  uri(key: string): string {
    return `s3://${this.#place.bucket}/${key}`;
  }
}

/** One request when everything fits into one part; otherwise a multipart upload, created with the first part. */
class S3Upload implements Upload {
  readonly #client: S3Client;
  readonly #started: StartedUpload;
  readonly #bucket: string;
  readonly #object: object;
  readonly #tags: { PartNumber: number; ETag: string | undefined }[] = [];
  #id: Promise<string> | undefined;

  constructor(client: S3Client, { bucket, serverSideEncryption }: S3Place, started: StartedUpload) {
    this.#client = client;
    this.#started = started;
    this.#bucket = bucket;
    this.#object = {
      Metadata: { [UID]: started.uid, [UPLOAD]: started.upload },
      ContentType: started.contentType,
      ...(serverSideEncryption && {
        ServerSideEncryption: serverSideEncryption.algorithm,
        ...(serverSideEncryption.kmsKeyId !== undefined && { SSEKMSKeyId: serverSideEncryption.kmsKeyId }),
      }),
    };
  }

  get #at(): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: this.#started.key };
  }

  async send({ bytes, number, last }: Part, signal: AbortSignal): Promise<void> {
    if (last && number === 1) {
      const whole = { ...this.#at, ...this.#object, Body: bytes };
      return this.#conditionally(signal, (condition, abortSignal) =>
        this.#client.send(new PutObjectCommand({ ...whole, ...condition }), { abortSignal }),
      );
    }
    this.#id ??= this.#create(signal);
    const part = { ...this.#at, UploadId: await this.#id, PartNumber: number, Body: bytes };
    const { ETag } = await withRetry({ signal, timeoutMs: LONG_CALL_MS }, (abortSignal) =>
      this.#client.send(new UploadPartCommand(part), { abortSignal }),
    );
    this.#tags[number - 1] = { PartNumber: number, ETag };
  }

  async #create(signal: AbortSignal): Promise<string> {
    const { UploadId } = await withRetry({ signal }, (abortSignal) =>
      this.#client.send(new CreateMultipartUploadCommand({ ...this.#at, ...this.#object }), { abortSignal }),
    );
    return UploadId ?? '';
  }

  async commit(signal: AbortSignal): Promise<void> {
    if (this.#id === undefined) return;
    const whole = { ...this.#at, UploadId: await this.#id, MultipartUpload: { Parts: this.#tags } };
    await this.#conditionally(signal, (condition, abortSignal) =>
      this.#client.send(new CompleteMultipartUploadCommand({ ...whole, ...condition }), { abortSignal }),
    );
  }

  /** A service without conditional writes gets an unconditional one: the check before the upload has to be enough. */
  async #conditionally(
    signal: AbortSignal,
    call: (condition: object, signal: AbortSignal) => Promise<unknown>,
  ): Promise<void> {
    const { over } = this.#started;
    const condition = over === undefined ? { IfNoneMatch: '*' } : { IfMatch: over };
    const limits = { signal, timeoutMs: LONG_CALL_MS };
    await withRetry(limits, (abortSignal) => call(condition, abortSignal)).catch((error: unknown) => {
      const { status, code } = errorInfo(error);
      if (status !== 501 && code !== 'NotImplemented') throw error;
      return withRetry(limits, (abortSignal) => call({}, abortSignal));
    });
  }

  /** A part in flight can bring an aborted upload back: it is aborted until it is no longer listed. */
  async cancel(signal: AbortSignal): Promise<void> {
    const id = await this.#id?.catch(() => undefined);
    if (id === undefined) return;
    for (const pause of PAUSES_MS) {
      await abortUpload(this.#client, { ...this.#at, UploadId: id }, signal);
      if (!(await uploadsOf(this.#client, this.#at, signal)).includes(id)) return;
      await setTimeout(pause, undefined, { signal });
    }
  }
}

const PAUSES_MS = [100, 300, 1_000, 3_000];

interface At {
  readonly Bucket: string;
  readonly Key: string;
}

/**
 * Parts of an unfinished upload are billed and invisible. Where uploads cannot be listed, the snapshot continues
 * without.
 */
async function uploadsOf(client: S3Client, { Bucket, Key }: At, signal: AbortSignal): Promise<readonly string[]> {
  const listed = await withRetry({ signal }, (abortSignal) =>
    client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: Key }), { abortSignal }),
  ).catch((error: unknown) => {
    if (signal.aborted || errorInfo(error).code === 'NoSuchBucket') throw error;
    return undefined;
  });
  return (listed?.Uploads ?? []).flatMap((one) => (one.Key === Key && one.UploadId ? [one.UploadId] : []));
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

function s3Phrases({ bucket, endpoint, region }: S3Place): ErrorPhrases {
  return {
    place: `the bucket "${bucket}" at ${endpoint}`,
    permissions:
      'they need GetObject, PutObject, DeleteObject and AbortMultipartUpload on its objects and ListBucket on the bucket, without which a missing object looks like a forbidden one',
    codes: {
      NoSuchBucket: ['BucketNotFound', 'there is no such bucket: create it, or check the endpoint and the name'],
      NoSuchKey: ['ObjectNotFound', 'there is no such object'],
      NoSuchUpload: ['ObjectExists', 'another agent writes the same object and aborted this upload'],
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
