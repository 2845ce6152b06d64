import { expect, test } from 'vitest';
import { commands } from './commands.ts';
import { packageProgram, root } from './paths.ts';
import { run } from './process.ts';

const dev = (...args: readonly string[]) =>
  run(process.execPath, ['tools/dev.ts', ...args], { cwd: root, allowFailure: true });

test.each([[[]], [['help']], [['--help']], [['-h']]])('./dev %j lists every command with a sentence', async (args) => {
  const { code, stdout } = await dev(...args);
  expect(code).toBe(0);
  for (const { name, does } of commands) {
    expect(stdout).toContain(`./dev ${name}`);
    expect(stdout).toContain(does);
  }
});

test.each([
  [['tset'], './dev: there is no command "tset"; did you mean ./dev test?\n'],
  [['nonsense'], './dev: there is no command "nonsense"; ./dev alone lists them.\n'],
  [['test', 'unti'], './dev: "unti" is no level of tests; did you mean ./dev test unit?\n'],
  [['gen', '--chek'], './dev: ./dev gen takes --check or nothing.\n'],
  [['mutants', 'nonsense'], './dev: no fault has "nonsense" in its file or its description.\n'],
  [['bench', 'startpu'], './dev: there is no benchmark "startpu"; did you mean startup?\n'],
  [['down', 'production'], './dev: "production" names no local cluster; there are demo, test and scratch.\n'],
])('./dev %j is refused in one sentence, with exit code 2', async (args, sentence) => {
  expect(await dev(...args)).toEqual({ code: 2, stdout: '', stderr: sentence });
});

test('the programs that the commands call are installed', async () => {
  for (const program of ['biome', 'oxlint', 'tsc', 'vitest'])
    expect((await run(process.execPath, [packageProgram(program), '--version'])).code).toBe(0);
});
