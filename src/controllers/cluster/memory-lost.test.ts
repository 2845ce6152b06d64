/** The Pod of a member in memory is deleted: its data is lost with it, and a learner replaces it while its etcd still runs. */
import { describe, expect, test } from 'vitest';
import {
  awaited,
  down,
  type Is,
  joining,
  learner,
  name,
  stepsOf,
  up,
  world,
} from '../../../test/support/builders/members.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const spec = { storage: { size: '64Mi', medium: 'Memory' } } as const;
const pod = { is: 'present', ip: '10.0.0.2', ready: true, maxLearners: 8, terminating: true } as const;
const memory: Is = { spec };
const ending: Is = { spec, pod };
const ended: Is = { ...down, spec, pod: { is: 'absent' } };

describe('the rule that decides', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    ['a learner is added at once', world([memory, ending, memory]), 'addLearner', [`addLearner ${name(10)}`]],
    [
      'its EtcdMember is created',
      world([memory, ending, memory, awaited], { replicas: 3, status: { membersNamed: 4 } }),
      'startNext',
      [`create ${name(4)}`],
    ],
    ['one is enough', world([memory, ending, memory, joining], { replicas: 3 }), 'waitForJoining', []],
    [
      'the Pod is deleted before the learner serves: the learner is not taken for surplus',
      world([memory, ended, memory, joining], { replicas: 3 }),
      'waitForJoining',
      [],
    ],
    [
      'the learner is promoted',
      world([memory, ending, memory, learner], { replicas: 3 }),
      'promote',
      [`promote ${name(4)}`],
    ],
    [
      'then the member is removed, and not the newest one',
      world([memory, ending, memory, memory], { replicas: 3 }),
      'shrink',
      [`delete ${name(2)}`],
    ],
    ['the only member is not replaced: its data is lost before', world([{ spec, pod }]), 'steady', []],
    ['nor one that the quorum needs', world([memory, ending, ended]), 'waitForMembers', []],
    ['a member with a volume keeps its data', world([up, { pod }, up]), 'steady', []],
    [
      'a leader hands over first',
      world([memory, ending, memory], { leader: 2 }),
      'handOver',
      [`moveLeader ${name(1)}`],
    ],
  ])('%s', (_, o, rule, steps) => {
    expect([decide(o).rule, stepsOf(o)]).toEqual([rule, steps]);
  });
});

test('the message names the Pod', () => {
  expect(decide(world([memory, ending, memory])).message).toBe(
    `the Pod of ${name(2)} is being deleted with its data in memory: ${name(10)} replicates the data before a member is removed`,
  );
});
