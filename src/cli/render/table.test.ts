import { expect, test } from 'vitest';
import { type Columns, table, widthOf, withRest } from './table.ts';

interface Row {
  readonly name: string;
  readonly note: string;
}
const COLUMNS: Columns<Row> = [{ head: 'NAME', cell: ({ name }) => name }];
const REST = { head: 'NOTE', text: ({ note }: Row) => note };
const rows = [{ name: 'a', note: 'x'.repeat(80) }];
const drawn = (width: number): number => {
  const paper = { colour: false, width };
  return widthOf(table(paper, withRest(paper, COLUMNS, rows, REST), rows));
};

test('the last column is cut to the width of the terminal', () => {
  expect(drawn(60)).toBe(60);
  expect(drawn(200)).toBe('NAME  '.length + 80);
});
test('a terminal without room for a readable sentence gets it whole', () =>
  expect(drawn(20)).toBe('NAME  '.length + 80));
