import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { root } from './paths.ts';

/** A command like those of `./dev`: it waits for a child process, and its undo starts another one. */
const command = `
  import { handleSignals, withUndo } from './tools/interrupt.ts';
  import { run } from './tools/process.ts';
  handleSignals();
  const undo = async () => console.log((await run('echo', ['undone'])).stdout.trim());
  await withUndo(undo, async () => {
    const running = run('sh', ['-c', process.argv[1]]);
    console.log('working');
    await running.catch(() => {});
    await run('echo', ['more']).catch((error) => console.log('more:', error.message));
  }).catch(() => {});
  setInterval(() => {}, 1000); // never ends by itself
`;

/** As outside of tests, where each command leads its own process group. */
const env = { ...process.env, VITEST: undefined };

async function interrupt(child: string, ...signals: readonly NodeJS.Signals[]) {
  const process_ = spawn(process.execPath, ['--input-type=module', '--eval', command, '--', child], {
    cwd: root,
    env,
  });
  let output = '';
  process_.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  await once(process_.stdout, 'data');
  const started = performance.now();
  for (const [nth, signal] of signals.entries()) {
    // The kernel merges two signals that are pending at the same time, so the second is sent after the process has reported the first.
    if (nth === 0) await new Promise((resolve) => setTimeout(resolve, 100));
    else
      for (let reported = ''; !reported.includes('stopping'); )
        reported += String((await once(process_.stderr, 'data'))[0]);
    process_.kill(signal);
  }
  const [code] = (await once(process_, 'close')) as [number | null];
  return { code, lines: output.trim().split('\n'), ms: performance.now() - started };
}

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s stops the child, starts nothing else, undoes once and exits with 130',
  async (signal) => {
    const { code, lines } = await interrupt('sleep 300', signal);
    expect({ code, lines }).toEqual({ code: 130, lines: ['working', 'more: interrupted', 'undone'] });
  },
);

test('what the child started has ended before anything is undone', async () => {
  const { code, lines, ms } = await interrupt('(trap "" TERM; sleep 1.5) >/dev/null 2>&1 & wait', 'SIGINT');
  expect({ code, lines }).toEqual({ code: 130, lines: ['working', 'more: interrupted', 'undone'] });
  expect(ms).toBeGreaterThan(1_000);
});

test('a second signal ends at once, also when the child ignores it', async () => {
  const { code, lines, ms } = await interrupt('trap "" TERM; sleep 300 & wait; wait', 'SIGINT', 'SIGINT');
  expect({ code, lines }).toEqual({ code: 130, lines: ['working'] });
  expect(ms).toBeLessThan(2_000);
});

test.each(['stdout', 'stderr'] as const)('the work is also undone when %s is closed', async (closed) => {
  const talking = `
    import { handleLostOutput, withUndo } from './tools/interrupt.ts';
    import { run } from './tools/process.ts';
    handleLostOutput();
    const undo = async () => {
      console.log('undone');
      console.error('undone');
    };
    await withUndo(undo, async () => {
      setInterval(() => process.${closed}.write('on and on'), 20);
      await run('sleep', ['300']);
    }).catch(() => {});
  `;
  const process_ = spawn(process.execPath, ['--input-type=module', '--eval', talking], { cwd: root, env });
  let output = '';
  for (const stream of [process_.stdout, process_.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  await once(process_[closed], 'data');
  process_[closed].destroy();
  const [code] = (await once(process_, 'close')) as [number | null];
  expect(code).toBe(130);
  expect(output).toContain('undone');
});
