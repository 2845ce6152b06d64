import { describe, expect, test } from 'vitest';
import type { EtcdOptions } from '../../api/options.ts';
import { learnerFlags, optionFlags, statedFlags } from './options.ts';

const checks: EtcdOptions = { corruptionCheck: { initial: true, compactHash: true, intervalMinutes: 90 } };

test.each([
  [
    '3.5.35',
    [
      '--experimental-initial-corrupt-check=$(INITIAL_CORRUPT_CHECK)',
      '--experimental-compact-hash-check-enabled=true',
      '--experimental-corrupt-check-time=90m',
    ],
  ],
  ['3.5.4', ['--experimental-initial-corrupt-check=$(INITIAL_CORRUPT_CHECK)', '--experimental-corrupt-check-time=90m']],
  [
    '3.6.16',
    ['--feature-gates=InitialCorruptCheck=$(INITIAL_CORRUPT_CHECK),CompactHashCheck=true', '--corrupt-check-time=90m'],
  ],
  [
    '3.7.3',
    ['--feature-gates=InitialCorruptCheck=$(INITIAL_CORRUPT_CHECK),CompactHashCheck=true', '--corrupt-check-time=90m'],
  ],
])('corruption checks on %s', (version, flags) => {
  expect(optionFlags(checks, version)).toEqual(flags);
});

describe('options of earlier manifests', () => {
  const options = {
    quotaBackendBytes: 8589934592,
    autoCompactionMode: 'periodic',
    autoCompactionRetention: '5m',
    snapshotCount: 5000,
  } as const;
  test('become the flags that they always were', () => {
    expect(optionFlags(options, '3.6.16')).toEqual([
      '--quota-backend-bytes=8589934592',
      '--auto-compaction-mode=periodic',
      '--auto-compaction-retention=5m',
      '--snapshot-count=5000',
    ]);
  });
  test('that a later etcd does not know are left out', () => {
    expect(optionFlags(options, '3.8.0')).not.toContain('--snapshot-count=5000');
  });
});

test('without options, no flags', () => {
  expect(optionFlags(undefined, '3.6.16')).toEqual([]);
  expect(optionFlags({ corruptionCheck: { initial: false, intervalMinutes: 0 } }, '3.6.16')).toEqual([]);
});

const initial: EtcdOptions = { corruptionCheck: { initial: true } };
test.each<[string, readonly string[], EtcdOptions | undefined, readonly string[]]>([
  ['none', ['--pre-vote'], initial, ['--feature-gates=InitialCorruptCheck=$(INITIAL_CORRUPT_CHECK)', '--pre-vote']],
  ['only theirs', ['--feature-gates=A=true', '--pre-vote'], undefined, ['--pre-vote', '--feature-gates=A=true']],
  [
    'theirs, then ours',
    ['--feature-gates=A=true'],
    initial,
    ['--feature-gates=A=true,InitialCorruptCheck=$(INITIAL_CORRUPT_CHECK)'],
  ],
  ['two lists', ['--feature-gates=A=true', '--feature-gates=B=false'], {}, ['--feature-gates=A=true,B=false']],
  ['an empty list', ['--feature-gates='], undefined, []],
])('feature gates of the user: %s', (_what, extraArgs, options, flags) => {
  expect(statedFlags(options, extraArgs, '3.6.16')).toEqual(flags);
});

test('flags of the user that etcd 3.7 renamed are rendered as 3.7 spells them, and gates become one list', () => {
  const stated = ['--experimental-stop-grpc-service-on-defrag=true', '--experimental-memory-mlock'];
  expect(statedFlags(initial, stated, '3.7.3')).toEqual([
    '--memory-mlock',
    '--feature-gates=StopGRPCServiceOnDefrag=true,InitialCorruptCheck=$(INITIAL_CORRUPT_CHECK)',
  ]);
  expect(statedFlags(undefined, stated, '3.6.16')).toEqual(stated);
});

test.each([
  ['3.5.4', []],
  ['3.5.5', ['--experimental-compact-hash-check-enabled=true']],
  ['3.4.9', []],
  ['3.6.0', ['--feature-gates=CompactHashCheck=true']],
])('the check of compacted hashes, with etcd %s', (version, flags) => {
  expect(optionFlags({ corruptionCheck: { compactHash: true } }, version)).toEqual(flags);
});

test.each([
  ['3.5.33', []],
  ['3.6.0', ['--max-learners=8']],
  ['3.7.1', ['--max-learners=8']],
])('more than one learner, with etcd %s', (version, flags) => {
  expect(learnerFlags(8, version)).toEqual(flags);
});
