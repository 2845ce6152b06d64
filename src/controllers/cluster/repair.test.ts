/** Repair, as a table: what is so, which rule answers, what it does. */
import { describe, expect, test } from 'vitest';
import { condition } from '../../../test/support/builders/builders.ts';
import {
  at,
  down,
  id,
  joining,
  learner,
  lost,
  name,
  repair,
  silent,
  stepsOf,
  up,
  world,
} from '../../../test/support/builders/members.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const absent = { is: 'absent' } as const;
const bare = { pdb: absent, services: { headless: absent, client: absent } };
const HOUR = 60 * 60_000;
const SERVED = { conditions: [condition('Available', 'True', 'QuorumHealthy')] };

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['a member has lost its data: it is replaced', world([up, up, lost]), 'replaceLost', [`delete ${name(3)}`]],
    ['two have lost their data: nobody can be spared', world([up, lost, lost]), 'waitForMembers', []],
    [
      'two of five have lost their data: one goes',
      world([up, up, up, lost, lost]),
      'replaceLost',
      [`delete ${name(4)}`],
    ],
    [
      'one is lost and another only down: the lost one goes',
      world([up, up, up, lost, down]),
      'replaceLost',
      [`delete ${name(4)}`],
    ],
    [
      'one of two that are lost is on its way: etcd lets it go',
      world([up, up, up, { ...lost, leaving: true }, lost]),
      'removeLeaving',
      [`remove ${name(4)}`],
    ],
    [
      'a policy refuses the budget and a Service: what is lost is replaced all the same',
      { ...world([up, up, lost]), ...bare, refusal: 'the API server refuses: no budgets here' },
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'a policy refused the budget and a Service, and nothing else is to be done: they are tried again',
      { ...world([up, up, up]), ...bare, refusal: 'the API server refuses: no budgets here' },
      'correctServices',
      ['create db', 'create db-client'],
    ],
    [
      'a policy refused the budget, and nothing else is to be done: it is tried again',
      { ...world([up, up, up]), pdb: absent, refusal: 'the API server refuses: no budgets here' },
      'correctPdb',
      ['create db'],
    ],
    [
      'a Service is gone while etcd refuses a change: it is made at once',
      { ...world([up, up, lost]), ...bare, refusal: 'etcd refuses: not ready' },
      'repairServices',
      ['create db', 'create db-client'],
    ],
    ['etcd does not answer: nothing is replaced', world([up, up, lost], { etcd: silent }), 'waitForMembers', []],
    ['one that is only down is not replaced', world([up, up, down]), 'waitForMembers', []],
    ['one that says it is lost, and is not', world([up, up, { evidence: EVIDENCE.nodeLost }]), 'waitForMembers', []],
    [
      'a replacement fails at once: the next waits',
      world([up, up, { ...lost, ageMs: 60_000 }], { status: repair(1, 61) }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'a replacement fails within its pause',
      world([up, up, { ...lost, ageMs: 20_000 }], { status: repair(1, 20) }),
      'waitForMembers',
      [],
    ],
    [
      'five replacements did not help: a person has to look',
      world([up, up, { ...lost, ageMs: 60_000 }], { status: repair(5, 3_000) }),
      'waitForMembers',
      [],
    ],
    [
      'an old member is lost after five replacements of another',
      world([up, up, lost], { status: repair(5, 3_000) }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'a learner that waits does not keep a lost voter from being replaced',
      world([up, up, lost, joining], { replicas: 4 }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'one differs from the two that agree',
      world([{ hash: 'a' }, { hash: 'a' }, { hash: 'b', alarm: 'CORRUPT' }], {
        alarms: [{ id: id(3), alarm: 'CORRUPT' }],
      }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'one differs from three that agree, and another is down',
      world([{ hash: 'a' }, { hash: 'a' }, { hash: 'a' }, down, { hash: 'b', alarm: 'CORRUPT' }]),
      'replaceLost',
      [`delete ${name(5)}`],
    ],
    [
      'one differs from three that agree and has no alarm: it is not healthy, and goes first',
      world([{ hash: 'a' }, { hash: 'a' }, { hash: 'b' }, { hash: 'a', leaving: true }]),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'an alarm against one that agrees with the others',
      world([{ hash: 'a' }, { hash: 'b' }, { hash: 'a', alarm: 'CORRUPT' }]),
      'waitForMembers',
      [],
    ],
    [
      'the alarm of a member that is gone keeps the others from writing',
      world([up, up], { replicas: 3, alarms: [{ id: id(7), alarm: 'CORRUPT' }] }),
      'clearAlarm',
      [`disarmCorrupt ${id(7)}`],
    ],
    [
      'a learner that had joined is lost: it is replaced before others are added',
      world([up, up, { as: 'learner', down: true, evidence: EVIDENCE.dataLost }], { replicas: 4 }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'one of five is lost and two are down: nobody can be spared',
      world([up, up, lost, down, down]),
      'waitForMembers',
      [],
    ],
    ['two of five are down, and not lost', world([up, up, up, down, down]), 'waitForMembers', []],
    [
      'one that has come back is to go while another is down: it is needed',
      world([up, up, up, { leaving: true, evidence: EVIDENCE.nodeLost }, down]),
      'waitForMembers',
      [],
    ],
    [
      'the second replacement fails within its longer pause',
      world([up, up, { ...lost, ageMs: 45_000 }], { status: repair(2, 45) }),
      'waitForMembers',
      [],
    ],
    [
      'an hour of peace ends the counting',
      world([up, up, { ...lost, ageMs: 2 * HOUR }], { status: repair(5, 7_200) }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'an edit of the spec ends the counting',
      world([up, up, { ...lost, ageMs: 60_000 }], {
        status: { repair: { count: 5, last: at(HOUR), generation: 0 } },
      }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'a member that was there before the replacements failed does not pay for them',
      world([up, up, { ...lost, ageMs: HOUR / 2 }], { status: repair(5, 60) }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'an alarm, and the others could not be asked',
      world([up, up, { hash: 'b', alarm: 'CORRUPT' }]),
      'waitForMembers',
      [],
    ],
    [
      'an alarm, and all three differ',
      world([{ hash: 'a' }, { hash: 'c' }, { hash: 'b', alarm: 'CORRUPT' }]),
      'waitForMembers',
      [],
    ],
    [
      'an alarm, and nobody differs',
      world([{ hash: 'a' }, { hash: 'a' }, { hash: 'a', alarm: 'CORRUPT' }]),
      'waitForMembers',
      [],
    ],
    [
      'an alarm, and only two can be compared',
      world([{ hash: 'a' }, { hash: 'b', alarm: 'CORRUPT' }]),
      'waitForMembers',
      [],
    ],
    [
      'an alarm, and a learner is no witness',
      world([{ hash: 'a' }, { hash: 'b', alarm: 'CORRUPT' }, { ...learner, hash: 'a' }]),
      'promote',
      [`promote ${name(3)}`],
    ],
    [
      'an alarm, and one of two that agree responds for both: nobody is replaced by its word',
      world([{ hash: 'a' }, { hash: 'b', answersAs: 3 }, { hash: 'b', alarm: 'CORRUPT' }]),
      'waitForMembers',
      [],
    ],
    [
      'one that ends because a peer has other data, and all others have the same',
      world([{ hash: 'a' }, { hash: 'a' }, { down: true, evidence: 'DataInconsistent' }]),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'one that ends because a peer has other data, and that one is the odd one',
      world([{ down: true, evidence: 'DataInconsistent' }, { hash: 'a' }, { hash: 'a' }, { hash: 'a' }, { hash: 'b' }]),
      'replaceLost',
      [`delete ${name(5)}`],
    ],
    [
      'one that is down, and all others have the same data',
      world([{ hash: 'a' }, { hash: 'a' }, down]),
      'waitForMembers',
      [],
    ],
    [
      'one that ends because a peer has other data, and nobody knows which is right',
      world([{ hash: 'a' }, { hash: 'b' }, { down: true, evidence: 'DataInconsistent' }]),
      'waitForMembers',
      [],
    ],
    [
      'an alarm about space is not cleared without making any',
      world([up, up, up], { alarms: [{ id: id(7), alarm: 'NOSPACE' }] }),
      'steady',
      [],
    ],
    [
      'an alarm of one that is gone, and nobody is well enough to be asked',
      world([down, down, down], { alarms: [{ id: id(7), alarm: 'CORRUPT' }] }),
      'waitForMembers',
      [],
    ],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

test('a replacement is counted before it is made', () => {
  const count = (o: Observed) => decide(o).latch?.repair?.count;
  expect(decide(world([up, up, lost])).latch).toEqual({
    repair: { count: 1, last: '2026-01-01T12:00:00Z', generation: 1 },
  });
  expect(count(world([up, up, { ...lost, ageMs: 60_000 }], { status: repair(1, 61) }))).toBe(2);
});

test('a replacement whose deletion was refused is not counted again, nor is the count lost', () => {
  const count = (o: Observed) => decide(o).latch?.repair?.count;
  const old = { ...lost, ageMs: 600_000 };
  expect(count(world([up, up, old], { status: repair(3, 5) }))).toBe(3);
  expect(count(world([up, up, old], { status: repair(3, 61) }))).toBe(1);
  expect(count(world([up, { ...up, ageMs: 4_000 }, old], { status: repair(3, 5) }))).toBe(1);
});

test('an adoption that a policy refuses does not keep a lost member from being replaced, and is tried again last', () => {
  const strip = (o: Observed): Observed => ({
    ...o,
    refusal: 'the API server refuses: no owner references here',
    members: o.members.map((m, i) =>
      i === 0 ? { ...m, object: { ...m.object, metadata: { ...m.object.metadata, ownerReferences: [] } } } : m,
    ),
  });
  expect(decide(strip(world([up, up, lost]))).rule).toBe('replaceLost');
  expect(decide(strip(world([up, up, up]))).rule).toBe('adoptRefused');
});

test('a member is replaced as it was judged: one that has changed meanwhile is not', () => {
  const [step] = decide(world([up, up, lost])).steps;
  expect(step).toMatchObject({ do: 'delete', what: { kind: 'EtcdMember', resourceVersion: expect.any(String) } });
});

test('replacements that do not help end in a condition that asks for a person', () => {
  const { status } = decide(
    world([up, up, { ...lost, ageMs: 60_000 }], { status: { ...repair(5, 3_000), ...SERVED } }),
  );
  expect(status.conditions?.map((c) => `${c.type}=${c.status}/${c.reason}`)).toEqual([
    'Available=True/QuorumAvailable',
    'Progressing=False/ReplacementsExhausted',
    'Degraded=True/ReplacementsExhausted',
  ]);
});

test('who has lost a quorum is led to a snapshot of what is left, and not to delete it', () => {
  const { status } = decide(world([down, lost, lost], { etcd: silent, status: SERVED }));
  const lostQuorum = status.conditions?.find(({ type }) => type === 'Available');
  expect(lostQuorum).toMatchObject({ status: 'False', reason: 'QuorumLost' });
  expect(lostQuorum?.message).toContain('do not delete this EtcdCluster yet: an EtcdSnapshot of it may still work');
});

test('one that is on its way out is not told to wait for its replacement', () => {
  const { message: why } = decide(world([up, down, { ...lost, leaving: true }]));
  expect(why).toContain(`${name(3)}: being deleted`);
});
