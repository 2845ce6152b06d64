import { createRouterTransport } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { Pool } from './pool.ts';
import type { Target } from './transport.ts';

const transport = createRouterTransport(() => {});
const MINUTE = 60_000;
const noResponse = { kind: 'timeout', message: 'no response within 2000 ms' } as const;

function aPool(sizes = { idleMs: MINUTE, waiting: 10 }) {
  const open = new Set<string>();
  let time = 0;
  let opened = 0;
  const pool = new Pool({
    monotonic: () => time,
    now: () => time,
    backoff: { firstMs: 500, maxMs: 30_000 },
    ...sizes,
    open: ({ endpoint, tls }: Target) => {
      const name = `${endpoint}${tls ? ` ${tls.cert}` : ''} #${++opened}`;
      open.add(name);
      return {
        control: transport,
        bulk: transport,
        state: () => (open.has(name) ? 'open' : 'closed'),
        close: () => open.delete(name),
      };
    },
  });
  return { pool, open, opened: () => opened, pass: (ms: number) => (time += ms) };
}

const withCert = (cert: string) => ({ ca: 'ca', cert, key: 'key' });

test('a member that is called again is called on the same session', () => {
  const { pool, open } = aPool();
  pool.take('c', 'a', undefined).release();
  pool.take('c', 'a', undefined).release();
  expect([...open]).toEqual(['a #1']);
});

test('unused sessions are closed after a while', () => {
  const { pool, open, pass } = aPool();
  for (const endpoint of ['a', 'b']) pool.take('one', endpoint, undefined).release();
  pass(MINUTE);
  pool.take('one', 'b', undefined).release();
  pass(6_000);
  pool.take('two', 'x', undefined).release();
  expect([...open]).toEqual(['b #2', 'x #3']);
  pass(2 * MINUTE);
  pool.take('two', 'x', undefined).release();
  expect(pool.counts()).toEqual({ clusters: 1, open: 1, draining: 0, unreachable: 0 });
});

test('when there are too many idle sessions, the least recently used one is closed', () => {
  const { pool, open } = aPool({ idleMs: MINUTE, waiting: 2 });
  for (const endpoint of ['a', 'b', 'a', 'c']) pool.take('one', endpoint, undefined).release();
  expect([...open]).toEqual(['a #1', 'c #3']);
});

test('a session with a call on it does not count as idle', () => {
  const { pool, open } = aPool({ idleMs: MINUTE, waiting: 1 });
  const calls = ['a', 'b', 'c'].map((endpoint) => pool.take('one', endpoint, undefined));
  expect(open.size).toBe(3);
  for (const call of calls) call.release();
  expect([...open]).toEqual(['c #3']);
});

test('the session of a member that is removed during a call is closed after it', () => {
  const { pool, open } = aPool({ idleMs: MINUTE, waiting: 1 });
  const call = pool.take('one', 'a', undefined);
  pool.retain('one', []);
  pool.take('one', 'b', undefined).release();
  call.release();
  expect([...open]).toEqual(['b #2']);
});

test('a session with a call on it is never idle', () => {
  const { pool, open, pass } = aPool();
  const watch = pool.take('one', 'a', undefined);
  pass(1);
  pool.take('one', 'b', undefined).release();
  pass(20 * MINUTE);
  pool.take('one', 'b', undefined).release();
  expect([...open]).toContain('a #1');
  watch.release();
});

test('when members are removed their sessions are closed', () => {
  const { pool, open } = aPool();
  for (const endpoint of ['a', 'b']) pool.take('c', endpoint, undefined).release();
  pool.retain('c', ['b']);
  expect([...open]).toEqual(['b #2']);
  pool.forget('c');
  expect([...open]).toEqual([]);
});

test('new certificates make a new session; the old one ends with its last call', () => {
  const { pool, open } = aPool();
  const long = pool.take('c', 'a', withCert('old'));
  pool.take('c', 'a', withCert('new')).release();
  expect([...open]).toEqual(['a old #1', 'a new #2']);
  expect(pool.counts()).toEqual({ clusters: 1, open: 1, draining: 1, unreachable: 0 });
  long.release();
  expect([...open]).toEqual(['a new #2']);
});

