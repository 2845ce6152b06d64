import { expect, test } from 'vitest';
import { blockMs, LONGEST_MS, MIB } from '../../test/support/builders/hostile.ts';
import type { SnapshotLocation } from '../api/snapshot-location.ts';
import { keyOf, placeOf } from './agent-task.ts';

const at = (subPath: string) => keyOf({ pvc: { claimName: 'c', subPath } });

test.each([
  ['', ''],
  ['a', 'a'],
  ['a/', 'a'],
  ['a/b//', 'a/b'],
  ['/a', '/a'],
  ['//', ''],
])('the key %j is %j', (stated, key) => {
  expect(at(stated)).toBe(key);
});

test('many slashes that are not trailing are handled in linear time', () => {
  expect(blockMs(() => at(`${'/'.repeat(MIB / 16)}x`))).toBeLessThan(LONGEST_MS);
});

test.each<[string, SnapshotLocation, object]>([
  ['GCS', { gcs: { bucket: 'b', key: 'k' } }, { kind: 'gcs', bucket: 'b', credentials: 'ambient' }],
  [
    'GCS, at an endpoint',
    { gcs: { bucket: 'b', key: 'k', endpoint: 'https://gcs', credentialsSecretRef: { name: 's' } } },
    { kind: 'gcs', bucket: 'b', endpoint: 'https://gcs', credentials: 'secret' },
  ],
  ['Azure', { azure: { container: 'c', key: 'k' } }, { kind: 'azure', container: 'c', credentials: 'ambient' }],
  [
    'Azure, at an endpoint',
    { azure: { container: 'c', key: 'k', account: 'a', endpoint: 'https://azure' } },
    { kind: 'azure', container: 'c', account: 'a', endpoint: 'https://azure', credentials: 'ambient' },
  ],
  [
    'GCS, with its own CA',
    { gcs: { bucket: 'b', caSecretRef: { name: 'ca' } } },
    { kind: 'gcs', bucket: 'b', credentials: 'ambient', ca: true },
  ],
  [
    'Azure, with no CA but its own',
    { azure: { container: 'c', caSecretRef: { name: 'ca' }, caMode: 'Replace' } },
    { kind: 'azure', container: 'c', credentials: 'ambient', ca: true, caOnly: true },
  ],
  ['a PVC', { pvc: { claimName: 'c', subPath: 'x' } }, { kind: 'pvc', root: '/volume' }],
])('where an agent stores a snapshot: %s', (_what, location, place) => {
  expect(placeOf(location, '/volume')).toStrictEqual(place);
});
