/** Memory does not leak: the short form of `./dev bench kube-soak`. */
import { expect, test } from 'vitest';
import { growth, soakFor } from '../../bench/kube-soak.ts';

test.runIf(process.env['DEV_TEST_ALL'])(
  'under churn, with a connection that breaks every second, the heap does not grow',
  async () => {
    const soak = await soakFor(process.env['DEV_TEST_ALL'] ? 600_000 : 40_000);
    expect(soak.passes).toBeGreaterThan(500);
    expect(growth(soak.samples), JSON.stringify(soak)).toBeLessThan(5);
  },
  700_000,
);
