import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { packageProgram, root } from '../paths.ts';
import { failuresIn, type VitestReport } from './tally.ts';
import { filterArguments, onlyThis } from './vitest.ts';

const files = ['src/lib/quantity.test.ts', 'src/controllers/cluster/decide.test.ts'];

test('a filter that is part of a path picks files', () => {
  expect(filterArguments('quantity', files)).toEqual(['quantity']);
  expect(filterArguments('src/controllers/cluster', files)).toEqual(['src/controllers/cluster']);
});

test('any other filter is part of a name, taken literally', () => {
  const [option, pattern = ''] = filterArguments('waits (and why)', files);
  expect(option).toBe('--testNamePattern');
  expect('the rule waits (and why) at first').toMatch(new RegExp(pattern));
});

const RERUN = 'ETCD_OPERATOR_RERUN';
const RUN = ['run', '--configLoader=native', '--project=unit', '--reporter=json'];
function vitest(select: readonly string[], env: Readonly<Record<string, string>>): VitestReport {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-rerun-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const report = join(folder, 'report.json');
  const args = [packageProgram('vitest'), ...RUN, `--outputFile.json=${report}`, ...select];
  spawnSync(process.execPath, args, { cwd: root, env: { ...process.env, ...env } });
  return JSON.parse(readFileSync(report, 'utf8')) as VitestReport;
}

/** The failing test below exists only in the vitest that the other test starts. */
const again = process.env[RERUN];
if (again !== undefined)
  describe('a suite (with signs)', () => {
    test('a test that fails [once]', () => expect(again).toBe('again'));
  });
else
  test('a failed test of a suite is found when it is run again', { timeout: 60_000 }, () => {
    const file = 'tools/test/vitest.test.ts';
    const [failed] = failuresIn(vitest([file], { [RERUN]: 'first' }));
    expect(failed?.name).toBe('a suite (with signs) > a test that fails [once]');
    const second = vitest(onlyThis({ ...failed, file, messages: [] }), { [RERUN]: 'again' });
    const results = second.testResults.flatMap(({ assertionResults }) => assertionResults);
    expect(results.filter(({ status }) => status === 'passed')).toHaveLength(1);
  });
