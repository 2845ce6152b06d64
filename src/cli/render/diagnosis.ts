/** The findings of `kubectl etcd doctor`, the worst first. */
import type { Finding, Level } from '../assess/finding.ts';
import { type Paper, paint, type Tone, wrap } from './style.ts';
import { plural } from './units.ts';

const MARKS: Readonly<Record<Level, readonly [mark: string, tone: Tone]>> = {
  problem: ['PROBLEM', 'bad'],
  advice: ['advice', 'warn'],
  unknown: ['unknown', 'dim'],
  ok: ['ok', 'good'],
};
const MARK = 9;
const SUBJECT = 15;

export function diagnosisText(paper: Paper, title: string, findings: readonly Finding[]): string {
  const count = (level: Level): number => findings.filter((each) => each.level === level).length;
  const problems = plural(count('problem'), 'problem');
  const total = `${problems}, ${count('advice')} with advice, ${count('unknown')} unknown, ${count('ok')} ok`;
  return [paint(paper, 'bold', title), '', ...findings.flatMap((each) => findingLines(paper, each)), '', total].join(
    '\n',
  );
}

function findingLines(paper: Paper, { level, subject, message, advice }: Finding): readonly string[] {
  const [mark, tone] = MARKS[level];
  const indent = ' '.repeat(MARK + SUBJECT);
  const lines = wrap(message, paper.width - indent.length);
  const todo = advice === undefined ? [] : wrap(`→ ${advice}`, paper.width - indent.length);
  const [first = '', ...rest] = lines;
  return [
    `${paint(paper, tone, mark.padEnd(MARK))}${subject.padEnd(SUBJECT)}${first}`,
    ...rest.map((line) => `${indent}${line}`),
    ...todo.map((line) => `${indent}${line}`),
  ];
}
