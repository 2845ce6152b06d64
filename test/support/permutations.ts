/** All permutations of a case with `--all`; in every run the first of them, which stand first because they tell most. */
export const permutations = <const Row>(inEveryRun: number, rows: readonly Row[]): Row[] =>
  rows.slice(0, process.env['DEV_TEST_ALL'] ? rows.length : inEveryRun);
