/** docs/quick-start.md, typed as it stands there: its commands, in their order, with the plugin in the PATH. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import { blocksOf, read } from '../../tools/documents/pages.ts';
import { buildScript } from '../../tools/plugin/build.ts';
import { run } from '../../tools/process.ts';
import { testCluster } from '../support/journeys/journey.ts';

const PAGE = 'docs/quick-start.md';
const NAMESPACE = 'quick-start';
const PATIENCE_MS = 400_000;

/** The commands of a section. */
function typedIn(heading: string): string {
  const page = read(PAGE);
  const start = page.indexOf(`\n## ${heading}\n`);
  const end = page.indexOf('\n## ', start + 1);
  const scripts = blocksOf(page.slice(start, end)).filter(({ language }) => language === 'sh');
  if (start < 0 || scripts.length === 0) throw new Error(`${PAGE} has no commands below ${heading}`);
  return scripts.map(({ text }) => text).join('');
}

test.runIf(process.env['DEV_TEST_ALL'])(
  'the quick start works as it is written',
  async () => {
    const cluster = await testCluster();
    const folder = mkdtempSync(join(tmpdir(), 'quick-start-'));
    onTestFinished(async () => {
      rmSync(folder, { recursive: true, force: true });
      await cluster.kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false']);
    });
    const [script, { kubernetes }] = await Promise.all([buildScript(folder), build(['kubernetes'])]);
    const path = [kubernetes, dirname(script), dirname(process.execPath), process.env['PATH']].join(delimiter);
    const env = { KUBECONFIG: cluster.kubeconfig, PATH: path };
    const type = async (heading: string): Promise<string> =>
      (await run('bash', ['-euo', 'pipefail', '-c', typedIn(heading)], { env, timeoutMs: PATIENCE_MS })).stdout;

    expect(await type('First cluster')).toContain('condition met');
    expect(await type('See its state')).toContain('All 3 voters are healthy');
    expect(await type('Connect an application')).toMatch(/greeting\nhello\n(.|\n)*greeting\nhello\n/);
    expect(await type('Back up')).toContain('Complete');
    expect(await type('Restore')).toContain('greeting\nhello\n');
    expect(await type('Break it')).toContain('condition met');
    await type('Clean up');
    expect(await cluster.kubectl(['get', 'namespace', NAMESPACE, '--ignore-not-found'])).toBe('');
  },
  900_000,
);
