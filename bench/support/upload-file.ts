/** Uploads a file with the AWS SDK as its users do: parts of 8 MiB, four at a time. */
import { open } from 'node:fs/promises';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';

const PART_BYTES = 8 * 1024 * 1024;
const AT_ONCE = 4;

const [file = '', endpoint = '', Bucket = '', Key = ''] = process.argv.slice(2);
const client = new S3Client({
  endpoint,
  region: 'us-east-1',
  forcePathStyle: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
});
const handle = await open(file);
const { size } = await handle.stat();
const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
const Parts: { PartNumber: number; ETag: string | undefined }[] = [];
let next = 0;
const sendParts = async (): Promise<void> => {
  const buffer = Buffer.allocUnsafe(PART_BYTES);
  for (let part = next++; part * PART_BYTES < size; part = next++) {
    const { bytesRead } = await handle.read(buffer, 0, PART_BYTES, part * PART_BYTES);
    const Body = buffer.subarray(0, bytesRead);
    const { ETag } = await client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: part + 1, Body }));
    Parts[part] = { PartNumber: part + 1, ETag };
  }
};
await Promise.all(Array.from({ length: AT_ONCE }, sendParts));
await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
await handle.close();
