import { expect, test } from 'vitest';
import { systemClock } from './clock.ts';

test('a delay that is too long for a Node timer does not fire at once', async () => {
  let called = false;
  const cancel = systemClock.after(60 * 86_400_000, () => {
    called = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  cancel();
  expect(called).toBe(false);
});
