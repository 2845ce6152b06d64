import { expect, test } from 'vitest';
import { Semaphore } from './semaphore.ts';

/** Tasks that record their start, and end on command. */
class Work {
  started: string[] = [];
  readonly #ends = new Map<string, (how: Promise<string>) => void>();
  readonly #semaphore: Semaphore;

  constructor(semaphore: Semaphore) {
    this.#semaphore = semaphore;
  }

  start(name: string, signal?: AbortSignal): Promise<string> {
    return this.#semaphore.run(() => {
      this.started.push(name);
      return new Promise<string>((resolve) => this.#ends.set(name, resolve));
    }, signal);
  }

  async end(name: string, how: () => Promise<string> = async () => name): Promise<void> {
    await new Promise(setImmediate);
    this.#ends.get(name)?.(how());
    await new Promise(setImmediate);
  }
}

test('at most N tasks run at a time, and the others follow in order', async () => {
  const work = new Work(new Semaphore(2));
  const all = ['a', 'b', 'c', 'd'].map((name) => work.start(name));
  await new Promise(setImmediate);
  expect(work.started).toEqual(['a', 'b']);
  await work.end('b');
  expect(work.started).toEqual(['a', 'b', 'c']);
  await work.end('a');
  await work.end('c');
  await work.end('d');
  expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
});

test('a task that fails releases its slot', async () => {
  const work = new Work(new Semaphore(1));
  const [bad, good] = [work.start('bad'), work.start('good')];
  const rejected = expect(bad).rejects.toThrow('no');
  await work.end('bad', () => Promise.reject(new Error('no')));
  await rejected;
  expect(work.started).toEqual(['bad', 'good']);
  await work.end('good');
  expect(await good).toBe('good');
});

test('a task that is aborted while it waits never starts, and takes no slot from the others', async () => {
  const work = new Work(new Semaphore(1));
  const stop = new AbortController();
  const [first, impatient, last] = [work.start('first'), work.start('impatient', stop.signal), work.start('last')];
  stop.abort(new Error('too late'));
  await expect(impatient).rejects.toThrow('too late');
  await work.end('first');
  expect(work.started).toEqual(['first', 'last']);
  await work.end('last');
  await Promise.all([first, last]);
  await expect(work.start('never', stop.signal)).rejects.toThrow('too late');
  expect(work.started).toEqual(['first', 'last']);
});
