import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { chartDir, root } from '../paths.ts';
import { generateChart } from './chart.ts';

test('the generated files of the chart are those in the checkout ("./dev gen" makes them so)', async () => {
  const generated = await generateChart();
  for (const [path, content] of generated)
    expect(await readFile(join(root, path), 'utf8').catch(() => 'missing'), path).toBe(content);
  for (const folder of ['templates/crds', 'files/rbac'])
    for (const name of await readdir(join(chartDir, folder)))
      expect(generated.has(relative(root, join(chartDir, folder, name))), `${name} is no longer generated`).toBe(true);
});

test('the chart, its operator and the package have one version', async () => {
  const chart: unknown = parse(await readFile(join(chartDir, 'Chart.yaml'), 'utf8'));
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  expect(chart).toMatchObject({ version, appVersion: version });
});
