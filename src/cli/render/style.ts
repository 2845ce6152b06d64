/** Colours on a terminal, and none in a pipe: scripts compare text. */

export type Tone = 'good' | 'warn' | 'bad' | 'dim' | 'bold';

/** How the output is drawn. */
export interface Paper {
  readonly colour: boolean;
  /** Lines are wrapped or cut here; tables are not. */
  readonly width: number;
}

const CODES: Readonly<Record<Tone, readonly [number, number]>> = {
  good: [32, 39],
  warn: [33, 39],
  bad: [31, 39],
  dim: [2, 22],
  bold: [1, 22],
};

export const paint = (paper: Paper, tone: Tone | undefined, text: string): string =>
  !paper.colour || tone === undefined || text === ''
    ? text
    : `\u001B[${CODES[tone][0]}m${text}\u001B[${CODES[tone][1]}m`;

/** Control characters: a member or an Event could move the cursor or change the title of the terminal. */
const CONTROL = /(?![\t\n])\p{Cc}/gu;
export const printable = (text: string): string => text.replaceAll(CONTROL, '');

/** In lines of at most this width, broken at spaces; a longer word stays whole, because users copy it. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of printable(text).split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

export const cut = (text: string, width: number): string => {
  const line = printable(text).replaceAll(/\s+/g, ' ').trim();
  return line.length <= width ? line : `${line.slice(0, Math.max(1, width - 1))}…`;
};

/** A note: its further lines are indented. */
export const noted = (paper: Paper, tone: Tone | undefined, text: string, indent = ''): readonly string[] =>
  wrap(text, paper.width - indent.length - 2).map((line, index) =>
    paint(paper, tone, `${indent}${index === 0 ? '' : '  '}${line}`),
  );
