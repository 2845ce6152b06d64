/** What is believed of what an agent reports. */
import { expect, test } from 'vitest';
import { aCluster, FORMED } from '../../../test/support/builders/builders.ts';
import { aSnapshot, isStored, STORED, tells } from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshotSpec } from '../../api/etcd-snapshot.ts';
import { parseResult } from '../../domain/agent-result.ts';
import { artifactOf } from './artifact.ts';

const told = (text: string, spec: Partial<EtcdSnapshotSpec> = {}, cluster = aCluster({ status: FORMED })): string => {
  const found = artifactOf(aSnapshot({ spec }), cluster, parseResult(text));
  return found.is === 'artifact' ? 'believed' : found.why;
};

test('what an agent of ours writes is believed', () => {
  expect(told(isStored())).toBe('believed');
  expect(
    told(tells({ ok: true, task: 'snapshot', artifact: { uri: STORED.uri, sizeBytes: 1, checksum: STORED.checksum } })),
  ).toBe('believed');
});

test.each<[string, string, string]>([
  ['no JSON', '{', 'not what an agent writes'],
  ['a mebibyte', isStored({ member: 'a'.repeat(1_048_576) }), 'not what an agent writes'],
  ['the result of another task', tells({ ok: true, task: 'prune', kept: 1, removed: 0 }), 'not about a snapshot'],
  ['a failure', tells({ ok: false, reason: 'NoSpace', message: 'm' }), 'not about a snapshot'],
  ['no checksum', isStored({ checksum: undefined }), 'checksum'],
  ['a checksum of another kind', isStored({ checksum: `md5:${'a'.repeat(64)}` }), 'checksum'],
  ['a checksum that is too short', isStored({ checksum: `sha256:${'a'.repeat(63)}` }), 'checksum'],
  ['no size', isStored({ sizeBytes: undefined }), 'size'],
  ['nothing stored', isStored({ sizeBytes: 0 }), 'size'],
  ['an empty database', isStored({ databaseBytes: 0 }), 'size'],
  ['a size that is less than nothing', isStored({ sizeBytes: -1 }), 'not what an agent writes'],
  ['a member that nobody is called', isStored({ member: 'a\u001b[2J' }), 'nothing is called'],
  ['a version with a sentence in it', isStored({ etcdVersion: '3.6 is fine' }), 'nothing is called'],
  ['a time that is none', isStored({ takenAt: 'yesterday' }), 'not what an agent writes'],
  ['a second that the API server does not know', isStored({ takenAt: '2016-12-31T23:59:60Z' }), 'the time'],
  ['a time in small letters', isStored({ takenAt: '2026-01-01t00:00:00z' }), 'the time'],
  ['another etcd cluster', isStored({ clusterID: 'deadbeef00000000' }), 'of the etcd cluster deadbeef00000000'],
])('%s is refused', (_what, text, why) => {
  expect(told(text)).toContain(why);
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
])('%s: one place is believed, and no other', (_what, spec, right, wrong) => {
  expect(told(at(right), spec)).toBe('believed');
  for (const uri of [wrong, `${right}/..`, `x${right}`, '']) expect(told(at(uri), spec)).toContain('another place');
});

test('of a cluster that is gone or was never known to have an id, whatever id is told is repeated', () => {
  expect(told(isStored({ clusterID: 'deadbeef00000000' }), {}, aCluster())).toBe('believed');
});
