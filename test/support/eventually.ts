/** Waits for what a user would wait for: asks again until the assertion holds, and fails with its last reason. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function eventually<T>(assertion: () => Promise<T>, timeoutMs = 60_000, everyMs = 250): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;)
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await sleep(everyMs);
    }
}
