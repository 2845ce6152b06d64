import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { run } from '../process.ts';
import { buildScript } from './build.ts';
import { pluginCommand } from './command.ts';

test('a platform without an executable is refused, with those that have one', async () => {
  await expect(pluginCommand(['--platform', 'windows-amd64'])).rejects.toThrow(
    /linux-amd64\|linux-arm64\|darwin-amd64/,
  );
  await expect(pluginCommand(['--nothing'])).rejects.toThrow('./dev plugin');
});

test('the script runs under the name that kubectl looks for, and has the version of the package', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plugin-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const script = await buildScript(folder);
  expect(script).toBe(join(folder, 'kubectl-etcd'));
  expect((await run(process.execPath, [script, '--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
