import { describe, expect, test } from 'vitest';
import { condition } from '../../../test/support/builders/builders.ts';
import { aDefrag, done, MI, outcome } from '../../../test/support/builders/defrags.ts';
import type { EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import { defragProgress, outcomeLines, ruleOf } from './defrags.ts';

const progress = (status?: EtcdDefragStatus) => defragProgress('d', aDefrag({}, status));
const checked = (status: 'True' | 'False', reason: string) => [condition('DefragChecked', status, reason, 'why')];

describe('an EtcdDefrag', () => {
  test('goes on until it has finished', () => {
    expect(progress()).toEqual({ line: 'd: Pending' });
    expect(progress({ phase: 'Pending', conditions: checked('False', 'ClusterNotHealthy') })).toEqual({
      line: 'd: Pending; why',
    });
    const members = [done('a'), outcome('b')];
    expect(progress({ phase: 'Running', members, waitingFor: 'a snapshot streams from b' })).toEqual({
      line: 'd: Running 1 of 2 members done; a snapshot streams from b',
    });
    expect(progress({ phase: 'Complete', members, conditions: checked('True', 'Complete') })).toEqual({
      line: 'd: why',
      ended: 'good',
    });
    expect(progress({ phase: 'Failed', conditions: checked('False', 'MemberFailed') })).toEqual({
      line: 'd: failed (MemberFailed): why',
      ended: 'bad',
    });
    expect(defragProgress('d', undefined).ended).toBe('bad');
  });

  test('lists what came of each member, in the order in which they were done', () => {
    const failed = outcome('c', {
      outcome: 'Failed',
      reason: 'RPCError',
      message: 'no room',
      finishedAt: '2026-01-01T11:40:00Z',
    });
    const skipped = outcome('b', { outcome: 'Skipped', reason: 'BelowThreshold', finishedAt: '2026-01-01T11:20:00Z' });
    const members = [done('a', { dbSizeAfter: 2 * MI }), skipped, failed, outcome('e')];
    expect(outcomeLines(aDefrag({}, { members }))).toEqual([
      'b: Skipped: BelowThreshold',
      'a: Defragmented (500.0 MiB before, 2.0 MiB now)',
      'c: Failed: RPCError: no room',
    ]);
  });
});

test('without a rule, every member', () => {
  expect(ruleOf({})).toEqual({ all: true });
  expect(ruleOf({ quotaUsageAbove: '80%', minReclaim: '1Mi' })).toEqual({ quotaUsageAbove: '80%', minReclaim: '1Mi' });
});
