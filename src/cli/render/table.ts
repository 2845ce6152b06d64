/** A table with aligned columns, as kubectl prints them. */
import { cut, type Paper, paint, printable, type Tone } from './style.ts';

export type Cell = string | { readonly text: string; readonly tone: Tone | undefined };

/** `false`: not shown, as in `wide && {…}`. */
export type Columns<Row> = readonly (Column<Row> | false)[];

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => Cell;
  /** Figures are aligned to the right. */
  readonly right?: boolean;
}

const textOf = (cell: Cell): string => printable(typeof cell === 'string' ? cell : cell.text);
const toneOf = (cell: Cell): Tone | undefined => (typeof cell === 'string' ? undefined : cell.tone);

const GAP = '  ';

export const widthOf = (lines: readonly string[]): number => Math.max(0, ...lines.map((line) => line.length));

/** A last column that is cut to the room which the others leave; in a terminal that is too narrow for 20 characters of it, whole. */
export function withRest<Row>(
  paper: Paper,
  columns: Columns<Row>,
  rows: readonly Row[],
  { head, text }: { readonly head: string; readonly text: (row: Row) => string },
): Columns<Row> {
  const room = paper.width - widthOf(table({ ...paper, colour: false }, columns, rows)) - GAP.length;
  return [...columns, { head, cell: (row) => (room < 20 ? text(row) : cut(text(row), room)) }];
}

/** One line per row under a head; empty without rows. A column without any content is left out. */
export function table<Row>(paper: Paper, columns: Columns<Row>, rows: readonly Row[], indent = ''): readonly string[] {
  if (rows.length === 0) return [];
  const filled = columns
    .filter((column) => column !== false)
    .map((column) => ({ ...column, cells: rows.map((row) => column.cell(row)) }))
    .filter(({ cells }) => cells.some((cell) => textOf(cell) !== ''))
    .map((column) => ({
      ...column,
      width: Math.max(column.head.length, ...column.cells.map((cell) => (textOf(cell) || '-').length)),
    }));
  const line = (cells: readonly Cell[]): string =>
    indent +
    filled
      .map(({ width, right }, index) => {
        const cell = cells[index] ?? '';
        const text = textOf(cell) || '-';
        const last = index === filled.length - 1 && right !== true;
        const padded = last ? text : right ? text.padStart(width) : text.padEnd(width);
        return paint(paper, toneOf(cell), padded);
      })
      .join(GAP);
  const head = filled.map(({ head: text }): Cell => ({ text, tone: 'dim' }));
  return [line(head), ...rows.map((_, row) => line(filled.map(({ cells }) => cells[row] ?? '')))];
}
