import { expect, test } from 'vitest';
import type { Clock } from './clock.ts';
import { alive, ready, STUCK_MS, UNREACHABLE_MS, unusedCRD } from './health.ts';
import { ApiServerHeartbeat, QUIET_MS } from './heartbeat.ts';

test.each([
  ['all is well', { deadWatches: [], oldestReconcileMs: 100 }, 200, 'ok'],
  ['a watch has ended', { deadWatches: ['Pod'], oldestReconcileMs: 0 }, 503, 'the watch of Pod has ended'],
  [
    'a reconcile is stuck',
    { deadWatches: [], oldestReconcileMs: STUCK_MS + 1 },
    503,
    'a reconcile has been running for 300 s',
  ],
])('alive: %s', (_what, facts, code, text) => {
  expect(alive(facts)).toEqual({ code, text: `${text}\n` });
});

test.each([
  ['all is well', { unsynced: [], missing: [], sinceResponseMs: 0 }, 200, 'ok'],
  [
    'all is well, and nothing is changed',
    { unsynced: [], missing: [], sinceResponseMs: 0, observeOnly: true },
    200,
    'ok\nobserve only: this operator changes nothing',
  ],
  [
    'two caches are not synced',
    { unsynced: ['Pod', 'Service'], missing: [], sinceResponseMs: 0 },
    503,
    'the cache of Pod is not synced yet\nthe cache of Service is not synced yet',
  ],
  [
    'a CRD is not installed',
    { unsynced: ['Pod'], missing: ['things.example.com'], sinceResponseMs: 0 },
    503,
    'the CustomResourceDefinition things.example.com is not installed: install the CRDs of the chart (crds.enabled=true). The operator continues by itself once it is installed\nthe cache of Pod is not synced yet',
  ],
  [
    'a CRD is older',
    { unsynced: [], missing: [], outdated: ['things lacks status.a'], sinceResponseMs: 0 },
    503,
    'things lacks status.a',
  ],
  [
    'the API server is unreachable',
    { unsynced: [], missing: [], sinceResponseMs: UNREACHABLE_MS + 1_000 },
    503,
    'the API server has been unreachable for 91 s',
  ],
  [
    'the CRD of an optional kind is not installed',
    { unsynced: [], missing: [], notes: [unusedCRD('x.example')], sinceResponseMs: 0 },
    200,
    `ok\n${unusedCRD('x.example')}`,
  ],
])('ready: %s', (_what, facts, code, text) => {
  expect(ready(facts)).toEqual({ code, text: `${text}\n` });
});

test('a request is sent to the API server when nothing was received for 30 s, and not before', async () => {
  let time = 0;
  const clock: Clock = {
    now: () => time,
    monotonic: () => time,
    random: () => 0,
    after: (ms, call) => {
      const timer = setImmediate(() => {
        time += ms;
        call();
      });
      return () => clearImmediate(timer);
    },
  };
  const heartbeat = new ApiServerHeartbeat(clock);
  const stop = new AbortController();
  const requests: number[] = [];
  const keeping = heartbeat.keep(async () => {
    requests.push(time);
    if (requests.length === 1) heartbeat.responded();
    if (requests.length === 3) stop.abort();
    throw new Error('no response');
  }, stop.signal);
  await keeping;
  expect(requests).toEqual([QUIET_MS, QUIET_MS * 2, QUIET_MS * 2 + 5_000]);
  expect(heartbeat.sinceResponseMs).toBe(QUIET_MS + 5_000);
});
