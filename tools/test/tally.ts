/** Counts of passed and failed tests: sums over stages, and counts from vitest's report. */
import type { FailedTest } from './rerun.ts';

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const nothing: Tally = { passed: 0, failed: 0, skipped: 0 };
export const onePassed: Tally = { ...nothing, passed: 1 };
export const oneFailed: Tally = { ...nothing, failed: 1 };

export const add = (a: Tally, b: Tally): Tally => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
});

/** The last line of every run. */
export const tallyLine = ({ passed, failed, skipped }: Tally): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;

/** The separator of suites and tests in --testNamePattern of vitest; its report joins them with blanks. */
const SEPARATOR = ' > ';

/** The part of vitest's JSON report that counts. */
export interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly ancestorTitles?: readonly string[];
      readonly title?: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

/**
 * Counts a vitest run. A file that cannot be loaded has no failed test of its own, and neither has an error outside any
 * test: both count as one failure, so that a failed run never reads "0 failed".
 */
export function countReport(report: VitestReport, exitCode: number): Tally {
  let sum = nothing;
  for (const file of report.testResults) {
    const statuses = file.assertionResults.map((test) => test.status);
    const passed = statuses.filter((status) => status === 'passed').length;
    const failed = statuses.filter((status) => status === 'failed').length;
    const broken = file.status === 'failed' && failed === 0 ? 1 : 0;
    sum = add(sum, { passed, failed: failed + broken, skipped: statuses.length - passed - failed });
  }
  return exitCode !== 0 && sum.failed === 0 ? add(sum, oneFailed) : sum;
}

/** The tests that failed, and the files that failed although none of their tests did. */
export function failuresIn(report: VitestReport): readonly FailedTest[] {
  return report.testResults.flatMap(({ name: file, status, message = '', assertionResults }): readonly FailedTest[] => {
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (status === 'failed' && failed.length === 0) return [{ file, messages: [message] }];
    return failed.map(({ ancestorTitles = [], title = '', failureMessages = [] }) => ({
      file,
      name: [...ancestorTitles, title].join(SEPARATOR),
      messages: failureMessages,
    }));
  });
}
