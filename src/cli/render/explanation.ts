/** The screen of `kubectl etcd explain`. */
import type { Explanation, StageAnswer } from '../assess/explanation.ts';
import { noted, type Paper, paint, wrap } from './style.ts';
import { plural } from './units.ts';

const LABEL = 13;

function stageLines(paper: Paper, { stage, asked, skipped, answers }: StageAnswer): readonly string[] {
  const rows =
    skipped === undefined
      ? answers.flatMap(({ rule, message, steps }) => [
          `${rule}: ${message}`,
          ...(steps.length > 0 ? [`→ ${steps.join(', ')}`] : []),
        ])
      : [`not asked: ${skipped}`];
  const silent = asked.length === 0 ? 'nothing' : `none of its ${plural(asked.length, 'rule')} applies`;
  const lines = (rows.length === 0 ? [silent] : rows).flatMap((row) => wrap(row, paper.width - LABEL));
  const tone = answers.length > 0 && skipped === undefined ? undefined : 'dim';
  return lines.map(
    (line, index) => paint(paper, 'bold', (index === 0 ? stage : '').padEnd(LABEL)) + paint(paper, tone, line),
  );
}

export function explanationText(paper: Paper, title: string, explanation: Explanation): string {
  const { decision, stages, facts, limits } = explanation;
  return [
    paint(paper, 'bold', title),
    ...wrap(`Decision now: ${decision.rule}: ${decision.message}`, paper.width),
    '',
    ...stages.flatMap((stage) => stageLines(paper, stage)),
    '',
    paint(paper, 'bold', 'Facts'),
    ...facts.flatMap((fact) => noted(paper, undefined, fact, '  ')),
    ...(limits.length === 0 ? [] : ['', ...limits.flatMap((limit) => noted(paper, 'dim', `Not known: ${limit}`))]),
  ].join('\n');
}
