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

test.each<[string, Circuit, { error?: EtcdErrorKind; alone?: boolean; begunAt?: number }, Circuit]>([
  ['an answer leaves a good member as it is', CLOSED, {}, CLOSED],
  ['silence is a reason to wait', CLOSED, { error: 'timeout' }, open(1_500, 1, 1_000)],
  [
    'silence of a member that had to ask others says nothing about it',
    CLOSED,
    { error: 'timeout', alone: false },
    CLOSED,
  ],
  ['a refused connection costs nothing and says nothing', CLOSED, { error: 'unreachable' }, CLOSED],
  ['a caller that gave up says nothing', CLOSED, { error: 'canceled' }, CLOSED],
  ['what etcd refuses, it has answered', CLOSED, { error: 'noLeader' }, CLOSED],
  ['an answer makes all good', open(900, 9), {}, CLOSED],
  ['so does a refusal of etcd', open(900, 9), { error: 'learnerRefused' }, CLOSED],
  ['an answer to a call from before the pause does, too', open(20_000, 9), { begunAt: 0 }, CLOSED],
  [
    'a call from before the pause does not make it longer',
    open(1_200, 1),
    { error: 'timeout', begunAt: 0 },
    open(1_200, 1),
  ],
  ['the pause doubles', open(900, 1), { error: 'timeout' }, open(2_000, 2)],
  ['and doubles', open(900, 2), { error: 'timeout' }, open(3_000, 3)],
  ['up to a limit', open(900, 99), { error: 'timeout' }, open(31_000, 100)],
  [
    'a refused connection after a pause is waited for, not paused for',
    open(900, 3),
    { error: 'unreachable' },
    open(900, 3),
  ],
])('%s', (_, before, { error, alone = true, begunAt = 1_000 }, after) => {
  const end = { begunAt, alone, error: error && failed(error) };
  expect(afterCall(before, end, at(1_000), BACKOFF)).toEqual(after);
});

test.each<EtcdErrorKind>(['disconnected', 'tls', 'badAnswer', 'wrongCluster'])('%s is a reason to wait', (kind) => {
  const after = afterCall(CLOSED, { begunAt: 0, alone: false, error: failed(kind) }, at(10), BACKOFF);
  expect(after).toMatchObject({ is: 'open', until: 510, since: WALL + 10, message: `it was ${kind}` });
});

test('during the pause, and not a moment longer, a call is told since when and why', () => {
  const told = { kind: 'unreachable', message: 'it was timeout', since: WALL };
  expect([1_499, 1_500].map((now) => refusal(open(1_500, 1), now))).toEqual([told, undefined]);
  expect(refusal(CLOSED, 0)).toBeUndefined();
});
