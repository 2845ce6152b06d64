/** Repair as a table: the observed state, the rule that decides, its steps. */

import { describe, expect, test } from 'vitest';
import { condition } from '../../../test/support/builders/builders.ts';
import {
  at,
  awaited,
  down,
  type Is,
  id,
  joining,
  learner,
  lost,
  name,
  repair,
  stepsOf,
  unreachable,
  up,
  url,
  world,
} from '../../../test/support/builders/members.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const absent = { is: 'absent' } as const;
const bare = { pdb: absent, services: { headless: absent, client: absent } };
const HOUR = 60 * 60_000;
const SERVED = { conditions: [condition('Available', 'True', 'QuorumHealthy')] };

const refusedPdb = (retryInMs: number) =>
  remembering('the API server refuses: no budgets', { row: 'pdb', target: 'PodDisruptionBudget db', retryInMs });

describe('the rule that decides', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    ['a member has lost its data: it is replaced', world([up, up, lost]), 'replaceLost', [`delete ${name(3)}`]],
    [
      'a scale-up is reverted while a member is lost: the learner that has not started is removed before the lost one is replaced',
      world([up, up, lost, awaited], { replicas: 3 }),
      'removeOrphanMember',
      [`remove ${url(4)}`],
    ],
    [
      'a member is lost while replicas is lowered: the lost one is the one that goes',
      world([up, up, up, lost], { replicas: 3 }),
      'replaceLost',
      [`delete ${name(4)}`],
    ],
    [
      'the delay after a failed replacement ends now: it is replaced',
      world([up, up, { ...lost, ageMs: 20_000 }], { status: repair(1, 30) }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    ['two of three have lost their data: none is replaced', world([up, lost, lost]), 'waitForMembers', []],
    [
      'two of five have lost their data: one is replaced',
      world([up, up, up, lost, lost]),
      'replaceLost',
      [`delete ${name(4)}`],
    ],
    [
      'one is lost and another only down: the lost one is replaced',
      world([up, up, up, lost, down]),
      'replaceLost',
      [`delete ${name(4)}`],
    ],
    [
      'one of two lost members is being deleted: it is removed from etcd',
      world([up, up, up, { ...lost, leaving: true }, lost]),
      'removeLeaving',
      [`remove ${name(4)}`],
    ],
    [
      'the PodDisruptionBudget and the Services are missing, and a member is lost: all of it is repaired at once',
      { ...world([up, up, lost]), ...bare },
      'replaceLost',
      [`delete ${name(3)}`, 'services: create db', 'services: create db-client', 'pdb: create db'],
    ],
    [
      'a policy has just refused the PodDisruptionBudget: a lost member is replaced all the same',
      { ...world([up, up, lost]), pdb: absent, ...refusedPdb(1) },
      'replaceLost',
      [`delete ${name(3)}`, '(pdb: create db)'],
    ],
    [
      'a policy refused the PodDisruptionBudget a while ago: it is retried',
      { ...world([up, up, up]), pdb: absent, ...refusedPdb(0) },
      'steady',
      ['pdb: create db'],
    ],
    [
      'etcd does not respond: no member is replaced',
      world([up, up, lost], { etcd: unreachable }),
      'waitForMembers',
      [],
    ],
    ['a member that is only down is not replaced', world([up, up, down]), 'waitForMembers', []],
    [
      'a healthy member with failure evidence is not replaced',
      world([up, up, { evidence: EVIDENCE.nodeLost }]),
      'waitForMembers',
      [],
    ],
    [
      'a replacement failed, and its delay has passed: it is replaced',
      world([up, up, { ...lost, ageMs: 60_000 }], { status: repair(1, 61) }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'a replacement failed within its delay: it is not replaced yet',
      world([up, up, { ...lost, ageMs: 20_000 }], { status: repair(1, 20) }),
      'waitForMembers',
      [],
    ],
    [
      'five replacements in a row failed: the operator gives up',
      world([up, up, { ...lost, ageMs: 60_000 }], { status: repair(5, 3_000) }),
      'waitForMembers',
      [],
    ],
    [
      'an old member is lost after five failed replacements of another',
      world([up, up, lost], { status: repair(5, 3_000) }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'a joining learner does not keep a lost voter from being replaced',
      world([up, up, lost, joining], { replicas: 4 }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'the data of one member differs from that of the other two',
      world([{ hash: 'a' }, { hash: 'a' }, { hash: 'b', alarm: 'CORRUPT' }], {
        alarms: [{ id: id(3), alarm: 'CORRUPT' }],
      }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'the data of one member differs from that of three others, and another is down',
      world([{ hash: 'a' }, { hash: 'a' }, { hash: 'a' }, down, { hash: 'b', alarm: 'CORRUPT' }]),
      'replaceLost',
      [`delete ${name(5)}`],
    ],
    [
      'the data of one member differs from that of three others, without an alarm: it is unhealthy and replaced first',
      world([{ hash: 'a' }, { hash: 'a' }, { hash: 'b' }, { hash: 'a', leaving: true }]),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'an alarm for a member whose data equals that of a quorum',
      world([{ hash: 'a' }, { hash: 'b' }, { hash: 'a', alarm: 'CORRUPT' }]),
      'waitForMembers',
      [],
    ],
    [
      'the CORRUPT alarm of a removed member is disarmed',
      world([up, up], { replicas: 3, alarms: [{ id: id(7), alarm: 'CORRUPT' }] }),
      'addLearner',
      [`addLearner ${name(10)}`, `clearAlarm: disarm ${id(7)}`],
    ],
    [
      'a learner that had joined is lost: it is replaced before members are added',
      world([up, up, { as: 'learner', down: true, evidence: EVIDENCE.dataLost }], { replicas: 4 }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    ['one of five is lost and two are down: none is replaced', world([up, up, lost, down, down]), 'waitForMembers', []],
    ['two of five are down, and not lost: none is replaced', world([up, up, up, down, down]), 'waitForMembers', []],
    [
      'a recovered member is being deleted while another is down: the quorum needs it',
      world([up, up, up, { leaving: true, evidence: EVIDENCE.nodeLost }, down]),
      'waitForMembers',
      [],
    ],
    [
      'the second replacement failed within its longer delay',
      world([up, up, { ...lost, ageMs: 45_000 }], { status: repair(2, 45) }),
      'waitForMembers',
      [],
    ],
    [
      'five replacements in a row failed, hours ago, and the last one never worked: no further volume is deleted',
      world([up, up, { ...lost, ageMs: 2 * HOUR }], { status: repair(5, 7_200) }),
      'waitForMembers',
      [],
    ],
    [
      'two members fail in turns, and five replacements failed: the operator gives up',
      world([up, up, up, { ...lost, ageMs: 10 * 60_000 }, { ...lost, ageMs: 4 * 60_000 }], {
        status: { repair: { ...repair(5, 300).repair, since: at(HOUR) } },
      }),
      'waitForMembers',
      [],
    ],
    [
      'an edit of the spec resets the count',
      world([up, up, { ...lost, ageMs: 60_000 }], {
        status: { repair: { count: 5, last: at(HOUR), generation: 0 } },
      }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'failed replacements of another member do not delay that of an older member',
      world([up, up, { ...lost, ageMs: HOUR / 2 }], { status: repair(5, 60) }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'an alarm, and the others returned no hash',
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
      'an alarm, and no data differs',
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
      'an alarm, and a learner does not count towards the quorum of hashes',
      world([{ hash: 'a' }, { hash: 'b', alarm: 'CORRUPT' }, { ...learner, hash: 'a' }]),
      'promote',
      [`promote ${name(3)}`],
    ],
    [
      'an alarm, and one of two members with equal data responds for both: none is replaced',
      world([{ hash: 'a' }, { hash: 'b', answersAs: 3 }, { hash: 'b', alarm: 'CORRUPT' }]),
      'waitForMembers',
      [],
    ],
    [
      'etcd exits because a peer has other data, and all others have the same data',
      world([{ hash: 'a' }, { hash: 'a' }, { down: true, evidence: 'DataInconsistent' }]),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'etcd exits because a peer has other data, and that peer is the corrupt one',
      world([{ down: true, evidence: 'DataInconsistent' }, { hash: 'a' }, { hash: 'a' }, { hash: 'a' }, { hash: 'b' }]),
      'replaceLost',
      [`delete ${name(5)}`],
    ],
    [
      'a member is down, and all others have the same data',
      world([{ hash: 'a' }, { hash: 'a' }, down]),
      'waitForMembers',
      [],
    ],
    [
      'etcd exits because a peer has other data, and no quorum has the same data',
      world([{ hash: 'a' }, { hash: 'b' }, { down: true, evidence: 'DataInconsistent' }]),
      'waitForMembers',
      [],
    ],
    [
      'the NOSPACE alarm of a member is not disarmed: its database is still full',
      world([up, up, up], { alarms: [{ id: id(3), alarm: 'NOSPACE' }] }),
      'steady',
      [],
    ],
    [
      'the NOSPACE alarm of a member that is not on the list is disarmed: a restored snapshot brought it along',
      world([up, up, up], { alarms: [{ id: id(7), alarm: 'NOSPACE' }] }),
      'steady',
      [`clearAlarm: disarm ${id(7)}`],
    ],
    [
      'the CORRUPT alarm of a removed member, and no voter is healthy',
      world([down, down, down], { alarms: [{ id: id(7), alarm: 'CORRUPT' }] }),
      'waitForMembers',
      [],
    ],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

test('a replacement is counted before the deletion', () => {
  const count = (o: Gathered) => decide(o).latch?.repair?.count;
  expect(decide(world([up, up, lost])).latch).toEqual({
    repair: { count: 1, last: '2026-01-01T12:00:00Z', since: '2026-01-01T12:00:00Z', generation: 1 },
  });
  expect(count(world([up, up, { ...lost, ageMs: 60_000 }], { status: repair(1, 61) }))).toBe(2);
});

test('a replacement whose deletion was refused is not counted again, nor is the count lost', () => {
  const count = (o: Gathered) => decide(o).latch?.repair?.count;
  const old = { ...lost, ageMs: 600_000 };
  expect(count(world([up, up, old], { status: repair(3, 5) }))).toBe(3);
  const since = { repair: { ...repair(3, 5).repair, since: at(HOUR) } };
  expect(count(world([up, up, old], { status: since }))).toBe(3);
});

test('an adoption that a policy refuses does not keep a lost member from being replaced', () => {
  const strip = (o: Gathered): Gathered => ({
    ...o,
    members: o.members.map((m, i) =>
      i === 0 ? { ...m, object: { ...m.object, metadata: { ...m.object.metadata, ownerReferences: [] } } } : m,
    ),
  });
  const o = strip(world([up, up, lost]));
  const refused = { row: 'adoptMembers', target: `EtcdMember ${name(1)}`, retryInMs: 1 };
  const { rule, upkeep } = decide({ ...o, ...remembering('the API server refuses: no owner references', refused) });
  expect([rule, upkeep]).toMatchObject(['replaceLost', [{ row: 'adoptMembers', deferred: 'backOff' }]]);
  expect(decide(o).upkeep).toMatchObject([{ row: 'adoptMembers' }]);
});

test('while a replacement waits, the message has the time of the next attempt: it does not change with every reconcile', () => {
  const waiting = world([up, up, { ...lost, ageMs: 20_000 }], { status: repair(1, 20) });
  expect(decide(waiting).message).toContain('the next attempt is at 2026-01-01T12:00:10Z');
  expect(decide({ ...waiting, now: waiting.now + 3_000 }).message).toBe(decide(waiting).message);
});

test('a replacement has the resourceVersion as a precondition: an EtcdMember that has changed is not deleted', () => {
  const [step] = decide(world([up, up, lost])).steps;
  expect(step).toMatchObject({ do: 'delete', what: { kind: 'EtcdMember', resourceVersion: expect.any(String) } });
});

test('failed replacements end in the reason ReplacementsExhausted', () => {
  const { status } = decide(
    world([up, up, { ...lost, ageMs: 60_000 }], { status: { ...repair(5, 3_000), ...SERVED } }),
  );
  expect(status.conditions?.map((c) => `${c.type}=${c.status}/${c.reason}`)).toEqual([
    'Available=True/QuorumAvailable',
    'Progressing=False/ReplacementsExhausted',
    'Degraded=True/ReplacementsExhausted',
  ]);
});

test('the message for a lost quorum advises a snapshot, and not to delete the cluster', () => {
  const { status } = decide(world([down, lost, lost], { etcd: unreachable, status: SERVED }));
  const lostQuorum = status.conditions?.find(({ type }) => type === 'Available');
  expect(lostQuorum).toMatchObject({ status: 'False', reason: 'QuorumLost' });
  expect(lostQuorum?.message).toContain('do not delete this EtcdCluster yet: an EtcdSnapshot of it may still work');
});

test('a lost member that is being deleted is reported as being deleted', () => {
  const { message } = decide(world([up, down, { ...lost, leaving: true }]));
  expect(message).toContain(`${name(3)}: being deleted`);
});

test.each<[string, EtcdClusterStatus, number]>([
  ['was never counted before', {}, 1],
  ['was counted just now, and its deletion was refused', repair(3, 10), 3],
  ['was counted a minute ago', repair(3, 60), 3],
  ['follows one that was counted longer ago', repair(3, 61), 3],
  ['follows an edit of the spec', { repair: { ...repair(3, 10).repair, generation: 0 } }, 1],
])('a replacement that %s is attempt %i', (_what, status, count) => {
  expect(decide(world([up, up, lost], { status })).latch?.repair?.count).toBe(count);
});

test.each<[string, Is, boolean]>([
  ['for an hour', { readyForMs: HOUR }, false],
  ['for less than an hour', { readyForMs: HOUR - 1 }, true],
  ['before, and one is unreachable now', { ...down, readyForMs: 2 * HOUR }, true],
  ['before, and one does not vote yet', { ...learner, readyForMs: 2 * HOUR }, true],
])('all members were ready %s: failed replacements count: %#', (_what, third, counts) => {
  const ready = { readyForMs: 2 * HOUR };
  const { status } = decide(world([ready, ready, third], { status: repair(5, 3 * 3_600) }));
  expect(status.repair !== undefined).toBe(counts);
});

test('failed replacements of the last hour still count, however long members were ready before', () => {
  const ready = { readyForMs: 2 * HOUR };
  expect(decide(world([ready, ready, ready], { status: repair(5, 3_599) })).status.repair?.count).toBe(5);
  expect(decide(world([ready, ready, ready], { status: repair(5, 3_600) })).status.repair).toBeUndefined();
});

test('a member that a user added to etcd does not keep failed replacements from being forgotten after an hour of health', () => {
  const ready = { readyForMs: 2 * HOUR };
  const alsoListed = [{ id: 'f00', name: 'mirror', peerURLs: ['https://10.9.9.9:2380'], isLearner: true }];
  const { status } = decide(world([ready, ready, ready], { status: repair(5, 3_600), alsoListed }));
  expect(status.repair).toBeUndefined();
});

test('the time of the first of several replacements is kept', () => {
  const { latch } = decide(world([up, up, { ...lost, ageMs: 60_000 }], { status: repair(1, 61) }));
  expect(latch?.repair).toMatchObject({ count: 2, since: at(61_000) });
});
