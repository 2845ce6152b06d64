/** A cluster in trouble does not affect other clusters. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loseBeside } from '../../bench/support/isolation.ts';
import { ScaleRig } from '../../bench/support/scale-rig.ts';

const CLUSTERS = 20;
const HUNG = 3;

let rig: ScaleRig;
beforeAll(async () => {
  rig = await ScaleRig.start();
  await rig.grow(CLUSTERS, () => undefined);
}, 180_000);
afterAll(async () => {
  await rig?.stop();
});

test('while members of three clusters accept calls and never respond, a lost Pod of another comes back in the usual time', async () => {
  const alone = await loseBeside(rig, 0, CLUSTERS - HUNG);
  const beside = await loseBeside(rig, HUNG, CLUSTERS - HUNG);
  const slowest = (times: readonly number[]): number => Math.max(...times);
  // A call to a member that hangs lasts two seconds: a reconcile that waits for one is detected, on the slowest machine.
  expect(slowest(beside)).toBeLessThan(slowest(alone) + 1.5);
}, 120_000);
