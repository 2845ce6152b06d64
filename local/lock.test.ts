import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { root } from '../tools/paths.ts';
import { withLock } from './lock.ts';

const what = `test of locks ${process.pid}`;
const events: string[] = [];
afterEach(() => events.splice(0));

/** Another `./dev` that holds the lock until it is killed. */
async function anotherHolder(): Promise<{ readonly kill: () => Promise<void> }> {
  const script = `import('./local/lock.ts').then((m) => m.withLock(${JSON.stringify(what)}, () => {
    process.stdout.write('held');
    return new Promise((resolve) => setTimeout(resolve, 60_000));
  }))`;
  const child = spawn(process.execPath, ['--eval', script], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return {
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}

test('a second ./dev is refused in one sentence that names the first', async () => {
  await anotherHolder();
  await expect(withLock(what, () => Promise.resolve())).rejects.toThrow(
    /process \d+\) is working on the test of locks/,
  );
});

test('a lock whose owner was killed is free', async () => {
  const other = await anotherHolder();
  await other.kill();
  await expect(withLock(what, () => Promise.resolve('mine'))).resolves.toBe('mine');
});

test('a waiting ./dev gets the lock when the first has ended', async () => {
  const other = await anotherHolder();
  const waiting = withLock(what, () => Promise.resolve(events.push('got it')), { wait: true });
  events.push('asked');
  await other.kill();
  await waiting;
  expect(events).toEqual(['asked', 'got it']);
});

test('two callers in one process take turns, also when the first fails', async () => {
  const first = withLock(what, async () => {
    events.push('first');
    throw new Error('failed');
  });
  const second = withLock(what, () => Promise.resolve(events.push('second')));
  await expect(first).rejects.toThrow('failed');
  await second;
  expect(events).toEqual(['first', 'second']);
});
