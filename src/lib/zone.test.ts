import { expect, test, vi } from 'vitest';
import { isZone } from './zone.ts';

test('a name that is longer than any is not looked up', () => {
  const asked = vi.spyOn(Temporal.Instant, 'fromEpochMilliseconds');
  expect(isZone('Europe/Berlin')).toBe(true);
  expect(asked).toHaveBeenCalledOnce();
  expect(isZone('A'.repeat(65))).toBe(false);
  expect(asked).toHaveBeenCalledOnce();
  asked.mockRestore();
});
