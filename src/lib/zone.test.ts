import { expect, test, vi } from 'vitest';
import { isZone } from './zone.ts';

test('a name that is too long is not looked up', () => {
  const lookup = vi.spyOn(Temporal.Instant, 'fromEpochMilliseconds');
  expect(isZone('Europe/Berlin')).toBe(true);
  expect(lookup).toHaveBeenCalledOnce();
  expect(isZone('A'.repeat(65))).toBe(false);
  expect(lookup).toHaveBeenCalledOnce();
  lookup.mockRestore();
});
