/** One line of merged logs: time, source, text. */
import type { LogLine } from '../assess/log-lines.ts';
import { type Paper, paint, printable, type Tone } from './style.ts';

const TONES: Readonly<Record<LogLine['level'], Tone | undefined>> = { info: undefined, warn: 'warn', error: 'bad' };

export function logText(paper: Paper, { at, source, level, text }: LogLine, width: number): string {
  const time = paint(paper, 'dim', new Date(at).toISOString().slice(11, 23));
  const own = source === 'operator' || source === 'event';
  const who = paint(paper, own ? 'bold' : 'dim', source.padEnd(width));
  return `${time} ${who} ${paint(paper, TONES[level], printable(text).replaceAll('\n', ' '))}`;
}
