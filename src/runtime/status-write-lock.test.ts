import { expect, test } from 'vitest';
import { Claims } from './status-write-lock.ts';

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a status that fails keeps nobody from changing the object', async () => {
  const claims = new Claims();
  const told = claims.telling('a', () => Promise.reject(new Error('refused'))).catch(String);
  const changed = claims.changing('a', async () => 'changed', soon);
  expect([await told, await changed]).toEqual(['Error: refused', 'changed']);
});

test('an object that two change is claimed until the cache has both changes', async () => {
  const claims = new Claims();
  const caches = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  for (const { promise } of caches)
    await claims.changing(
      'a',
      async () => 'changed',
      () => promise,
    );
  caches[0].resolve();
  await soon();
  expect(claims.holds('a')).toBe(true);
  caches[1].resolve();
  await soon();
  expect(claims.holds('a')).toBe(false);
});
