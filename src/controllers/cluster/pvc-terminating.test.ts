/** A user has deleted PVCs of running members: Kubernetes keeps a PVC as long as its Pod exists, and the operator replaces the member before that. */
import { describe, expect, test } from 'vitest';
import {
  awaited,
  DAY,
  dormant,
  down,
  type Is,
  joining,
  learner,
  lost,
  name,
  stepsOf,
  terminating,
  up,
  world,
} from '../../../test/support/builders/members.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const conditionOf = (o: Gathered, type: string) => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && `${found.status} ${found.reason}: ${found.message}`;
};
const leaving: Is = { leaving: true };
const observing = (replicas: number, o: Gathered): Gathered => {
  const { observed = {}, ...status } = o.cluster.status ?? {};
  return { ...o, cluster: { ...o.cluster, status: { ...status, observed: { ...observed, replicas } as never } } };
};

describe('the member is replaced by a learner that votes first', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    ['a learner is added', world([up, terminating, up]), 'addLearner', [`addLearner ${name(10)}`]],
    ['also when it is the only member', world([terminating]), 'addLearner', [`addLearner ${name(10)}`]],
    [
      'also when a user has deleted all PVCs',
      world([terminating, terminating, terminating]),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'its EtcdMember is created',
      world([up, terminating, up, awaited], { replicas: 3, status: { membersNamed: 4 } }),
      'startNext',
      [`create ${name(4)}`],
    ],
    [
      'no voter is removed while it starts',
      world([up, terminating, up, joining], { replicas: 3 }),
      'waitForJoining',
      [],
    ],
    [
      'it is promoted before a voter is removed',
      world([up, terminating, up, learner], { replicas: 3 }),
      'promote',
      [`promote ${name(4)}`],
    ],
    [
      'then the member is deleted, not the newest one',
      world([up, terminating, up, up], { replicas: 3 }),
      'shrink',
      [`delete ${name(2)}`],
    ],
    [
      'of several the next one, and not the leader first',
      world([terminating, terminating, terminating, up], { replicas: 3 }),
      'shrink',
      [`delete ${name(3)}`],
    ],
    [
      'then a learner is added for the next one',
      world([terminating, terminating, up], { replicas: 3 }),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    ['none is added while a member is down', world([up, terminating, down]), 'waitForMembers', []],
    ['a lost member is replaced first', world([up, terminating, lost]), 'replaceLost', [`delete ${name(3)}`]],
    [
      'a member that a user has deleted is removed first',
      world([up, terminating, leaving]),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    [
      'not when the PVC of the other one is being deleted: a learner is added first',
      world([terminating, leaving]),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'a member in memory has no PVC',
      world([{ ...terminating, spec: { storage: { size: '1Gi', medium: 'Memory' } } }, up, up]),
      'steady',
      [],
    ],
  ])('%s', (_, o, rule, steps) => {
    expect([decide(o).rule, stepsOf(o)]).toEqual([rule, steps]);
  });
});

describe('scaling down removes it first', () => {
  test.each<[string, Gathered, readonly string[]]>([
    [
      'three to two: a healthy member would leave one copy of the data',
      world([terminating, up, up], { replicas: 2, leader: 1 }),
      [`delete ${name(1)}`],
    ],
    [
      'a member that is down goes first if the quorum needs the other',
      world([up, terminating, down, up, up], { replicas: 4 }),
      [`delete ${name(3)}`],
    ],
    ['before a learner', world([up, terminating, up, learner, learner], { replicas: 3 }), [`delete ${name(2)}`]],
    [
      'no healthy member is removed instead of one that may not be removed yet',
      world([up, terminating, { ...down, ageMs: DAY }, { ...down, ageMs: DAY }, up], { replicas: 4 }),
      [],
    ],
    [
      'a member that has just joined is waited for, and not removed instead',
      world([terminating, up, up, { fresh: true, started: true, ageMs: 1 }], { replicas: 3 }),
      [],
    ],
    [
      'also when it has served, and one answer of it is late',
      world([terminating, up, up, { down: true, ageMs: 30_000 }], { replicas: 3 }),
      [],
    ],
    [
      'one that has been down for long is removed instead of a healthy one',
      world([terminating, up, up, { down: true, ageMs: 11 * 60_000 }], { replicas: 3 }),
      [`delete ${name(4)}`],
    ],
    [
      'not the only voter: surplus learners go',
      world([terminating, learner, learner], { replicas: 1 }),
      [`delete ${name(3)}`],
    ],
    [
      'not the last ones with the data: a learner is added first',
      world([terminating, terminating, terminating], { replicas: 1 }),
      [`addLearner ${name(10)}`],
    ],
  ])('%s', (_, o, steps) => {
    expect(stepsOf(o)).toEqual(steps);
  });
});

describe('pausing would delete the Pods, and with them the PVCs', () => {
  const paused = (members: readonly Is[], before: number) => observing(before, world(members, { replicas: 0 }));
  test('so the member is replaced first, by the number of members that the cluster had', () => {
    expect(stepsOf(paused([up, terminating, up], 3))).toEqual([`addLearner ${name(10)}`]);
    expect(stepsOf(paused([up, terminating, up, learner], 3))).toEqual([`promote ${name(4)}`]);
    expect(stepsOf(paused([up, terminating, up, up], 3))).toEqual([`delete ${name(2)}`]);
    expect(decide(paused([up, { ...terminating, ...leaving }, up, up], 3)).rule).toBe('removeLeaving');
    expect(decide(paused([up, up, up], 3)).rule).toBe('pause');
  });
  test('the number of members is kept in the status meanwhile', () => {
    expect(decide(paused([up, terminating, up], 3)).latch).toBeUndefined();
    expect(decide(paused([up, up, up], 3)).latch).toMatchObject({ observed: { replicas: 0 } });
  });
  test('a pause that has started is taken back', () => {
    expect(stepsOf(paused([dormant, terminating, up], 0))).toEqual([`patch ${name(1)} {"spec":{"dormant":null}}`]);
    expect(stepsOf(paused([up, terminating, up], 0))).toEqual([`delete ${name(2)}`]);
    expect(stepsOf(paused([terminating], 0))).toEqual([`addLearner ${name(10)}`]);
  });
  test('not when the Pod is being deleted already', () => {
    const pod = { is: 'present', ready: true, terminating: true, maxLearners: 8 } as const;
    expect(decide(paused([{ ...terminating, pod }, up, up], 3)).rule).toBe('pause');
  });
  test('the status reports why it is not paused', () => {
    expect(conditionOf(paused([up, terminating, up], 3), 'Degraded')).toContain('The cluster is paused after that');
    expect(conditionOf(paused([terminating], 0), 'Progressing')).toContain('True Repairing');
  });
});

test('the status reports it at once, and what not to do', () => {
  const o = world([up, terminating, up]);
  expect(conditionOf(o, 'Degraded')).toContain(
    `True PVCTerminating: the PersistentVolumeClaim of ${name(2)} is being deleted, which cannot be undone: do not delete the Pod`,
  );
  expect(decide(o).events).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'PVCTerminating' }));
  expect(conditionOf(o, 'Available')).toContain('True QuorumHealthy');
  expect(conditionOf(world([up, terminating, up, learner], { replicas: 3 }), 'Progressing')).toContain(
    'True Repairing',
  );
});
