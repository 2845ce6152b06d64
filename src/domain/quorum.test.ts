import { expect, test } from 'vitest';
import { healthyReport, type Report } from './quorum.ts';

test('a voter is healthy up to 5000 entries behind the others', () => {
  const behind = (lag: number): boolean => {
    const self: Report = { id: 'a', leader: 'a', applied: 10_000 - lag, alarms: [] };
    return healthyReport([], { id: 'a', self, isInconsistent: false }, 10_000) !== undefined;
  };
  expect([behind(5_000), behind(5_001)]).toEqual([true, false]);
});
