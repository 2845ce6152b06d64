import { expect, test } from 'vitest';
import { afterCall, type Circuit, CLOSED, refusal } from './circuit.ts';
import type { EtcdError, EtcdErrorKind } from './errors.ts';

const BACKOFF = { firstMs: 500, maxMs: 30_000 };
const WALL = 1_700_000_000_000;
const at = (monotonic: number) => ({ monotonic, now: WALL + monotonic });
const failed = (kind: EtcdErrorKind): EtcdError => ({ kind, message: `it was ${kind}` });
const open = (until: number, failures: number, since = 0): Circuit => ({
  is: 'open',
  until,
  failures,
  since: WALL + since,
  message: 'it was timeout',
});

test.each<[string, Circuit, { error?: EtcdErrorKind; alone?: boolean; startedAt?: number }, Circuit]>([
  ['a response leaves a closed circuit closed', CLOSED, {}, CLOSED],
  ['a timeout opens the circuit', CLOSED, { error: 'timeout' }, open(1_500, 1, 1_000)],
  [
    'a timeout of a member that needs its peers proves nothing about it',
    CLOSED,
    { error: 'timeout', alone: false },
    CLOSED,
  ],
  ['a refused connection costs nothing and proves nothing', CLOSED, { error: 'unreachable' }, CLOSED],
  ['a caller that aborted proves nothing', CLOSED, { error: 'canceled' }, CLOSED],
  ['a refusal of etcd is a response', CLOSED, { error: 'noLeader' }, CLOSED],
  ['a response closes the circuit', open(900, 9), {}, CLOSED],
  ['so does a refusal of etcd', open(900, 9), { error: 'learnerRefused' }, CLOSED],
  ['a response to a call from before the pause does, too', open(20_000, 9), { startedAt: 0 }, CLOSED],
  [
    'a call from before the pause does not make it longer',
    open(1_200, 1),
    { error: 'timeout', startedAt: 0 },
    open(1_200, 1),
  ],
  ['the pause doubles', open(900, 1), { error: 'timeout' }, open(2_000, 2)],
  ['and doubles', open(900, 2), { error: 'timeout' }, open(3_000, 3)],
  ['up to a limit', open(900, 99), { error: 'timeout' }, open(31_000, 100)],
  [
    'a refused connection after a pause does not start another pause',
    open(900, 3),
    { error: 'unreachable' },
    open(900, 3),
  ],
])('%s', (_, before, { error, alone = true, startedAt = 1_000 }, after) => {
  const end = { startedAt, alone, error: error && failed(error) };
  expect(afterCall(before, end, at(1_000), BACKOFF)).toEqual(after);
});

test.each<EtcdErrorKind>(['disconnected', 'tls', 'badAnswer', 'wrongCluster'])('%s opens the circuit', (kind) => {
  const after = afterCall(CLOSED, { startedAt: 0, alone: false, error: failed(kind) }, at(10), BACKOFF);
  expect(after).toMatchObject({ is: 'open', until: 510, since: WALL + 10, message: `it was ${kind}` });
});

test('during the pause, and not a moment longer, a call fails with the last error and since when', () => {
  const error = { kind: 'unreachable', message: 'it was timeout', since: WALL };
  expect([1_499, 1_500].map((now) => refusal(open(1_500, 1), now))).toEqual([error, undefined]);
  expect(refusal(CLOSED, 0)).toBeUndefined();
});
