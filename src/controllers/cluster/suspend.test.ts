/** A suspended cluster: it is observed and reported, and nothing of it is changed. */
import { describe, expect, test } from 'vitest';
import { aCluster, condition, FORMED, NOW } from '../../../test/support/builders/builders.ts';
import {
  dormant,
  down,
  learner,
  lost,
  name,
  stepsOf,
  unreachable,
  up,
  world,
} from '../../../test/support/builders/members.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const SUSPEND = { spec: { suspend: true } };
const conditionOf = (o: Gathered, type: string) => findCondition(decide(o).status.conditions, type);
const shown = (o: Gathered, type: string) => {
  const { status, reason } = conditionOf(o, type) ?? {};
  return `${status} ${reason}`;
};
const past = new Date(NOW - 1_000).toISOString();
const SERVED = { conditions: [condition('Available', 'True', 'QuorumHealthy')] };
const SUSPENDED = { conditions: [condition('Suspended', 'True', 'Suspended')] };

describe('nothing of a suspended cluster is changed, and the message says what would be done', () => {
  test.each<[string, Gathered, string]>([
    ['a member is lost', world([lost, up, up], SUSPEND), `replacing ${name(1)} (DataLost): m`],
    ['the spec was edited', world([up, up], { replicas: 3, ...SUSPEND }), '2 of 3 members: adding'],
    ['a learner could be promoted', world([up, up, learner], SUSPEND), name(3)],
    ['it is to be paused', world([up, up, up], { replicas: 0, ...SUSPEND }), 'pausing'],
    ['it is new', { ...world([], SUSPEND), cluster: aCluster(SUSPEND) }, 'bootstrap'],
    ['a Service is missing', { ...world([up], SUSPEND), pdb: { is: 'absent' } }, 'PodDisruptionBudget'],
  ])('%s', (_, o, would) => {
    const plan = decide(o);
    expect([plan.rule, plan.latch, stepsOf(o)]).toEqual(['suspended', undefined, []]);
    expect(conditionOf(o, 'Suspended')).toMatchObject({
      status: 'True',
      message: expect.stringContaining(`Without spec.suspend it would do this now: `),
    });
    expect(plan.message).toContain(would);
  });
});

test('when nothing is to be done, the message says so, and etcd is asked as often as usual', () => {
  const plan = decide(world([up, up, up], SUSPEND));
  expect(plan.message).toBe('suspended: the operator changes nothing; All members are ready');
  expect(plan.requeueAfterMs).toBe(300_000);
});

test('while something is to be done, etcd is asked every few seconds, and not in a loop', () => {
  expect(decide(world([lost, up, up], SUSPEND)).requeueAfterMs).toBe(5_000);
});

test('the status of a suspended cluster is true', () => {
  expect(shown(world([up, up, up], SUSPEND), 'Available')).toBe('True QuorumHealthy');
  expect(shown(world([lost, up, up], SUSPEND), 'Available')).toBe('True QuorumAvailable');
  expect(shown(world([lost, up, up], SUSPEND), 'Degraded')).toBe('True MembersUnhealthy');
  expect(shown(world([down, down, up], { etcd: unreachable, status: SERVED, ...SUSPEND }), 'Available')).toBe(
    'False QuorumLost',
  );
  expect(decide(world([lost, up, up], SUSPEND)).status).toMatchObject({ readyMembers: 2, brokenMembers: 1 });
});

test('a voter that is not recorded yet is counted as one', () => {
  const o = world([up, up], SUSPEND);
  const members = o.members.map((m, i) =>
    i === 0 ? m : { ...m, object: { ...m.object, status: { ...m.object.status, isVoter: false } } },
  );
  expect(stepsOf({ ...o, members })).toEqual([`patch ${name(2)} {"status":{"isVoter":true}}`]);
});

test('members that are to be paused run until the cluster is resumed, and it is reported as available', () => {
  const o = world([up, up, up], { replicas: 0, ...SUSPEND });
  expect([shown(o, 'Available'), shown(o, 'Progressing')]).toEqual(['True QuorumHealthy', 'False Suspended']);
  expect(shown(world([up, up, up], { replicas: 0 }), 'Available')).toBe('False Paused');
  const paused = world([dormant], { replicas: 0, etcd: { is: 'notAsked' }, ...SUSPEND });
  expect(shown(paused, 'Available')).toBe('False Paused');
});

test('a new cluster that is suspended is reported as such, and not as one that fails to start', () => {
  const cluster = aCluster({ ...SUSPEND, status: { progressDeadline: past } });
  const o = { ...world([], SUSPEND), cluster };
  expect(['Available', 'Progressing', 'Degraded'].map((type) => shown(o, type))).toEqual([
    'False Suspended',
    'False Suspended',
    'False Suspended',
  ]);
});

test('a change in progress is not overdue while it is suspended, and has its whole time again afterwards', () => {
  const status = { progressDeadline: past };
  expect(shown(world([up, up], { replicas: 3, status }), 'Progressing')).toBe('False DeadlineExceeded');
  expect(shown(world([up, up], { replicas: 3, status, ...SUSPEND }), 'Progressing')).toBe('False Suspended');
  const resumed = world([up, up], { replicas: 3, status: { ...status, ...SUSPENDED } });
  expect(shown(resumed, 'Progressing')).toBe('True Scaling');
  expect(decide(resumed).status.progressDeadline).toBe('2026-01-01T12:10:00Z');
});

test('a resumed cluster that has no change in progress gets no deadline', () => {
  const { status } = decide(world([up, up], { replicas: 3, status: SUSPENDED }));
  expect(status.progressDeadline).toBeUndefined();
});

test('the condition is dropped when the cluster is resumed', () => {
  expect(conditionOf(world([up, up, up], { status: SUSPENDED }), 'Suspended')).toBeUndefined();
});

test('suspending is one normal Event', () => {
  expect(decide(world([up, up, up], SUSPEND)).events).toMatchObject([
    { type: 'Normal', reason: 'QuorumHealthy' },
    { type: 'Normal', reason: 'Suspended' },
  ]);
});

test('deleting a suspended cluster goes on', () => {
  const o = world([up, up, up]);
  expect(decide({ ...o, cluster: aCluster({ ...SUSPEND, status: FORMED, deleting: true }) }).rule).toBe('beingDeleted');
});

test('a spec that is not allowed is reported as what stands in the way of resuming', () => {
  const o = {
    ...world([]),
    cluster: aCluster({ spec: { suspend: true, image: { repository: 'evil.example/etcd' } } }),
  };
  const { rule, message } = decide(o);
  expect([rule, message]).toEqual(['suspended', expect.stringContaining('evil.example/etcd')]);
});

test('the data of a suspended cluster that is lost is reported as lost', () => {
  const o = world([lost, lost, lost], { etcd: { is: 'notAsked' }, ...SUSPEND });
  expect([shown(o, 'Available'), shown(o, 'Progressing')]).toEqual(['False AllMembersLost', 'False AllMembersLost']);
});
