import { expect, test } from 'vitest';
import type { Clock } from './clock.ts';
import { Queue } from './queue.ts';

/** A clock that moves only with `advance`. */
function aClock() {
  let time = 0;
  let early = 0;
  const timers = new Set<{ readonly at: number; readonly call: () => void }>();
  const clock: Clock = {
    now: () => time,
    monotonic: () => time,
    random: () => 1,
    after: (ms, call) => {
      const timer = { at: time + ms, call };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  const advance = async (ms: number): Promise<void> => {
    time += ms;
    const set = Array.from(timers); // timers that a callback sets fire with the next advance
    for (const timer of set)
      if (timer.at <= time + early) {
        timers.delete(timer);
        timer.call();
      }
    await settle();
  };
  /** From now on timers fire this much too early, as real ones do by a fraction of a millisecond. */
  const skew = (ms: number): void => {
    early = ms;
  };
  return { clock, advance, skew };
}
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function aQueue(concurrency = 10, retryAfterMs: () => number | undefined = () => undefined) {
  const { clock, advance, skew } = aClock();
  const reconciles: string[] = [];
  const open = new Map<string, { resolve: (after?: number) => void; reject: (e: Error) => void }>();
  const observers = new Map<string, () => void>();
  const queue = new Queue({
    clock,
    concurrency,
    slowAfterMs: 200,
    maxRunning: 2 * concurrency,
    backoff: { firstMs: 100, maxMs: 1000 },
    retryAfterMs,
    work: (key, onObserve) => {
      reconciles.push(key);
      observers.set(key, onObserve);
      return new Promise((resolve, reject) => open.set(key, { resolve, reject }));
    },
  });
  const finish = async (key: string, after?: number): Promise<void> => {
    open.get(key)?.resolve(after);
    await settle();
  };
  const fail = async (key: string): Promise<void> => {
    open.get(key)?.reject(new Error('no'));
    await settle();
  };
  const observe = (key: string): void => observers.get(key)?.();
  return { queue, reconciles, observe, finish, fail, advance, skew };
}

test('many events about a key that is being reconciled lead to one more reconcile, after it', async () => {
  const { queue, reconciles, finish } = aQueue();
  queue.add('a');
  for (let i = 0; i < 5; i++) queue.add('a');
  expect(reconciles).toEqual(['a']);
  await finish('a');
  expect(reconciles).toEqual(['a', 'a']);
  await finish('a');
  expect(reconciles).toEqual(['a', 'a']);
});

test('a reconcile that hangs does not block other keys', async () => {
  const { queue, reconciles } = aQueue();
  for (const key of ['hung', 'a', 'b']) queue.add(key);
  expect(reconciles).toEqual(['hung', 'a', 'b']);
});

test('no more reconciles run concurrently than allowed', async () => {
  const { queue, reconciles, finish } = aQueue(2);
  for (const key of ['a', 'b', 'c']) queue.add(key);
  expect([reconciles, queue.depth]).toEqual([['a', 'b'], 1]);
  await finish('b');
  expect(reconciles).toEqual(['a', 'b', 'c']);
});

test('a failing key is retried with growing back-off, which a success resets', async () => {
  const { queue, reconciles, fail, finish, advance } = aQueue();
  queue.add('a');
  await fail('a');
  await advance(99);
  expect(reconciles.length).toBe(1);
  await advance(1);
  await fail('a');
  await advance(199);
  expect(reconciles.length).toBe(2);
  await advance(1);
  expect(reconciles.length).toBe(3);
  await finish('a');
  queue.add('a');
  await fail('a');
  await advance(100);
  expect(reconciles.length).toBe(5);
});

test('an event cancels a pending requeue', async () => {
  const { queue, reconciles, finish, advance } = aQueue();
  queue.add('a');
  await finish('a', 5_000);
  queue.add('a');
  await finish('a');
  await advance(10_000);
  expect(reconciles.length).toBe(2);
});

test('of two requeues of one key the earlier wins', async () => {
  const { queue, reconciles, advance } = aQueue();
  queue.addAfter('a', 1_000);
  queue.addAfter('a', 5_000);
  queue.addAfter('a', 500);
  await advance(500);
  expect(reconciles).toEqual(['a']);
});

test('stop waits for running reconciles and starts no more', async () => {
  const { queue, reconciles, finish, advance } = aQueue(1);
  queue.add('a');
  queue.add('b');
  queue.addAfter('c', 10);
  let stopped = false;
  const stop = queue.stop().then(() => {
    stopped = true;
  });
  await advance(100);
  expect(stopped).toBe(false);
  await finish('a');
  await stop;
  expect(reconciles).toEqual(['a']);
});

test('keys of normal priority run before those of low priority, and do not starve them', async () => {
  const { queue, reconciles, finish } = aQueue(1);
  queue.add('busy');
  queue.add('due', 'low');
  for (let n = 1; n <= 20; n++) queue.add(`changed-${n}`);
  await finish('busy');
  for (let n = 1; reconciles.length < 22; n++) await finish(reconciles.at(-1) ?? '');
  expect(reconciles.slice(0, 3)).toEqual(['busy', 'changed-1', 'changed-2']);
  expect(reconciles.indexOf('due')).toBe(8);
});

test('an event raises the priority of a queued key from low to normal', async () => {
  const { queue, reconciles, finish } = aQueue(1);
  queue.add('busy');
  queue.add('a', 'low');
  queue.add('b', 'low');
  queue.add('b');
  await finish('busy');
  await finish('b');
  expect(reconciles).toEqual(['busy', 'b', 'a']);
});

test('a key is not reconciled before its Retry-After has passed, although events arrive, and then it is', async () => {
  const { queue, reconciles, fail, advance } = aQueue(1, () => 5_000);
  queue.add('a');
  queue.add('a'); // during the reconcile
  await fail('a');
  queue.add('a');
  await advance(4_999);
  queue.add('a');
  expect(reconciles).toEqual(['a']);
  await advance(0.5); // timers may fire early
  expect(reconciles).toEqual(['a']);
  await advance(0.5);
  expect(reconciles).toEqual(['a', 'a']);
});

test('a timer that fires too early is set again', async () => {
  const { queue, reconciles, fail, advance, skew } = aQueue(1, () => 1_000);
  queue.add('a');
  await fail('a');
  skew(0.4);
  await advance(999.8);
  expect(reconciles).toEqual(['a']);
  await advance(1);
  expect(reconciles).toEqual(['a', 'a']);
});

test('oldestReconcileMs is how long the oldest reconcile has been running', async () => {
  const { queue, finish, advance } = aQueue();
  queue.add('a');
  await advance(300);
  queue.add('b');
  await advance(200);
  expect(queue.oldestReconcileMs).toBe(500);
  await finish('a');
  expect(queue.oldestReconcileMs).toBe(200);
});

test('an event before the caches are read needs no further reconcile, and one after that leads to another', async () => {
  const { queue, reconciles, observe, finish } = aQueue();
  queue.add('a');
  queue.add('a');
  observe('a');
  await finish('a');
  expect(reconciles).toEqual(['a']);

  queue.add('a');
  observe('a');
  queue.add('a');
  await finish('a');
  expect(reconciles).toEqual(['a', 'a', 'a']);
});

test('slow reconciles let others start, up to maxRunning', async () => {
  const { queue, reconciles, finish, advance } = aQueue(2);
  for (const key of ['m/slow', 'n/slower', 'o/a', 'p/b', 'q/c']) queue.add(key);
  expect(reconciles).toEqual(['m/slow', 'n/slower']);
  await advance(199);
  expect(reconciles).toEqual(['m/slow', 'n/slower']);
  await advance(1);
  expect(reconciles).toEqual(['m/slow', 'n/slower', 'o/a', 'p/b']);
  await advance(1_000);
  expect(reconciles).toEqual(['m/slow', 'n/slower', 'o/a', 'p/b']);
  await finish('m/slow');
  expect(reconciles).toEqual(['m/slow', 'n/slower', 'o/a', 'p/b', 'q/c']);
});

test('a namespace with 10,000 objects does not delay the object of another one', async () => {
  const { queue, reconciles, finish } = aQueue(4);
  for (let i = 0; i < 10_000; i++) queue.add(`loud/${i}`);
  queue.add('quiet/1');
  await finish('loud/0');
  await finish('loud/1');
  expect(reconciles).toEqual(['loud/0', 'loud/1', 'loud/2', 'loud/3', 'loud/4', 'quiet/1']);
});

test('a namespace whose servers never respond leaves slots to others, and a second such namespace does too', async () => {
  const { queue, reconciles, advance } = aQueue(8);
  const running = (namespace: string) => reconciles.filter((key) => key.startsWith(`${namespace}/`)).length;
  for (let i = 0; i < 100; i++) queue.add(`hung/${i}`);
  for (let i = 0; i < 3; i++) await advance(200);
  expect(running('hung')).toBe(12); // three quarters of sixteen
  for (let i = 0; i < 100; i++) queue.add(`stuck/${i}`);
  await advance(200);
  expect([running('hung'), running('stuck')]).toEqual([12, 3]);
  queue.add('quiet/1');
  expect(running('quiet')).toBe(1);
});
