/** A deliberate fault: one text of one file is replaced, and the tests must notice. */
export interface Mutant {
  readonly file: string;
  /** Occurs exactly once in the file: a fault that could be in two places, or in none, tests nothing. */
  readonly from: string;
  readonly to: string;
  /** Which failure it lets in. */
  readonly lets: string;
}

/** From a file, and rows of: what it lets in, the text, the fault. */
export const faults = (file: string, rows: readonly (readonly [string, string, string])[]): readonly Mutant[] =>
  rows.map(([lets, from, to]) => ({ file, lets, from, to }));

const row = (rule: string): string => `{ name: '${rule}', rule: ${rule} },`;

/** A rule is left out of the order. */
export const dropped = (rule: string): readonly [string, string] => [row(rule), ''];

/** A rule comes too early: the first answer wins, so its old place does not matter. */
export const moved = (rule: string, before: string): readonly [string, string] => [
  row(before),
  `${row(rule)} ${row(before)}`,
];
