import { describe, expect, test } from 'vitest';
import { aSchedule } from '../../../test/support/builders/schedules.ts';
import { newSnapshot, newSnapshotName, storedBy } from './new-snapshot.ts';

const hourly = aSchedule({ compression: 'Zstd', layout: 'ByCluster' });
const other = { ...aSchedule(), metadata: { name: 'daily', namespace: 'ns' } };

describe('a snapshot that a user takes', () => {
  test('is stored as the only schedule of the cluster stores its own', () => {
    const { destination, compression, layout } = hourly.spec;
    expect(storedBy({}, 'db', [hourly])).toEqual({ destination, compression, layout });
  });
  test('is stored as the schedule that is named', () => {
    expect(storedBy({ schedule: 'daily' }, 'db', [hourly, other])).toEqual({ destination: other.spec.destination });
  });
  test.each([
    ['of several schedules, one has to be chosen', {}, [hourly, other], 'db has the schedules hourly, daily: choose'],
    ['without a schedule, the store has to be named', {}, [], 'db has no schedule whose store could be used'],
    ['a schedule of another cluster is not used', { schedule: 'x' }, [hourly], 'db has no schedule x'],
    ['S3 needs an endpoint', { s3: 'b' }, [hourly], '--s3 needs --s3-endpoint'],
    ['two stores are refused', { s3: 'b', pvc: 'c' }, [], 'name one of'],
  ])('%s', (_, flags, schedules, sentence) => {
    expect(storedBy(flags, 'db', schedules)).toContain(sentence);
  });
  test('goes into a PVC or a bucket, with a folder or a prefix', () => {
    expect(storedBy({ pvc: 'backups/a/b' }, 'db', [])).toEqual({
      destination: { pvc: { claimName: 'backups', subPath: 'a/b' } },
    });
    expect(storedBy({ s3: 'b', s3Endpoint: 'https://s3', s3Secret: 'k', s3PathStyle: true }, 'db', [])).toEqual({
      destination: {
        s3: { endpoint: 'https://s3', bucket: 'b', forcePathStyle: true, credentialsSecretRef: { name: 'k' } },
      },
    });
  });
  test('has a name of at most 54 characters that ends with the second', () => {
    const at = Date.parse('2026-03-01T12:34:56Z');
    expect(newSnapshotName('db', at)).toBe('db-20260301123456');
    expect(newSnapshotName('x'.repeat(60), at)).toHaveLength(54);
    expect(newSnapshot('ns', 'a', 'db', { destination: {} }).spec.clusterRef).toEqual({ name: 'db' });
  });
});
