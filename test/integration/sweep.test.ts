/** A slice of `./dev test sweep`: a few crash points of everything that a user does, and what is seen late most often. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { killPlans } from '../sweep/plans.ts';
import { Sweep } from '../sweep/sweep.ts';
import { WORKLOADS, type Workload } from '../sweep/workloads.ts';

const CRASHES = 3;
const MINUTES = 3 * 60_000;

let sweep: Sweep;
beforeAll(async () => {
  sweep = await Sweep.start();
});
afterAll(async () => {
  await sweep?.stop();
});

/** From the first to the last, evenly. */
const spread = <T>(items: readonly T[], count: number): readonly T[] =>
  items.filter((_, i) => Math.floor((i * count) / items.length) !== Math.floor(((i - 1) * count) / items.length));

async function slice(workload: Workload): Promise<readonly string[]> {
  const crashes = spread(killPlans(workload, await sweep.reference(workload)), CRASHES);
  return [...crashes, `${workload.name}/late-etcdmembers-2s`, `${workload.name}/late-pods-2s`];
}

test.concurrent.each(WORKLOADS)(
  'while $sentence, the operator is killed or sees late, and all ends as it does in peace',
  async (workload) => {
    const outcome = await sweep.run(await slice(workload));
    expect(outcome.failures.join('\n\n')).toBe('');
  },
  MINUTES,
);
