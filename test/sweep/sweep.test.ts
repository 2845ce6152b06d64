/**
 * Every fault at every point of every user operation. `PLAN=<name>,… ./dev test sweep` repeats single plans,
 * `WORKLOAD=<name>,…` all plans of some workloads.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerPlans, gapPlans, killPlans, latePlans } from './plans.ts';
import { Sweep } from './sweep.ts';
import { WORKLOADS, workloadCalled } from './workloads.ts';

const listed = (variable: string): readonly string[] | undefined =>
  process.env[variable]?.split(',').map((name) => name.trim());
const asked = listed('PLAN');
const workloads = listed('WORKLOAD')?.map(workloadCalled) ?? WORKLOADS;
const HOURS = 2 * 3_600_000;

let sweep: Sweep;
beforeAll(async () => {
  sweep = await Sweep.start();
});
afterAll(async () => {
  await sweep?.stop();
});

async function expectWell(names: readonly string[], ran = sweep.run(names)): Promise<void> {
  const outcome = await ran;
  process.stderr.write(`${outcome.summary}\n`);
  expect(outcome.failures.join('\n\n')).toBe('');
  expect(outcome.missed.length, outcome.missed.join(', ')).toBeLessThanOrEqual(names.length / 2);
}

if (asked)
  test.concurrent.each(asked)(
    '%s reaches the same end state as without the fault',
    (name) => expectWell(name.split('+'), name.includes('+') ? sweep.replay(name.split('+')) : sweep.run([name])),
    HOURS,
  );

describe.concurrent.each(asked ? [] : workloads)('while $sentence,', (workload) => {
  test(
    'the operator is killed before and after each of its writes and membership changes, and its replacement finishes',
    async () => {
      await expectWell(killPlans(workload, await sweep.reference(workload)));
    },
    HOURS,
  );

  test(
    'watch events of one kind arrive 2, 8 or 30 seconds late, and nothing is done twice',
    async () => {
      await expectWell(latePlans(workload));
    },
    HOURS,
  );

  test(
    'watch events of one kind are coalesced, or lost until the watch restarts, and nothing is missed',
    async () => {
      await expectWell(gapPlans(workload));
    },
    HOURS,
  );

  test(
    'each write gets a 409, a 429, a 500 or no response once, and is made all the same',
    async () => {
      await expectWell(answerPlans(workload, await sweep.reference(workload)));
    },
    HOURS,
  );
});
