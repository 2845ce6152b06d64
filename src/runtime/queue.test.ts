import { expect, test } from 'vitest';
import type { Clock } from './clock.ts';
import { Queue } from './queue.ts';

/** A clock that moves only when told to. */
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
    const set = Array.from(timers); // those that a call sets are for the next time
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

function aQueue(concurrency = 10, pauseAsked: () => number | undefined = () => undefined) {
  const { clock, advance, skew } = aClock();
  const passes: string[] = [];
  const open = new Map<string, { resolve: (after?: number) => void; reject: (e: Error) => void }>();
  const looks = new Map<string, () => void>();
  const queue = new Queue({
    clock,
    concurrency,
    slowAfterMs: 200,
    maxRunning: 2 * concurrency,
    backoff: { firstMs: 100, maxMs: 1000 },
    retryAfterMs: pauseAsked,
    work: (key, looking) => {
      passes.push(key);
      looks.set(key, looking);
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
  const look = (key: string): void => looks.get(key)?.();
  return { queue, passes, look, finish, fail, advance, skew };
}

test('many events about one key during its pass lead to one more pass, after it', async () => {
  const { queue, passes, finish } = aQueue();
  queue.add('a');
  for (let i = 0; i < 5; i++) queue.add('a');
  expect(passes).toEqual(['a']);
  await finish('a');
  expect(passes).toEqual(['a', 'a']);
  await finish('a');
  expect(passes).toEqual(['a', 'a']);
});

test('a pass that hangs holds up no other key', async () => {
  const { queue, passes } = aQueue();
  for (const key of ['hung', 'a', 'b']) queue.add(key);
  expect(passes).toEqual(['hung', 'a', 'b']);
});

test('no more passes run at once than allowed', async () => {
  const { queue, passes, finish } = aQueue(2);
  for (const key of ['a', 'b', 'c']) queue.add(key);
  expect([passes, queue.depth]).toEqual([['a', 'b'], 1]);
  await finish('b');
  expect(passes).toEqual(['a', 'b', 'c']);
});

test('a failing key waits longer each time, and starts from the beginning after a success', async () => {
  const { queue, passes, fail, finish, advance } = aQueue();
  queue.add('a');
  await fail('a');
  await advance(99);
  expect(passes.length).toBe(1);
  await advance(1);
  await fail('a');
  await advance(199);
  expect(passes.length).toBe(2);
  await advance(1);
  expect(passes.length).toBe(3);
  await finish('a');
  queue.add('a');
  await fail('a');
  await advance(100);
  expect(passes.length).toBe(5);
});

test('an event cuts a wait short, and the wait does not fire again', async () => {
  const { queue, passes, finish, advance } = aQueue();
  queue.add('a');
  await finish('a', 5_000);
  queue.add('a');
  await finish('a');
  await advance(10_000);
  expect(passes.length).toBe(2);
});

test('of two waits the earlier counts', async () => {
  const { queue, passes, advance } = aQueue();
  queue.addAfter('a', 1_000);
  queue.addAfter('a', 5_000);
  queue.addAfter('a', 500);
  await advance(500);
  expect(passes).toEqual(['a']);
});

test('stopping waits for running passes and starts no more', async () => {
  const { queue, passes, finish, advance } = aQueue(1);
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
  expect(passes).toEqual(['a']);
});

test('changes go before resyncs, and resyncs are not starved by them', async () => {
  const { queue, passes, finish } = aQueue(1);
  queue.add('busy');
  queue.add('due', 'resync');
  for (let n = 1; n <= 20; n++) queue.add(`changed-${n}`);
  await finish('busy');
  for (let n = 1; passes.length < 22; n++) await finish(passes.at(-1) ?? '');
  expect(passes.slice(0, 3)).toEqual(['busy', 'changed-1', 'changed-2']);
  expect(passes.indexOf('due')).toBe(8);
});

test('a resync that becomes a change moves ahead', async () => {
  const { queue, passes, finish } = aQueue(1);
  queue.add('busy');
  queue.add('a', 'resync');
  queue.add('b', 'resync');
  queue.add('b');
  await finish('busy');
  await finish('b');
  expect(passes).toEqual(['busy', 'b', 'a']);
});

test('whoever is asked to stay away stays away, although things happen, and comes back', async () => {
  const { queue, passes, fail, advance } = aQueue(1, () => 5_000);
  queue.add('a');
  queue.add('a'); // during the pass
  await fail('a');
  queue.add('a');
  await advance(4_999);
  queue.add('a');
  expect(passes).toEqual(['a']);
  await advance(0.5); // timers fire early now and then
  expect(passes).toEqual(['a']);
  await advance(0.5);
  expect(passes).toEqual(['a', 'a']);
});

test('a timer that fires too early is not the last one', async () => {
  const { queue, passes, fail, advance, skew } = aQueue(1, () => 1_000);
  queue.add('a');
  await fail('a');
  skew(0.4);
  await advance(999.8);
  expect(passes).toEqual(['a']);
  await advance(1);
  expect(passes).toEqual(['a', 'a']);
});

test('it is known how long the longest pass has been running', async () => {
  const { queue, finish, advance } = aQueue();
  queue.add('a');
  await advance(300);
  queue.add('b');
  await advance(200);
  expect(queue.oldestReconcileMs).toBe(500);
  await finish('a');
  expect(queue.oldestReconcileMs).toBe(200);
});

test('what arrives before a pass looks is seen by that pass, and what arrives after that leads to another one', async () => {
  const { queue, passes, look, finish } = aQueue();
  queue.add('a');
  queue.add('a');
  look('a');
  await finish('a');
  expect(passes).toEqual(['a']);

  queue.add('a');
  look('a');
  queue.add('a');
  await finish('a');
  expect(passes).toEqual(['a', 'a', 'a']);
});

test('passes that take long make room for others, up to a limit', async () => {
  const { queue, passes, finish, advance } = aQueue(2);
  for (const key of ['slow', 'slower', 'a', 'b', 'c']) queue.add(key);
  expect(passes).toEqual(['slow', 'slower']);
  await advance(199);
  expect(passes).toEqual(['slow', 'slower']);
  await advance(1);
  expect(passes).toEqual(['slow', 'slower', 'a', 'b']);
  await advance(1_000);
  expect(passes).toEqual(['slow', 'slower', 'a', 'b']);
  await finish('slow');
  expect(passes).toEqual(['slow', 'slower', 'a', 'b', 'c']);
});
