/** Buckets that keep what is deleted: with versions, and with locked objects. Retention respects and reports both. */
import {
  CreateBucketCommand,
  ListObjectVersionsCommand,
  PutBucketVersioningCommand,
  PutObjectLegalHoldCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterEach, expect, test } from 'vitest';
import { s3Config } from '../../src/agent/stores/s3-client.ts';
import { openStore } from '../../src/agent/stores/store.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { reader, type S3Options, startS3, type TestPlace } from '../support/servers/stores.ts';
import { failure, get, put, text } from './stores-world.ts';

let world: TestPlace | undefined;
afterEach(() => world?.close());

async function started(options: S3Options) {
  world = await startS3(options);
  if (world.place.kind !== 's3') throw new Error('not S3');
  const client = new S3Client(await s3Config(world.place, reader(world.secrets)));
  return { client, place: world.place, secrets: reader(world.secrets) };
}

test('a bucket with versions reports that a deleted object is still stored', async () => {
  const { client, place, secrets } = await started({ versions: true });
  const { bucket: Bucket } = place;
  await client.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Enabled' } }));
  const store = await openStore(place, secrets);
  await put(store, 'kept.db', text('x'));
  expect(await store.delete('kept.db')).toBe('hidden');
  expect(await store.head('kept.db')).toBeUndefined();
  const { Versions } = await client.send(new ListObjectVersionsCommand({ Bucket }));
  expect(Versions).toHaveLength(1);
}, 300_000);

test('a locked object is reported as locked, and can still be read', async () => {
  const { client, place, secrets } = await started({});
  const Bucket = 'locked';
  await client.send(new CreateBucketCommand({ Bucket, ObjectLockEnabledForBucket: true }));
  const store = await openStore({ ...place, bucket: Bucket }, secrets);
  await put(store, 'held.db', text('x'));
  await client.send(new PutObjectLegalHoldCommand({ Bucket, Key: 'held.db', LegalHold: { Status: 'ON' } }));
  expect(await failure(store.delete('held.db'))).toMatchObject({ reason: 'ObjectLocked' });
  expect((await get(store, 'held.db')).toString(), ABOUT_DATA).toBe('x');
  await client.send(new PutObjectLegalHoldCommand({ Bucket, Key: 'held.db', LegalHold: { Status: 'OFF' } }));
  expect(await store.delete('held.db')).toBe('deleted');
}, 300_000);
