/** What `kubectl etcd explain` shows is what the operator decides. */
import { describe, expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import { down, type Is, learner, lost, up, world } from '../../../test/support/builders/members.ts';
import { decide } from './decide.ts';
import { explain, explainVersion, type StageAnswer } from './explain.ts';
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

describe('what another version would wait for', () => {
  const has: Is = { runs: '3.6.16', storageVersion: '3.6.0', readyForMs: 60_000 };
  const reasons = (gathered: Gathered, to: string) => explainVersion(gathered, to).map(({ reason }) => reason);
  const failed = { member: 'm', at: '', message: 'x' };

  test.each<[string, Gathered, string, readonly string[]]>([
    ['the same one: nothing', world([has, has, has]), '3.6.16', []],
    ['a patch release: nothing', world([has, has, has]), '3.6.17', []],
    ['the next minor: that the data is compared', world([has, has, has]), '3.7.3', ['ComparingData']],
    ['two minors', world([has, has, has]), '3.8.0', ['MinorSkipped']],
    ['a member is down', world([has, { ...has, down: true }, has]), '3.7.3', ['MembersUnhealthy']],
    ['suspended', world([has, has, has], { spec: { suspend: true } }), '3.7.3', ['Suspended']],
    [
      'an edit takes the place of one that has failed',
      world([has, has, has], { status: { rollout: { failed } } }),
      '3.7.3',
      ['ComparingData'],
    ],
  ])('%s', (_, gathered, to, expected) => expect(reasons(gathered, to)).toEqual(expected));
});
