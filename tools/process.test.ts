import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { handOver, run, stopChildren } from './process.ts';
import { Failure } from './terminal.ts';

/** A process that has ended but was not reaped yet still has its id: only Linux shows its state. */
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

async function waitUntil(holds: () => boolean): Promise<void> {
  await vi.waitUntil(holds, { timeout: 20_000 });
}

test('a finished command gives its code and output', async () => {
  expect(await run('sh', ['-c', 'cat; echo oops >&2'], { input: 'hello' })).toEqual({
    code: 0,
    stdout: 'hello',
    stderr: 'oops\n',
  });
});

test('a failed command rejects with the end of its output, unless failure is allowed', async () => {
  await expect(run('sh', ['-c', 'echo why >&2; exit 3'])).rejects.toThrow(/failed with exit code 3:\nwhy$/);
  expect((await run('sh', ['-c', 'exit 3'], { allowFailure: true })).code).toBe(3);
});

test('a missing command is named in one sentence', async () => {
  const error = await run('no-such-command-here', []).catch((caught: unknown) => caught);
  expect(error).toEqual(new Failure('no-such-command-here is not installed or not on the PATH.'));
});

test('a program that may not be run is not called missing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-process-'));
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n');
  chmodSync(program, 0o600);
  const error = await run(program, []).catch((caught: unknown) => caught);
  rmSync(folder, { recursive: true });
  expect(error).toEqual(
    new Failure(`this user has no permission to run ${program}: run this as its owner, or as root.`),
  );
});

test('a command with the terminal that dies by a signal gives the exit code that a shell would', async () => {
  expect(await handOver('sh', ['-c', 'kill -KILL $$'])).toBe(137);
  expect(await handOver('sh', ['-c', 'kill -TERM $$'])).toBe(143);
  expect(await handOver('sh', ['-c', 'exit 3'])).toBe(3);
});

test('whole lines of standard error are reported as they come', async () => {
  const lines: string[] = [];
  await run('sh', ['-c', 'printf one >&2; sleep 0.1; printf " line\\ntwo\\n" >&2'], {
    onLine: (line) => lines.push(line),
  });
  expect(lines).toEqual(['one line', 'two']);
});

// the shell starts a grandchild, prints its id and waits: stopping only the shell would leave the grandchild running
const withGrandchild = ['-c', 'sleep 300 & echo $!; wait'];

/** Cuts a command short by its time limit, after it has printed the id of its child: on a busy machine that takes a while. */
async function cutShort(): Promise<number> {
  for (const timeoutMs of [300, 3_000, 20_000]) {
    let grandchild = 0;
    const running = run('sh', withGrandchild, { timeoutMs, onOutput: (pid) => (grandchild = Number(pid)) });
    await expect(running).rejects.toThrow(`it did not end within ${timeoutMs} ms`);
    if (grandchild > 0) return grandchild;
  }
  throw new Error('the command has printed nothing'); // kill(0) would signal our whole group
}

/** As outside of tests, where each command leads its own process group. */
const asOutside = (): unknown => vi.stubEnv('VITEST', undefined);
afterEach(() => vi.unstubAllEnvs());

test.runIf(process.platform === 'linux')(
  'in a test a command belongs to the group of the test run, and a timeout does not wait for its children',
  async () => {
    const group = async (): Promise<string | undefined> =>
      (await run('cat', ['/proc/self/stat'])).stdout.split(') ')[1]?.split(' ')[2];
    const ours = await group();
    asOutside();
    expect(await group()).not.toBe(ours);
    vi.unstubAllEnvs();
    expect(await group()).toBe(ours);
    process.kill(await cutShort());
  },
);

test('a timeout stops a command with all its children', async () => {
  asOutside();
  const grandchild = await cutShort();
  await waitUntil(() => !alive(grandchild));
});

test('stopChildren ends the running commands with all their children', async () => {
  asOutside();
  let grandchild = 0;
  const running = run('sh', withGrandchild, { onOutput: (pid) => (grandchild = Number(pid)) });
  const ended = expect(running).rejects.toThrow('was ended by SIGTERM');
  await waitUntil(() => grandchild > 0);
  await stopChildren(5_000);
  await ended;
  await waitUntil(() => !alive(grandchild));
});

test('stopChildren waits for the children of a command, also when the command itself has ended', async () => {
  asOutside();
  let grandchild = 0;
  // it ignores signals and does not hold the output
  const stubborn = '(trap "" TERM; exec sleep 300) >/dev/null 2>&1 & sleep 0.2; echo $!; wait';
  const running = run('sh', ['-c', stubborn], { onOutput: (pid) => (grandchild = Number(pid)) });
  const ended = expect(running).rejects.toThrow('was ended by SIGTERM');
  await waitUntil(() => grandchild > 0);
  await stopChildren(200);
  await ended;
  expect(alive(grandchild)).toBe(false);
});

test('stopChildren kills a command that ignores SIGTERM', async () => {
  asOutside();
  let ready = false;
  const running = run('sh', ['-c', 'trap "" TERM; echo ready; sleep 300 & wait; wait'], {
    onOutput: () => (ready = true),
  });
  const ended = expect(running).rejects.toThrow('was ended by SIGKILL');
  await waitUntil(() => ready);
  await stopChildren(200);
  await ended;
});
