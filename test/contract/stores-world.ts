/** Helpers of the suites about stores, for each kind of store. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ListMultipartUploadsCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { AgentFailure } from '../../src/agent/failure.ts';
import { s3Config } from '../../src/agent/stores/s3-client.ts';
import { openStore, type PutOptions, type Store } from '../../src/agent/stores/store.ts';
import type { Place } from '../../src/domain/agent-task.ts';
import { reader, startAzure, startGcs, startS3, startVolume, type TestPlace } from '../support/servers/stores.ts';

export const WORLDS: readonly (readonly [name: string, kind: Place['kind'], start: () => Promise<TestPlace>])[] = [
  ['S3', 's3', startS3],
  ['a volume', 'pvc', startVolume],
  ['Google Cloud Storage', 'gcs', startGcs],
  ['Azure Blob Storage', 'azure', startAzure],
];

export const MIB = 2 ** 20;

export const open = (world: TestPlace): Promise<Store> => openStore(world.place, reader(world.secrets));

/** Distinct bytes, so that chunks in the wrong order are detected. */
export async function* bytes(size: number, chunk = 100_003): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < size; at += chunk) {
    const part = Buffer.alloc(Math.min(chunk, size - at));
    for (let i = 0; i < part.length; i += 8)
      part.writeUInt32LE((at + i) & 0x7fffffff, Math.min(i, Math.max(0, part.length - 4)));
    yield part;
  }
}

export async function* text(content: string): AsyncGenerator<Uint8Array, void, undefined> {
  if (content !== '') yield Buffer.from(content);
}

export const put = (
  store: Store,
  key: string,
  body: AsyncIterable<Uint8Array>,
  options: Partial<PutOptions> = {},
): Promise<void> =>
  store.put(key, body, { uid: 'uid-1', replace: false, signal: new AbortController().signal, ...options });

export async function get(store: Store, key: string): Promise<Buffer> {
  const { size, body } = await store.get(key, new AbortController().signal);
  const all = Buffer.concat(await Array.fromAsync(body));
  if (all.length !== size) throw new Error(`${all.length} bytes of ${size}`);
  return all;
}

export const keys = async (store: Store, prefix = ''): Promise<string[]> =>
  (await Array.fromAsync(store.list(prefix))).map(({ key }) => key);

/** The reason and the message of the failure; any other error, or none, fails the test. */
export async function failure(work: Promise<unknown>): Promise<{ readonly reason: string; readonly message: string }> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof AgentFailure)) throw error;
    return { reason: error.reason, message: error.message };
  }
  throw new Error('expected a failure, but the call succeeded');
}

/** Not through our code, which would take the running upload for that of a killed agent. */
export async function putByOthers(world: TestPlace, key: string, content: string): Promise<void> {
  if (world.place.kind === 'pvc') return writeFileSync(join(world.folder, key), content);
  if (world.place.kind !== 's3') return put(await open(world), key, text(content), { uid: 'theirs' });
  const client = new S3Client(await s3Config(world.place, reader(world.secrets)));
  await client.send(new PutObjectCommand({ Bucket: world.place.bucket, Key: key, Body: content }));
}

/** What an upload may leave behind where only the service sees it. */
export async function leftovers(world: TestPlace, key: string): Promise<readonly string[]> {
  if (world.place.kind === 'pvc')
    return readdirSync(world.folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
      /(^|\/)\.partial-/.test(path),
    );
  if (world.place.kind !== 's3') return [];
  const client = new S3Client(await s3Config(world.place, reader(world.secrets)));
  const { Uploads } = await client.send(new ListMultipartUploadsCommand({ Bucket: world.place.bucket, Prefix: key }));
  return (Uploads ?? []).map(({ UploadId }) => UploadId ?? '');
}
