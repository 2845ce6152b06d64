/** What `kubectl etcd explain` shows is what the operator decides. */
import { describe, expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import { down, learner, lost, up, world } from '../../../test/support/builders/members.ts';
import { decide } from './decide.ts';
import { explain, type StageAnswer } from './explain.ts';
import type { Gathered } from './observed.ts';

const deciding = (stages: readonly StageAnswer[]): string | undefined => {
  const rules = stages.filter(({ stage }) => stage !== 'upkeep').map(({ answers }) => answers[0]?.rule);
  const [stop, membership, maintenance, rest] = rules;
  return stop ?? maintenance ?? membership ?? rest;
};

describe.each<[string, Gathered]>([
  ['at rest', world([up, up, up])],
  ['one is down', world([up, up, down])],
  ['one has lost its data', world([lost, up, up])],
  ['one joins', world([up, up, learner])],
  ['suspended', world([up, up, up], { spec: { suspend: true } })],
  ['to be scaled', world([up, up, up], { replicas: 5 })],
  ['new', { ...world([]), cluster: aCluster() }],
])('%s', (_, gathered) => {
  const stages = explain(gathered);
  test('the stage that decides is the one of the plan, with its message', () => {
    const { rule, message } = decide(gathered);
    expect(deciding(stages)).toBe(rule);
    expect(stages.flatMap(({ answers }) => answers).find((answer) => answer.rule === rule)?.message).toBe(message);
  });
  test('a stage that was not asked has no answer, and says why', () => {
    for (const { skipped, answers, asked } of stages) {
      expect(asked.length).toBeGreaterThan(0);
      if (skipped !== undefined) expect(answers).toEqual([]);
    }
  });
});

test('while a member joins, maintenance is not asked', () => {
  expect(explain(world([up, up, learner])).find(({ stage }) => stage === 'maintenance')?.skipped).toBe(
    'the membership is not at rest',
  );
});
