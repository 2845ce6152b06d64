/** A person who is woken by an alert finds its page, and in each page the same parts in the same order. */
import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../paths.ts';
import { linksOf, read } from './pages.ts';

const FOLDER = 'docs/runbooks';
const INDEX = `${FOLDER}/README.md`;
const runbooks = globSync(`${FOLDER}/*.md`, { cwd: root })
  .filter((page) => page !== INDEX)
  .sort();

const rules = read('charts/etcd-operator/templates/prometheusrule.yaml');
const alerts = [...rules.matchAll(/- alert: (\w+)\n([\s\S]*?)(?=- alert: |$)/g)].map(([, name = '', rule = '']) => ({
  name,
  severity: /severity: (\w+)/.exec(rule)?.[1] ?? '',
  metrics: rule.match(/\betcd_[a-z_]+/g) ?? [],
  url: /runbook_url: (.*)/.exec(rule)?.[1],
}));

test('the alerts of the chart are found', () => expect(alerts.length).toBeGreaterThan(5));

describe('the runbook of', () => {
  test.each(alerts)('$name is in the index, and says when it fires', ({ name, severity, metrics, url }) => {
    expect(read(INDEX)).toContain(`| \`${name}\` | ${severity} | [${name}](${name}.md) |`);
    const page = read(`${FOLDER}/${name}.md`);
    expect(page).toMatch(new RegExp(`^# ${name}\n\nSeverity: ${severity}\\.`));
    for (const metric of metrics) expect(page).toContain(metric);
    expect(url).toBe(`{{ . }}/${name}.md`);
  });
  test('no other alert is in the index', () => {
    const names = [...read(INDEX).matchAll(/^\| `(Etcd\w+)` \|/gm)].map(([, name]) => name);
    expect(names).toEqual(alerts.map(({ name }) => name));
  });
});

const PARTS = ['**What it means.**', '**Is data at risk?**', '## Look', '## Act', '## Over when'];

describe('a runbook', () => {
  test.each(runbooks)('%s has all parts in order, and is in the index', (page) => {
    const text = read(page);
    const places = PARTS.map((part) => text.indexOf(`\n${part}`));
    expect(Math.min(...places)).toBeGreaterThan(0);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(linksOf(read(INDEX))).toContain(basename(page));
  });
});
