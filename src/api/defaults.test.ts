import { describe, expect, test } from 'vitest';
import { defaultsOf, quotaFor, targetOf } from './defaults.ts';

const MI = 1024 ** 2;
const BASELINE = { clusterID: 'cafe000000000001' };

describe('the quota that a volume has room for', () => {
  test.each<[string | number, number]>([
    ['1Gi', 384 * MI],
    ['2Gi', 1408 * MI],
    ['1000Mi', 400 * MI],
    ['256Mi', Math.floor(102.4 * MI)],
    [1073741824, 384 * MI],
    ['8832Mi', 8192 * MI],
    ['100Gi', 8192 * MI],
    ['10E', 8192 * MI],
    ['1e999', 8192 * MI],
    ['1e5000000', 8192 * MI],
    ['1', 1],
  ])('%s: %i bytes', (size, quota) => {
    expect(quotaFor(size)).toBe(quota);
  });
});

test('a spec with only the required fields gets the documented defaults', () => {
  expect(targetOf({ version: '3.6.14' })).toEqual({
    replicas: 3,
    version: '3.6.14',
    storage: { size: '1Gi', medium: '' },
    options: {
      quotaBackendBytes: 384 * MI,
      autoCompactionMode: 'periodic',
      autoCompactionRetention: '1h',
      corruptionCheck: { initial: true, compactHash: true },
    },
    spread: 'Preferred',
  });
});

test('suspending a cluster is no change of its members', () => {
  expect(targetOf({ version: '3.6.14', suspend: true })).toEqual(targetOf({ version: '3.6.14' }));
});

test('a cluster of the earlier operator keeps the defaults of that one, which had none', () => {
  expect(targetOf({ version: '3.6.14' }, BASELINE)).toEqual({
    replicas: 3,
    version: '3.6.14',
    storage: { size: '1Gi', medium: '' },
  });
});

test.each([
  ['a new cluster', undefined, '1'],
  ['a cluster that is being made', { clusterToken: 't', defaults: '1' }, '1'],
  ['a cluster that only has a condition', { conditions: [] }, '1'],
  ['a cluster that the earlier operator started to bootstrap and that never formed', { clusterToken: 't' }, undefined],
  ['a cluster that was made with them', { ...BASELINE, defaults: '1' }, '1'],
  ['a cluster of the earlier operator', BASELINE, undefined],
])('%s has the defaults %s', (_what, status, defaults) => {
  expect(defaultsOf(status)).toBe(defaults);
});

describe('a stated value wins', () => {
  test.each([
    ['quota', { quotaBackendBytes: 0 }, { quotaBackendBytes: 0 }],
    ['retention', { autoCompactionRetention: '0' }, { autoCompactionRetention: '0' }],
    [
      'compaction by revision has a retention of its own',
      { autoCompactionMode: 'revision' },
      { autoCompactionMode: 'revision', autoCompactionRetention: '10000' },
    ],
    [
      'one check off, the other stays on',
      { corruptionCheck: { initial: false } },
      { corruptionCheck: { initial: false, compactHash: true } },
    ],
    [
      'a further check leaves the two on',
      { corruptionCheck: { intervalMinutes: 60 } },
      { corruptionCheck: { initial: true, compactHash: true, intervalMinutes: 60 } },
    ],
  ] as const)('%s', (_what, options, expected) => {
    expect(targetOf({ version: '3.6.14', options }).options).toMatchObject(expected);
  });
});

test('affinity.podAntiAffinity replaces only the spread over nodes: zones are still preferred', () => {
  const affinity = { podAntiAffinity: {} };
  expect(targetOf({ version: '3.6.14', affinity }).spread).toBe('Preferred');
  expect(targetOf({ version: '3.6.14', affinity: { nodeAffinity: {} } }).spread).toBe('Preferred');
});

test('an empty storage class is not the same as none', () => {
  expect(targetOf({ version: '3.6.14', replicas: 1, storage: { storageClassName: '' } }).storage).toEqual({
    size: '1Gi',
    medium: '',
    storageClassName: '',
  });
});
