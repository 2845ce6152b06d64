import { expect, test } from 'vitest';
import type { Clock } from './clock.ts';
import { alive, ready, SILENT_MS, STUCK_MS } from './health.ts';
import { ApiServerHeartbeat, QUIET_MS } from './heartbeat.ts';

test.each([
  ['all is well', { deadWatches: [], oldestPassMs: 100 }, 200, 'ok'],
  ['a watch has ended', { deadWatches: ['Pod'], oldestPassMs: 0 }, 503, 'the watch of Pod has ended'],
  ['a pass does not end', { deadWatches: [], oldestPassMs: STUCK_MS + 1 }, 503, 'a pass has been running for 300 s'],
])('alive: %s', (_what, facts, code, text) => {
  expect(alive(facts)).toEqual({ code, text: `${text}\n` });
});

test.each([
  ['all is well', { unsynced: [], missing: [], silentMs: 0 }, 200, 'ok'],
  [
    'a cache is empty',
    { unsynced: ['Pod', 'Service'], missing: [], silentMs: 0 },
    503,
    'the cache of Pod is not filled yet\nthe cache of Service is not filled yet',
  ],
  [
    'a definition is not installed',
    { unsynced: ['Pod'], missing: ['things.example.com'], silentMs: 0 },
    503,
    'the CustomResourceDefinition things.example.com is not installed: install the definitions of the chart (crds.enabled=true). The operator goes on by itself when it is there\nthe cache of Pod is not filled yet',
  ],
  [
    'nobody is there',
    { unsynced: [], missing: [], silentMs: SILENT_MS + 1_000 },
    503,
    'the API server has been silent for 91 s',
  ],
])('ready: %s', (_what, facts, code, text) => {
  expect(ready(facts)).toEqual({ code, text: `${text}\n` });
});

test('an API server that is quiet is asked, one that speaks is not', async () => {
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
  const pulse = new ApiServerHeartbeat(clock);
  const stop = new AbortController();
  const asked: number[] = [];
  const keeping = pulse.keep(async () => {
    asked.push(time);
    if (asked.length === 1) pulse.heard();
    if (asked.length === 3) stop.abort();
    throw new Error('no answer');
  }, stop.signal);
  await keeping;
  expect(asked).toEqual([QUIET_MS, QUIET_MS * 2, QUIET_MS * 2 + 5_000]);
  expect(pulse.silentMs).toBe(QUIET_MS + 5_000);
});
