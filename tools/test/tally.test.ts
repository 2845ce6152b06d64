import { expect, test } from 'vitest';
import { add, countReport, failuresIn, nothing, tallyLine, type VitestReport } from './tally.ts';

const file = (status: string, ...tests: string[]): VitestReport['testResults'][number] => ({
  name: 'some.test.ts',
  status,
  assertionResults: tests.map((each) => ({ status: each })),
});

test('the last line names skipped tests only when there are any', () => {
  expect(tallyLine(nothing)).toBe('0 passed, 0 failed');
  expect(tallyLine({ passed: 12, failed: 1, skipped: 0 })).toBe('12 passed, 1 failed');
  expect(tallyLine({ passed: 12, failed: 0, skipped: 3 })).toBe('12 passed, 0 failed, 3 skipped');
});

test('tallies add up', () => {
  expect(add({ passed: 1, failed: 2, skipped: 3 }, { passed: 10, failed: 20, skipped: 30 })).toEqual({
    passed: 11,
    failed: 22,
    skipped: 33,
  });
});

test('tests are counted over all files; todo and pending ones are skipped', () => {
  const report = { testResults: [file('passed', 'passed', 'pending', 'todo'), file('failed', 'passed', 'failed')] };
  expect(countReport(report, 1)).toEqual({ passed: 2, failed: 1, skipped: 2 });
});

test('a file that cannot be loaded is a failure', () => {
  expect(countReport({ testResults: [file('passed', 'passed'), file('failed')] }, 1)).toEqual({
    passed: 1,
    failed: 1,
    skipped: 0,
  });
});

test('a file whose afterAll fails is a failure although each of its tests passed', () => {
  expect(countReport({ testResults: [file('failed', 'passed')] }, 1)).toEqual({ passed: 1, failed: 1, skipped: 0 });
});

test('an error outside any test is a failure', () => {
  expect(countReport({ testResults: [file('passed', 'passed')] }, 1)).toEqual({ passed: 1, failed: 1, skipped: 0 });
});

test('a failed test is known by its file and name, a failed hook by its file', () => {
  const failed = { status: 'failed', ancestorTitles: ['a suite'], title: 'a test', failureMessages: ['why'] };
  const files = [
    { name: '/a.test.ts', status: 'failed', assertionResults: [failed, { status: 'passed' }] },
    { name: '/b.test.ts', status: 'failed', message: 'Hook timed out', assertionResults: [{ status: 'skipped' }] },
    { name: '/c.test.ts', status: 'passed', assertionResults: [{ status: 'passed' }] },
  ];
  expect(failuresIn({ testResults: files })).toEqual([
    { file: '/a.test.ts', name: 'a suite > a test', messages: ['why'] },
    { file: '/b.test.ts', messages: ['Hook timed out'] },
  ]);
});
