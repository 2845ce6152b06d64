/** The table of `kubectl etcd events`. */
import type { EventRow } from '../assess/report.ts';
import type { Paper } from './style.ts';
import { type Columns, withRest } from './table.ts';
import { duration } from './units.ts';

const columns = (now: number): Columns<EventRow> => [
  { head: 'AGE', cell: ({ at }) => duration(Math.max(0, now - at)) },
  { head: 'TYPE', cell: ({ type }) => ({ text: type, tone: type === 'Normal' ? undefined : 'warn' }) },
  { head: 'REASON', cell: ({ reason }) => reason },
  { head: 'ABOUT', cell: ({ about }) => about },
  { head: 'COUNT', cell: ({ count }) => (count > 1 ? String(count) : ''), right: true },
];

/** The message is cut to the width of the terminal; wide, it is whole. */
export const eventColumns = (
  paper: Paper,
  rows: readonly EventRow[],
  { wide, now }: { readonly wide: boolean; readonly now: number },
): Columns<EventRow> =>
  withRest({ ...paper, ...(wide && { width: Number.POSITIVE_INFINITY }) }, columns(now), rows, {
    head: 'MESSAGE',
    text: ({ note }) => note,
  });
