import { expect, test } from 'vitest';
import { Semaphore } from './semaphore.ts';

/** Work that begins when its turn comes, and ends when it is told to. */
class Work {
  begun: string[] = [];
  readonly #ends = new Map<string, (how: Promise<string>) => void>();
  readonly #turns: Semaphore;

  constructor(turns: Semaphore) {
    this.#turns = turns;
  }

  start(name: string, signal?: AbortSignal): Promise<string> {
    return this.#turns.run(() => {
      this.begun.push(name);
      return new Promise<string>((resolve) => this.#ends.set(name, resolve));
    }, signal);
  }

  async end(name: string, how: () => Promise<string> = async () => name): Promise<void> {
    await new Promise(setImmediate);
    this.#ends.get(name)?.(how());
    await new Promise(setImmediate);
  }
}

test('so many work at a time, and the others follow in order', async () => {
  const work = new Work(new Semaphore(2));
  const all = ['a', 'b', 'c', 'd'].map((name) => work.start(name));
  await new Promise(setImmediate);
  expect(work.begun).toEqual(['a', 'b']);
  await work.end('b');
  expect(work.begun).toEqual(['a', 'b', 'c']);
  await work.end('a');
  await work.end('c');
  await work.end('d');
  expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
});

test('one that fails gives its turn on', async () => {
  const work = new Work(new Semaphore(1));
  const [bad, good] = [work.start('bad'), work.start('good')];
  const said = expect(bad).rejects.toThrow('no');
  await work.end('bad', () => Promise.reject(new Error('no')));
  await said;
  expect(work.begun).toEqual(['bad', 'good']);
  await work.end('good');
  expect(await good).toBe('good');
});

test('one that gives up while it waits never begins, and takes no turn from the others', async () => {
  const work = new Work(new Semaphore(1));
  const stop = new AbortController();
  const [first, impatient, last] = [work.start('first'), work.start('impatient', stop.signal), work.start('last')];
  stop.abort(new Error('too late'));
  await expect(impatient).rejects.toThrow('too late');
  await work.end('first');
  expect(work.begun).toEqual(['first', 'last']);
  await work.end('last');
  await Promise.all([first, last]);
  await expect(work.start('never', stop.signal)).rejects.toThrow('too late');
  expect(work.begun).toEqual(['first', 'last']);
});
