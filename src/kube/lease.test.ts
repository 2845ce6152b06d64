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
  ['there is no lease yet', undefined, 0, 'create'],
  ['it is mine', held('me'), 60_000, 'renew'],
  ['its holder left', held('', 1), 0, 'take'],
  ['its holder was seen alive', held('other'), 15_000, 'wait'],
  ['its holder has been silent for the whole lease', held('other'), 15_001, 'take'],
  ['its holder asked for a longer lease', held('other', 60), 30_000, 'wait'],
] as const)('when %s', (_name, lease, unchangedMs, move) => {
  expect(decideLease('me', { lease, unchangedMs })).toBe(move);
});

/** A Lease that lives in memory, and two clocks that move only when told to. */
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
  const breakServer = (): void => {
    broken = true;
  };
  return { lease, time, steal, breakServer, holder: () => stored?.spec?.holderIdentity };
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
    'suspended with its machine: only the clock on the wall went on',
    (time: { monotonic: number; wall: number }) => {
      time.wall += RENEW_DEADLINE_MS;
    },
  ],
])('a process that was %s does not hold the lease any more', async (_what, pass) => {
  const { lease, time } = aLeadership();
  await lease.acquire(never);
  expect([lease.open(), lease.remainingMs()]).toEqual([true, RENEW_DEADLINE_MS]);
  pass(time);
  expect([lease.open(), lease.remainingMs()]).toEqual([false, 0]);
});

test('a clock on the wall that is set back changes nothing', async () => {
  const { lease, time } = aLeadership();
  await lease.acquire(never);
  time.wall -= 3_600_000;
  time.monotonic += 1_000;
  expect(lease.remainingMs()).toBe(RENEW_DEADLINE_MS - 1_000);
});

test('who sees that somebody else has it stops at once', async () => {
  const { lease, steal } = aLeadership();
  await lease.acquire(never);
  steal();
  expect(await lease.keep(never)).toBe('lost');
  expect(lease.open()).toBe(false);
});

test('who cannot renew stops before anybody else may start', async () => {
  const { lease, time, breakServer } = aLeadership();
  await lease.acquire(never);
  const began = time.monotonic;
  breakServer();
  expect(await lease.keep(never)).toBe('lost');
  expect(time.monotonic - began).toBeLessThanOrEqual(15_000 - 2_000);
});

test('who leaves writes nothing more, and the next one need not wait', async () => {
  const { lease, holder } = aLeadership();
  await lease.acquire(never);
  const releasing = lease.release();
  expect(lease.open()).toBe(false);
  await releasing;
  expect(holder()).toBe('');
});
