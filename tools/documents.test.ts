/** New users type the commands that the documents show, and look up there what the operator reports: all of it has to exist. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EVIDENCE } from '../src/api/etcd-member.ts';
import { FAILED_REASONS } from '../src/controllers/snapshot/status.ts';
import { commands } from './commands.ts';
import { root } from './paths.ts';

const documents = globSync(['*.md', '{docs,test,charts,local,bench}/**/*.md'], { cwd: root });
const names = commands.map(({ name }) => name);

test.each(documents)('%s names only commands of ./dev that exist', (document) => {
  const text = readFileSync(join(root, document), 'utf8');
  const typed = [...text.matchAll(/\.\/dev ([a-z]+)/g)].map(([, name]) => name);
  expect(typed.filter((name) => !names.includes(name ?? ''))).toEqual([]);
});

test('the README names the everyday commands', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  for (const name of ['demo', 'test', 'down', 'image']) expect(readme).toContain(`./dev ${name}`);
});

const WRITTEN =
  /\b(?:yes|no|off|pending|running|say|said|now)\(\s*'([A-Z][a-z][A-Za-z]+)'|\breason: '([A-Z][a-z][A-Za-z]+)'|^ {2}(?!kind:)\w+: '([A-Z][a-z][A-Za-z]+)',$/gm;

test('operations.md has every reason that a condition or an Event can have', () => {
  const places = ['src/{controllers,access}/**/*.ts', 'src/pki/findings.ts'];
  const written = globSync(places, { cwd: root })
    .filter((file) => !file.includes('.test.'))
    .flatMap((file) => [...readFileSync(join(root, file), 'utf8').matchAll(WRITTEN)])
    .flatMap(([, ...groups]) => groups.filter((reason) => reason !== undefined));
  const reasons = new Set([...written, ...FAILED_REASONS, ...Object.values(EVIDENCE)]);
  for (const one of ['QuorumLost', 'PodNotReady', 'JobRunning', 'ClusterParked', 'Untrusted', 'AllMembersDeleted'])
    expect(reasons).toContain(one); // otherwise the pattern does not match them any more
  const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  expect([...reasons].filter((reason) => !operations.includes(`\`${reason}\``))).toEqual([]);
});

/** By the sources, and the rest of the names that one of them composes. */
const METRIC = /\betcd_operator_[a-z_]+/g;
const metricsIn = (text: string): readonly string[] =>
  [...new Set(text.match(METRIC))].filter((name) => !name.endsWith('_'));
const sources = globSync('src/**/*.ts', { cwd: root }).filter((file) => !file.includes('.test.'));
const composed = ['last_hour', 'limit', 'waiting'].map((name) => `etcd_operator_replacements_${name}`);
const metrics = [...sources.flatMap((file) => metricsIn(readFileSync(join(root, file), 'utf8'))), ...composed];

test('the section Metrics of operations.md has every metric, and no document or alert has another', () => {
  const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const listed = metricsIn(operations.slice(operations.indexOf('\n## Metrics\n')));
  expect(listed.toSorted()).toEqual([...new Set(metrics)].toSorted());
  const others = [...documents, 'charts/etcd-operator/templates/prometheusrule.yaml'];
  const named = others.flatMap((file) => metricsIn(readFileSync(join(root, file), 'utf8')));
  expect(named.filter((name) => !metrics.includes(name))).toEqual([]);
});

test('operations.md and the chart have the same alerts, with the same expressions', () => {
  const chart = readFileSync(join(root, 'charts/etcd-operator/templates/prometheusrule.yaml'), 'utf8');
  const values = readFileSync(join(root, 'charts/etcd-operator/values.yaml'), 'utf8');
  const valueOf = (name: string): string => new RegExp(`^ {4}${name}: (\\d+)$`, 'm').exec(values)?.[1] ?? '';
  const rules = [...chart.matchAll(/- alert: (\w+)\n +expr: (.*)\n/g)].map(
    ([, alert, expr = '']) =>
      [alert, expr.replace(/\{\{ int \$rule\.(\w+) \}\}/, (_all, name: string) => valueOf(name))] as const,
  );
  expect(rules.length).toBeGreaterThan(5);
  const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const rows = [...operations.matchAll(/^\| `(Etcd\w+)` \| `([^`]+)`/gm)].map(
    ([, alert, expr]) => [alert, expr] as const,
  );
  expect(rows).toEqual(rules);
});

test('every threat in tenants.md is tested: the files that it names have tests with its number', () => {
  const text = readFileSync(join(root, 'docs/tenants.md'), 'utf8');
  const rows = [...text.matchAll(/^\| (S\d+) \|.*$/gm)].map(([row, number = '']) => ({
    number,
    files: [...row.matchAll(/`([\w/.-]+\.test\.ts)`/g)].map(([, file = '']) => file),
  }));
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 16 }, (_, i) => `S${i + 1}`));
  const named = (file: string, number: string): boolean =>
    new RegExp(`['"\`][^'"\`]*\\b${number}\\b`).test(readFileSync(join(root, file), 'utf8'));
  for (const { number, files } of rows)
    expect([number, files.length > 0, files.filter((file) => !named(file, number))]).toEqual([number, true, []]);
});
