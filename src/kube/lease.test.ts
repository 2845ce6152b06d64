import { expect, test } from 'vitest';
import type { Lease } from '../gen/kube.ts';
import type { Client } from './client.ts';
import { ApiError } from './errors.ts';
import { decideLease, Leadership, RENEW_DEADLINE_MS } from './lease.ts';

const held = (holderIdentity: string, leaseDurationSeconds = 15): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {},
  spec: { holderIdentity, leaseDurationSeconds },
});

test.each([
  ['there is no Lease yet', undefined, 0, 'create'],
  ['this process holds it', held('me'), 60_000, 'renew'],
  ['its holder released it', held('', 1), 0, 'take'],
  ['its holder renewed it in time', held('other'), 15_000, 'wait'],
  ['its holder has not renewed it for the whole lease duration', held('other'), 15_001, 'take'],
  ['its holder set a longer lease duration', held('other', 60), 30_000, 'wait'],
] as const)('when %s', (_name, lease, unchangedMs, move) => {
  expect(decideLease('me', { lease, unchangedMs })).toBe(move);
});

test.each([
  ['another replica held it, which may still act', 'other', 15_000, 'wait'],
  ['its holder would have stopped by now', 'other', 15_001, 'create'],
  ['this process holds it', 'me', 0, 'create'],
  ['its holder had released it', '', 0, 'create'],
] as const)('when it was deleted and %s', (_name, lastHolder, unchangedMs, move) => {
  expect(decideLease('me', { lease: undefined, unchangedMs, lastHolder })).toBe(move);
});

test('a standby that finds the Lease deleted waits for a lease duration', async () => {
  const { lease, time, steal, remove } = aLeadership();
  steal();
  const acquired = lease.acquire(never);
  remove();
  await acquired;
  expect(time.monotonic - 1_000).toBeGreaterThan(15_000);
});

/** A Lease in memory, and two clocks that move only when the test moves them. */
function aLeadership() {
  let stored: Lease | undefined;
  let version = 0;
  let broken = false;
  const time = { monotonic: 1_000, wall: 1_000_000 };
  const save = (lease: Lease): Lease => {
    if (broken) throw new ApiError('PATCH', 0, { reason: 'Unreachable' });
    stored = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(++version) } };
    return stored;
  };
  const client = {
    get: async () => stored,
    create: async (_r: unknown, lease: Lease) => save(lease),
    patch: async (_r: unknown, _ref: unknown, body: { metadata: { resourceVersion: string }; spec: object }) => {
      if (body.metadata.resourceVersion !== stored?.metadata.resourceVersion) throw new ApiError('PATCH', 409, {});
      return save({ ...stored, spec: { ...stored?.spec, ...body.spec } });
    },
  } as unknown as Client;
  const lease = new Leadership({
    client,
    ref: { namespace: 'n', name: 'l' },
    identity: 'me',
    monotonic: () => time.monotonic,
    now: () => new Date(time.wall),
    sleep: async (ms) => {
      time.monotonic += ms;
      time.wall += ms;
    },
    onError: () => undefined,
  });
  const steal = (): void => {
    stored = { ...held('other'), metadata: { resourceVersion: String(++version) } };
  };
  const remove = (): void => {
    stored = undefined;
  };
  const breakServer = (): void => {
    broken = true;
  };
  return { lease, time, steal, remove, breakServer, holder: () => stored?.spec?.holderIdentity };
}
const never = new AbortController().signal;

test.each([
  [
    'stopped: both clocks went on',
    (time: { monotonic: number; wall: number }) => {
      time.monotonic += RENEW_DEADLINE_MS;
      time.wall += RENEW_DEADLINE_MS;
    },
  ],
  [
    'suspended with its machine: only the wall clock went on',
    (time: { monotonic: number; wall: number }) => {
      time.wall += RENEW_DEADLINE_MS;
    },
  ],
])('a process that was %s no longer holds the Lease', async (_what, advance) => {
  const { lease, time } = aLeadership();
  await lease.acquire(never);
  expect([lease.open(), lease.remainingMs()]).toEqual([true, RENEW_DEADLINE_MS]);
  advance(time);
  expect([lease.open(), lease.remainingMs()]).toEqual([false, 0]);
});

test('a wall clock that is set back changes nothing', async () => {
  const { lease, time } = aLeadership();
  await lease.acquire(never);
  time.wall -= 3_600_000;
  time.monotonic += 1_000;
  expect(lease.remainingMs()).toBe(RENEW_DEADLINE_MS - 1_000);
});

test('a process that observes another holder stops at once', async () => {
  const { lease, steal } = aLeadership();
  await lease.acquire(never);
  steal();
  expect(await lease.keep(never)).toBe('lost');
  expect(lease.open()).toBe(false);
});

test('a holder that cannot renew stops before another replica may take over', async () => {
  const { lease, time, breakServer } = aLeadership();
  await lease.acquire(never);
  const began = time.monotonic;
  breakServer();
  expect(await lease.keep(never)).toBe('lost');
  expect(time.monotonic - began).toBeLessThanOrEqual(15_000 - 2_000);
});

test('a holder that releases the Lease writes nothing more, and the next replica need not wait', async () => {
  const { lease, holder } = aLeadership();
  await lease.acquire(never);
  const releasing = lease.release();
  expect(lease.open()).toBe(false);
  await releasing;
  expect(holder()).toBe('');
});
