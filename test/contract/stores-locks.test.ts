/** Buckets that keep what is deleted: with versions, and with locked objects. Retention respects and reports both. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  CreateBucketCommand,
  ListObjectVersionsCommand,
  PutBucketVersioningCommand,
  PutObjectLegalHoldCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { afterEach, expect, test } from 'vitest';
import { s3Config } from '../../src/agent/stores/s3-client.ts';
import { openStore } from '../../src/agent/stores/store.ts';
import { MOUNTS, type Place } from '../../src/domain/agent-task.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import {
  credentials,
  gcsPlace,
  reader,
  type S3Options,
  startAzure,
  startS3,
  type TestPlace,
} from '../support/servers/stores.ts';
import { failure, get, put, text } from './stores-world.ts';

let world: TestPlace | undefined;
let server: Server | undefined;
afterEach(async () => {
  await world?.close();
  server?.close();
  [world, server] = [undefined, undefined];
});

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

test('a leased blob of Azure is reported as locked, and is deleted when the lease is broken', async () => {
  world = await startAzure();
  if (world.place.kind !== 'azure') throw new Error('not Azure');
  const { endpoint = '', container } = world.place;
  const [account, key] = ['AZURE_STORAGE_ACCOUNT', 'AZURE_STORAGE_KEY'].map(
    (name) => world?.secrets[`${MOUNTS.credentials}/${name}`]?.toString() ?? '',
  ) as [string, string];
  const blobs = new BlobServiceClient(endpoint, new StorageSharedKeyCredential(account, key));
  const store = await openStore(world.place, reader(world.secrets));
  await put(store, 'held.db', text('x'));
  const lease = blobs.getContainerClient(container).getBlobClient('held.db').getBlobLeaseClient();
  await lease.acquireLease(-1);
  expect(await failure(store.delete('held.db'))).toMatchObject({ reason: 'ObjectLocked' });
  expect((await get(store, 'held.db')).toString(), ABOUT_DATA).toBe('x');
  await lease.breakLease(0);
  expect(await store.delete('held.db')).toBe('deleted');
}, 300_000);

/** The servers that imitate Google and Azure have neither retention nor holds: these are the documented responses. */
async function refusing(status: number, headers: Readonly<Record<string, string>>, body: string): Promise<string> {
  const refuses = createServer((_request, response) => {
    response.writeHead(status, headers).end(body);
  });
  server = refuses;
  await new Promise<void>((resolve) => refuses.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(refuses.address() as AddressInfo).port}`;
}

const google = (reason: string, message: string): string =>
  JSON.stringify({ error: { code: 403, message, errors: [{ message, domain: 'global', reason }] } });

test.each([
  [
    'a retention policy',
    'retentionPolicyNotMet',
    "Object 'b/x' is subject to bucket's retention policy",
    'ObjectLocked',
  ],
  ['a hold', 'objectUnderActiveHold', 'is under a hold', 'ObjectLocked'],
  [
    'a hold, in the words of the service',
    'forbidden',
    "Object 'b/x' is under active Temporary hold and cannot be deleted, overwritten or archived until hold is removed.",
    'ObjectLocked',
  ],
  [
    'an event-based hold, in the words of the service',
    'forbidden',
    "Object 'b/x' is under active Event-Based hold and cannot be deleted, overwritten or archived until hold is removed.",
    'ObjectLocked',
  ],
  ['no permission', 'forbidden', 'tester does not have storage.objects.delete access', 'AccessDenied'],
])('of Google, %s', async (_what, reason, message, expected) => {
  const endpoint = await refusing(403, { 'content-type': 'application/json' }, google(reason, message));
  const { place, secrets } = gcsPlace(endpoint);
  expect(await failure((await openStore(place, reader(secrets))).delete('x'))).toMatchObject({ reason: expected });
});

test.each([
  ['a policy', 409, 'BlobImmutableDueToPolicy', 'ObjectLocked'],
  ['a legal hold', 409, 'BlobImmutableDueToLegalHold', 'ObjectLocked'],
  ['a lease', 412, 'LeaseIdMissing', 'ObjectLocked'],
  ['no permission', 403, 'AuthorizationPermissionMismatch', 'AccessDenied'],
])('of Azure, %s', async (_what, status, code, reason) => {
  const body = `<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code><Message>no</Message></Error>`;
  const endpoint = await refusing(status, { 'content-type': 'application/xml', 'x-ms-error-code': code }, body);
  const place: Place = { kind: 'azure', container: 'b', endpoint: `${endpoint}/tester`, credentials: 'secret' };
  const key = Buffer.alloc(64).toString('base64');
  const secrets = credentials({ AZURE_STORAGE_ACCOUNT: 'tester', AZURE_STORAGE_KEY: key });
  expect(await failure((await openStore(place, reader(secrets))).delete('x'))).toMatchObject({ reason });
});
