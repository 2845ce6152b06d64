/** All permutations of a case with `--all`; otherwise only the first ones, which are listed first because they cover most. */
export const permutations = <const Row>(inEveryRun: number, rows: readonly Row[]): Row[] =>
  rows.slice(0, process.env['DEV_TEST_ALL'] ? rows.length : inEveryRun);
