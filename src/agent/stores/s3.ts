/** S3 and what speaks like it. */
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
  readonly words: ErrorPhrases;
  readonly width = 4;
  readonly #client: S3Client;
  readonly #place: S3Place;

  constructor(place: S3Place, client: S3Client) {
    this.#client = client;
    this.#place = place;
    this.words = s3Words(place);
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
        // The answer to HEAD has no text, so it does not say whether the bucket is missing or only the object.
        await this.#client.send(new HeadBucketCommand({ Bucket: this.#place.bucket }), { abortSignal }).catch(missing);
        return undefined;
      }
    });
  }

  async begin(begun: StartedUpload): Promise<Upload> {
    const at = this.#at(begun.key);
    for (const UploadId of await uploadsOf(this.#client, at, begun.signal))
      await abortUpload(this.#client, { ...at, UploadId }, begun.signal);
    return new S3Upload(this.#client, this.#place, begun);
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

/** One request when everything fits into one piece; otherwise a multipart upload, begun with the first piece. */
class S3Upload implements Upload {
  readonly #client: S3Client;
  readonly #begun: StartedUpload;
  readonly #bucket: string;
  readonly #object: object;
  readonly #tags: { PartNumber: number; ETag: string | undefined }[] = [];
  #id: Promise<string> | undefined;

  constructor(client: S3Client, { bucket, serverSideEncryption }: S3Place, begun: StartedUpload) {
    this.#client = client;
    this.#begun = begun;
    this.#bucket = bucket;
    this.#object = {
      Metadata: { [UID]: begun.uid, [UPLOAD]: begun.upload },
      ContentType: begun.contentType,
      ...(serverSideEncryption && {
        ServerSideEncryption: serverSideEncryption.algorithm,
        ...(serverSideEncryption.kmsKeyId !== undefined && { SSEKMSKeyId: serverSideEncryption.kmsKeyId }),
      }),
    };
  }

  get #at(): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: this.#begun.key };
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

  /** Where the server does not know conditions, what was seen before the upload has to do. */
  async #conditionally(
    signal: AbortSignal,
    call: (condition: object, signal: AbortSignal) => Promise<unknown>,
  ): Promise<void> {
    const { over } = this.#begun;
    const condition = over === undefined ? { IfNoneMatch: '*' } : { IfMatch: over };
    const limits = { signal, timeoutMs: LONG_CALL_MS };
    await withRetry(limits, (abortSignal) => call(condition, abortSignal)).catch((error: unknown) => {
      const { status, code } = errorInfo(error);
      if (status !== 501 && code !== 'NotImplemented') throw error;
      return withRetry(limits, (abortSignal) => call({}, abortSignal));
    });
  }

  /** A part that was on its way when its upload was ended can bring it back: it is ended until it is not listed any more. */
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

/** Parts of an upload that nobody ends are paid for and seen by nobody. Where they cannot be listed, it goes on without. */
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
    if (signal.aborted) throw error; // an upload that is gone, or that may not be removed, is left to the bucket's rules
  });
}

function missing(error: unknown): void {
  if (errorInfo(error).status === 404)
    throw Object.assign(new Error('no bucket', { cause: error }), { code: 'NoSuchBucket' });
}

function s3Words({ bucket, endpoint, region }: S3Place): ErrorPhrases {
  return {
    place: `the bucket "${bucket}" at ${endpoint}`,
    rights:
      'they need GetObject, PutObject, DeleteObject and AbortMultipartUpload on its objects and ListBucket on the bucket, without which a missing object looks like a forbidden one',
    codes: {
      NoSuchBucket: ['BucketNotFound', 'there is no such bucket: create it, or check the endpoint and the name'],
      NoSuchKey: ['ObjectNotFound', 'there is no such object'],
      NoSuchUpload: ['ObjectExists', 'another agent writes the same object and ended this upload'],
      InvalidBucketName: ['Misconfigured', 'this cannot be the name of a bucket'],
      InvalidAccessKeyId: ['AccessDenied', 'the access key is not known there: check AWS_ACCESS_KEY_ID'],
      SignatureDoesNotMatch: ['AccessDenied', 'the signature does not match: check AWS_SECRET_ACCESS_KEY'],
      ExpiredToken: ['AccessDenied', 'the session token has expired: renew the credentials'],
      InvalidToken: ['AccessDenied', 'the session token is not valid: renew the credentials'],
      RequestTimeTooSkewed: ['AccessDenied', 'the clocks of the service and of this node are too far apart: set them'],
      CredentialsProviderError: [
        'Misconfigured',
        'the Pod is given no credentials by its cloud: name a Secret with them, or a service account that has them',
      ],
      AuthorizationHeaderMalformed: ['Misconfigured', `the bucket is in another region than ${region}: set its region`],
      PermanentRedirect: ['Misconfigured', `the bucket is in another region than ${region}: set its region`],
      QuotaExceeded: ['NoSpace', 'the quota of the bucket is used up'],
      XMinioStorageFull: ['NoSpace', 'the service has no room left'],
    },
  };
}
