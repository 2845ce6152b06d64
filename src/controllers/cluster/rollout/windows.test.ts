/** When maintenance windows are open. */
import { expect, test } from 'vitest';
import { NOW } from '../../../../test/support/builders/builders.ts';
import { blockMs, LONGEST_MS } from '../../../../test/support/builders/hostile.ts';
import { up, world } from '../../../../test/support/builders/members.ts';
import type { EtcdClusterSpec } from '../../../api/etcd-cluster.ts';
import { windowBlockedBy, windowOpensInMs } from './windows.ts';

type Windows = NonNullable<NonNullable<EtcdClusterSpec['updateStrategy']>['maintenanceWindows']>;
const at = (time: string, maintenanceWindows: Windows) => ({
  ...world([up], { spec: { updateStrategy: { maintenanceWindows } } }),
  now: Date.parse(time),
});
const NIGHT = { schedule: '0 2 * * *', duration: '2h' };
const BERLIN = { ...NIGHT, timeZone: 'Europe/Berlin' };

test.each<[string, Windows, string | undefined]>([
  ['2026-01-01T02:00:00Z', [NIGHT], undefined],
  ['2026-01-01T03:59:59Z', [NIGHT], undefined],
  ['2026-01-01T04:00:00Z', [NIGHT], 'the next maintenance window opens at 2026-01-02T02:00:00Z'],
  ['2026-01-01T01:59:59Z', [NIGHT], 'the next maintenance window opens at 2026-01-01T02:00:00Z'],
  ['2026-01-01T01:30:00Z', [BERLIN], undefined],
  ['2026-01-01T03:30:00Z', [BERLIN], 'the next maintenance window opens at 2026-01-02T01:00:00Z'],
  ['2026-01-01T03:30:00Z', [BERLIN, NIGHT], undefined],
  ['2026-01-01T12:00:00Z', [BERLIN, NIGHT], 'the next maintenance window opens at 2026-01-02T01:00:00Z'],
  ['2026-01-01T12:00:00Z', [], undefined],
])('at %s with %j', (time, windows, expected) => {
  expect(windowBlockedBy(at(time, windows))?.message).toBe(expected);
});

test.each<[string, Windows[number], string]>([
  ['schedule', { schedule: 'at night', duration: '2h' }, 'schedule "at night": five fields are needed'],
  ['time zone', { ...NIGHT, timeZone: 'Atlantis' }, '"Atlantis" is not a time zone'],
  ['duration', { ...NIGHT, duration: 'long' }, 'duration "long" is none'],
])('a window with an invalid %s never opens, and the message says why', (_, window, expected) => {
  const o = at('2026-01-01T03:00:00Z', [window]);
  expect(windowBlockedBy(o)?.message).toContain(expected);
  expect(windowOpensInMs(o)).toBeUndefined();
});

test('the cluster is requeued when a window opens, and at least every hour: the clock may be set', () => {
  expect(windowOpensInMs(at('2026-01-01T01:30:00Z', [NIGHT]))).toBe(30 * 60_000);
  expect(windowOpensInMs({ ...at('2026-01-01T12:00:00Z', [NIGHT]), now: NOW })).toBe(60 * 60_000);
  expect(windowOpensInMs(at('2026-01-01T02:30:00Z', [NIGHT]))).toBeUndefined();
});

test('the most windows, of the rarest day, do not block the event loop: a reconcile of nine members asks 39 times', () => {
  const rarest = { schedule: '0 0 29 2 *', duration: '1s', timeZone: 'Australia/Lord_Howe' };
  const o = at(
    '2097-01-01T00:00:00Z',
    Array.from({ length: 16 }, () => rarest),
  );
  expect(windowBlockedBy(o)?.message).toContain('2104-02-28T13:00:00Z');
  let now = o.now;
  const reconcile = () => {
    now += 1;
    return Array.from({ length: 39 }, () => windowBlockedBy({ ...o, now }));
  };
  expect(blockMs(reconcile)).toBeLessThan(LONGEST_MS / 2);
});
