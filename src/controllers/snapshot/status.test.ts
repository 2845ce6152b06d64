import { expect, test } from 'vitest';
import { condition } from '../../../test/support/builders/builders.ts';
import type { EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { isMinor } from './status.ts';

const started: EtcdSnapshotStatus = {
  phase: 'Started',
  startTime: '2026-01-01T00:00:00Z',
  conditions: [condition('Ready', 'False', 'JobRunning')],
};

test.each<[string, EtcdSnapshotStatus, EtcdSnapshotStatus, boolean]>([
  ['another message', started, { ...started, conditions: [condition('Ready', 'False', 'JobRunning', 'x')] }, true],
  ['another phase', started, { ...started, phase: 'Failed' }, false],
  ['a start', { ...started, startTime: '' }, started, false],
  ['another reason', started, { ...started, conditions: [condition('Ready', 'False', 'JobFailed')] }, false],
  ['the first condition', { ...started, conditions: [] }, started, false],
  ['no condition at all', { ...started, conditions: [] }, { ...started, conditions: [] }, false],
])('a status write may wait for more: %s', (_what, before, after, expected) => {
  expect(isMinor(before, after)).toBe(expected);
});
