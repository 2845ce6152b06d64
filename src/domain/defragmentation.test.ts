import { describe, expect, test } from 'vitest';
import { aDefrag, MI, outcome } from '../../test/support/builders/defrags.ts';
import type { DefragRule, EtcdDefrag, EtcdDefragStatus } from '../api/etcd-defrag.ts';
import { belowThreshold, hasRoom, queueOf, timeLimitMs } from './defragmentation.ts';

describe('which members a rule selects', () => {
  test.each<[string, DefragRule | undefined, total: number, free: number, quota: number, boolean]>([
    ['without a rule: those that would free more than 200Mi', undefined, 1_000, 201, 2_048, true],
    ['without a rule: not one that would free 200Mi', undefined, 1_000, 200, 2_048, false],
    ['an empty rule is no rule', {}, 1_000, 200, 2_048, false],
    ['all: however little it frees', { all: true }, 1, 0, 2_048, true],
    ['more than freeSpaceAbove', { freeSpaceAbove: '10Mi' }, 100, 11, 2_048, true],
    ['not freeSpaceAbove itself', { freeSpaceAbove: '10Mi' }, 100, 10, 2_048, false],
    ['above the share of the quota, with the default of minReclaim', { quotaUsageAbove: '80%' }, 90, 32, 100, true],
    ['above the share of the quota, with less to win than that', { quotaUsageAbove: '80%' }, 90, 31, 100, false],
    ['at the share of the quota', { quotaUsageAbove: '80%' }, 80, 60, 100, false],
    ['with at least minReclaim', { quotaUsageAbove: '80%', minReclaim: '5Mi' }, 90, 5, 100, true],
    ['far below the quota, by freeSpaceAbove', { quotaUsageAbove: '80%', freeSpaceAbove: '10Mi' }, 20, 11, 100, true],
  ])('%s', (_sentence, rule, total, free, quota, isSelected) => {
    const size = { bytes: total * MI, bytesInUse: (total - free) * MI, quotaBytes: quota * MI };
    expect(belowThreshold(rule, size) === undefined).toBe(isSelected);
  });
});

test('the oldest EtcdDefrag goes first, then by name; those that have finished or are being deleted do not count', () => {
  const at = (name: string, creationTimestamp: string) => aDefrag({}, undefined, { name, creationTimestamp });
  const [a, b, c] = [at('a', '2026-01-02T00:00:00Z'), at('b', '2026-01-01T00:00:00Z'), at('c', '2026-01-02T00:00:00Z')];
  const over = aDefrag({}, { phase: 'Complete' }, { name: 'over', creationTimestamp: '2025-01-01T00:00:00Z' });
  const deleted = aDefrag(
    {},
    {},
    { name: 'deleted', creationTimestamp: '2025-01-01T00:00:00Z', deletionTimestamp: 'x' },
  );
  expect(queueOf([c, a, over, b, deleted]).map(({ metadata }) => metadata.name)).toEqual(['b', 'a', 'c']);
});

test('the EtcdDefrag that runs stays first, and one that was admitted before those that were not', () => {
  const at = (name: string, status?: EtcdDefragStatus) => aDefrag({}, status, { name });
  const admitted: EtcdDefragStatus = { phase: 'Pending', admittedAt: '2026-01-01T11:00:01Z' };
  const running: EtcdDefragStatus = { ...admitted, phase: 'Running', members: [outcome('db-1')] };
  const names = (...all: readonly EtcdDefrag[]) => queueOf(all).map(({ metadata }) => metadata.name);
  expect(names(at('a'), at('b', running), at('c', admitted))).toEqual(['b', 'c', 'a']);
  expect(names(at('a', { phase: 'Pending' }), at('b', admitted))).toEqual(['b', 'a']);
});

test('a database of 8 GiB may take a quarter of an hour, and a small one two minutes', () => {
  expect([timeLimitMs(0), timeLimitMs(8 * 1_024 * MI)].map((ms) => Math.round(ms / 60_000))).toEqual([2, 16]);
});

test('an alarm is disarmed only while less than 90 % of the quota is used', () => {
  expect([89, 90].map((bytes) => hasRoom({ bytes, quotaBytes: 100 }))).toEqual([true, false]);
});