test('the same certificates read again are the same', () => {
  const { pool, open } = aPool();
  pool.take('c', 'a', withCert('same')).release();
  pool.take('c', 'a', withCert('same')).release();
  expect(open.size).toBe(1);
});

test('a connection attempt without a response is aborted with the call that waited for it, so that the next call dials again', () => {
  let closed = 0;
  const pool = new Pool({
    monotonic: () => 0,
    now: () => 0,
    idleMs: MINUTE,
    waiting: 10,
    open: () => ({ control: transport, bulk: transport, state: () => 'connecting', close: () => closed++ }),
  });
  const [first, second] = [pool.take('c', 'a', undefined), pool.take('c', 'a', undefined)];
  first.release(noResponse);
  expect(closed).toBe(0); // another call still waits for it
  second.release(noResponse);
  expect(closed).toBe(1);
});

test('an unreachable member is not called for a while, and then again', () => {
  const { pool, pass } = aPool();
  pass(1_000);
  expect(pool.take('c', 'a', undefined).release(noResponse, true)).toBe(1_000);
  const refused = { error: { kind: 'unreachable', message: noResponse.message, since: 1_000 } };
  pass(499);
  expect(() => pool.take('c', 'a', undefined)).toThrow(expect.objectContaining(refused));
  expect(pool.counts()).toMatchObject({ unreachable: 1 });
  pool.take('c', 'b', undefined).release(); // the others are asked as ever
  pass(1);
  expect(pool.take('c', 'a', undefined).release()).toBeUndefined();
  expect(pool.counts()).toMatchObject({ unreachable: 0 });
});

test.each<[string, (pool: Pool) => void]>([
  ['a Pod of its cluster has changed', (pool) => pool.reset('c')],
  ['it was removed and another one has its address', (pool) => pool.retain('c', [])],
  ['it is reached with other certificates', (pool) => pool.take('c', 'a', withCert('new')).release()],
])('a member that is paused is called again at once when %s', (_, change) => {
  const { pool } = aPool();
  pool.take('c', 'a', withCert('old')).release(noResponse, true);
  expect(() => pool.take('c', 'a', withCert('old'))).toThrow(noResponse.message);
  change(pool);
  pool.take('c', 'a', withCert('old')).release();
});

test('a timeout while connecting is the failure of the member, whatever the call was', () => {
  const pool = new Pool({
    monotonic: () => 0,
    now: () => 0,
    backoff: { firstMs: 500, maxMs: 30_000 },
    idleMs: MINUTE,
    waiting: 10,
    open: () => ({ control: transport, bulk: transport, state: () => 'connecting', close: () => {} }),
  });
  pool.take('c', 'a', undefined).release(noResponse, false);
  expect(() => pool.take('c', 'a', undefined)).toThrow(noResponse.message);
});

/** Calls every member of N clusters every five minutes for an hour, one cluster after the other. */
function anIdleHour(clusters: number) {
  const made = aPool({ idleMs: 10 * MINUTE, waiting: 1_200 });
  let most = 0;
  for (let round = 0; round < 13; round++)
    for (let cluster = 0; cluster < clusters; cluster++) {
      for (const member of ['a', 'b', 'c']) made.pool.take(`${cluster}`, `${member}.${cluster}`, undefined).release();
      most = Math.max(most, made.open.size);
      made.pass((5 * MINUTE) / clusters);
    }
  return { most, again: (made.opened() - 3 * clusters) / clusters };
}

test('four hundred idle clusters open no connection after the first', () => {
  expect(anIdleHour(400)).toEqual({ most: 1_200, again: 0 });
});

test('a thousand idle clusters hold no more sessions than that, and are dialled', () => {
  expect(anIdleHour(1_000)).toEqual({ most: 1_200, again: 36 }); // an hour is twelve rounds of three members
});

test('the circuit of a member that fails is kept when its session is closed', () => {
  const { pool, open } = aPool({ idleMs: MINUTE, waiting: 1 });
  pool.take('c', 'bad', undefined).release(noResponse, true);
  pool.take('c', 'good', undefined).release();
  expect([...open]).toEqual(['good #2']);
  expect(pool.counts()).toMatchObject({ unreachable: 1 });
  expect(() => pool.take('c', 'bad', undefined)).toThrow(noResponse.message);
});
