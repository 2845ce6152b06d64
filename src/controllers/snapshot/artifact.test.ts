/** Which artifacts of an agent are accepted. */
import { expect, test } from 'vitest';
import { aCluster, FORMED } from '../../../test/support/builders/builders.ts';
import { aSnapshot, isStored, STORED, tells } from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshotSpec } from '../../api/etcd-snapshot.ts';
import { parseResult } from '../../domain/agent-result.ts';
import { artifactOf } from './artifact.ts';

const verdictOn = (
  text: string,
  spec: Partial<EtcdSnapshotSpec> = {},
  cluster = aCluster({ status: FORMED }),
): string => {
  const found = artifactOf(aSnapshot({ spec }), cluster, parseResult(text));
  return found.is === 'artifact' ? 'accepted' : found.message;
};

test('the result of an agent is accepted', () => {
  expect(verdictOn(isStored())).toBe('accepted');
  expect(
    verdictOn(
      tells({ ok: true, task: 'snapshot', artifact: { uri: STORED.uri, sizeBytes: 1, checksum: STORED.checksum } }),
    ),
  ).toBe('accepted');
});

test.each<[string, string, string]>([
  ['no JSON', '{', 'not an agent result'],
  ['a mebibyte', isStored({ member: 'a'.repeat(1_048_576) }), 'not an agent result'],
  [
    'the result of another task',
    tells({ ok: true, task: 'prune', kept: 1, removed: 0 }),
    'not the result of a stored snapshot',
  ],
  ['a failure', tells({ ok: false, reason: 'NoSpace', message: 'm' }), 'not the result of a stored snapshot'],
  ['no checksum', isStored({ checksum: undefined }), 'checksum'],
  ['a checksum of another kind', isStored({ checksum: `md5:${'a'.repeat(64)}` }), 'checksum'],
  ['a checksum that is too short', isStored({ checksum: `sha256:${'a'.repeat(63)}` }), 'checksum'],
  ['no size', isStored({ sizeBytes: undefined }), 'size'],
  ['nothing stored', isStored({ sizeBytes: 0 }), 'size'],
  ['an empty database', isStored({ databaseBytes: 0 }), 'size'],
  ['a negative size', isStored({ sizeBytes: -1 }), 'not an agent result'],
  ['an invalid member name', isStored({ member: 'a\u001b[2J' }), 'invalid name or version'],
  ['a version with a sentence in it', isStored({ etcdVersion: '3.6 is fine' }), 'invalid name or version'],
  ['an invalid time', isStored({ takenAt: 'yesterday' }), 'not an agent result'],
  ['a leap second, which the API server rejects', isStored({ takenAt: '2016-12-31T23:59:60Z' }), 'its time is invalid'],
  ['a time in lower case', isStored({ takenAt: '2026-01-01t00:00:00z' }), 'its time is invalid'],
  ['another etcd cluster', isStored({ clusterID: 'deadbeef00000000' }), 'of etcd cluster ID deadbeef00000000'],
])('%s is refused', (_what, text, message) => {
  expect(verdictOn(text)).toContain(message);
});

const at = (uri: string): string => isStored({ uri });
const azure = { container: 'c', key: 'prod a' };
test.each<[string, Partial<EtcdSnapshotSpec>, string, string]>([
  ['s3', {}, 's3://backups/prod/monday.db', 's3://backups/prod/monday.db.zst'],
  ['compressed', { compression: 'Zstd' }, 's3://backups/prod/monday.db.zst', 's3://backups/prod/monday.db'],
  [
    'compressed and encrypted',
    { compression: 'Zstd', encryption: { keySecretRef: { name: 'k' } } },
    's3://backups/prod/monday.db.zst.enc',
    's3://backups/prod/monday.db.zst',
  ],
  ['by cluster', { layout: 'ByCluster' }, 's3://backups/prod/ns/db/monday.db', 's3://backups/prod/monday.db'],
  ['flat', { layout: 'Flat' }, 's3://backups/prod/monday.db', 's3://backups/prod/ns/db/monday.db'],
  ['gcs', { destination: { gcs: { bucket: 'b' } } }, 'gs://b/monday.db', 'gs://c/monday.db'],
  [
    'pvc',
    { destination: { pvc: { claimName: 'c', subPath: 'x/y' } } },
    'file:///snapshot/data/x/y/monday.db',
    'file:///snapshot/data/monday.db',
  ],
  [
    'azure',
    { destination: { azure } },
    'https://acc.blob.core.windows.net/c/prod%20a/monday.db',
    'https://acc.blob.core.windows.net/b/prod%20a/monday.db',
  ],
  [
    'azure elsewhere',
    { destination: { azure } },
    'http://127.0.0.1:10000/acc/c/prod%20a/monday.db',
    'http://127.0.0.1:10000/acc/c/prod%20a/monday.db?sig=secret',
  ],
  ['azure, and a file', { destination: { azure } }, 'http://h/c/prod%20a/monday.db', 'file:///c/prod%20a/monday.db'],
])('%s: exactly one URI is accepted', (_what, spec, right, wrong) => {
  expect(verdictOn(at(right), spec)).toBe('accepted');
  for (const uri of [wrong, `${right}/..`, `x${right}`, ''])
    expect(verdictOn(at(uri), spec)).toContain('not in the destination');
});

test('any cluster id is accepted while the cluster has none recorded or is deleted', () => {
  expect(verdictOn(isStored({ clusterID: 'deadbeef00000000' }), {}, aCluster())).toBe('accepted');
});
