/** Shrinking and parking, as a table: what is so, which rule answers, what it does. */
import { describe, expect, test } from 'vitest';
import { CLUSTER_ID } from '../../../test/support/builders/builders.ts';
import {
  at,
  awaited,
  DAY,
  down,
  entry,
  type Is,
  id,
  learner,
  name,
  parked,
  silent,
  stepsOf,
  up,
  url,
  view,
  world,
} from '../../../test/support/builders/members.ts';
import { QUARANTINED_AT_ANNOTATION } from '../../api/names.ts';
import { pdb } from './build.ts';
import type { EtcdCall } from './calls.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const withBudget = (o: Observed, minAvailable: number): Observed => ({
  ...o,
  pdb: { is: 'ours', object: pdb(o.cluster, minAvailable) },
});

/** A cluster that is well, and a volume that outlived its member so many days ago. */
const keeping = (kept: {
  readonly days: number;
  readonly ageDays?: number;
  readonly deleting?: boolean;
}): Observed => ({
  ...world([up, up, up]),
  quarantined: [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: 'data-x',
        uid: 'u',
        resourceVersion: '5',
        creationTimestamp: at((kept.ageDays ?? kept.days) * DAY),
        annotations: { [QUARANTINED_AT_ANNOTATION]: at(kept.days * DAY) },
        ...(kept.deleting && { deletionTimestamp: at(0) }),
      },
    },
  ],
});

/** At the address of this member, this id answers. */
const answeringAs = (o: Observed, n: number, answersAs: string): Observed => ({
  ...o,
  members: o.members.map((m, i) => (i === n - 1 ? { ...m, answersAs } : m)),
});

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['all is well', world([up, up, up]), 'steady', []],
    // shrinking
    [
      'five, and three are wanted: the newest goes',
      world([up, up, up, up, up], { replicas: 3 }),
      'shrink',
      [`delete ${name(5)}`],
    ],
    ['the leader stays', world([up, up, up, up], { replicas: 3, leader: 4 }), 'shrink', [`delete ${name(3)}`]],
    ['one that is down goes first', world([up, down, up, up], { replicas: 3 }), 'shrink', [`delete ${name(2)}`]],
    ['a learner goes before voters', world([up, up, learner, up], { replicas: 3 }), 'shrink', [`delete ${name(3)}`]],
    ['two are down: no voter can be spared', world([up, down, down, up, up], { replicas: 4 }), 'shrink', []],
    [
      'a member that is behind does not carry the cluster',
      world([up, { lag: 6_000 }, down, up, up], { replicas: 4 }),
      'shrink',
      [],
    ],
    [
      'another member responds at the address of one: that one is down, and is removed first',
      world([up, { answersAs: 3 }, up], { replicas: 2 }),
      'shrink',
      [`delete ${name(2)}`],
    ],
    [
      'another member responds at the address of one that is needed: no voter can be spared',
      world([up, { answersAs: 1 }, { leaving: true }], { replicas: 2 }),
      'waitForMembers',
      [],
    ],
    [
      'a growth is taken back before anybody started',
      world([up, awaited], { replicas: 1 }),
      'removeOrphanMember',
      [`remove ${url(2)}`],
    ],
    [
      'a member is being deleted: etcd lets it go',
      world([up, up, { leaving: true }]),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    [
      'a leader that goes hands over first',
      world([up, up, { leaving: true }], { leader: 3 }),
      'removeLeaving',
      [`moveLeader ${name(1)}`],
    ],
    [
      'a leader that goes and does not answer the operator, as with an expired certificate, is not asked to hand over for ever',
      world([up, up, { leaving: true, down: true }], { leader: 3 }),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    ['another is down: who is needed stays', world([up, down, { leaving: true }]), 'waitForMembers', []],
    [
      'two are being deleted: one after the other',
      world([up, { leaving: true }, { leaving: true }]),
      'removeLeaving',
      [`remove ${name(2)}`],
    ],
    [
      'all are being deleted: somebody else takes over their data first',
      world([{ leaving: true }, { leaving: true }, { leaving: true }]),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'all are being deleted, and the newcomer has no object yet: it is waited for',
      world([{ leaving: true }, { leaving: true }, { leaving: true }, awaited], { replicas: 3 }),
      'startNext',
      [`create ${name(4)}`],
    ],
    [
      'all are being deleted, and the newcomer has the data: it votes',
      world([{ leaving: true }, { leaving: true }, { leaving: true }, learner], { replicas: 3 }),
      'promote',
      [`promote ${name(4)}`],
    ],
    [
      'all are being deleted, and the newcomer has taken over: they go',
      withBudget(world([{ leaving: true }, { leaving: true }, { leaving: true }, up], { replicas: 3, leader: 4 }), 3),
      'removeLeaving',
      [`remove ${name(1)}`],
    ],
    [
      'all are being deleted, and one of them is down: it goes before anybody comes',
      world([{ leaving: true }, { leaving: true }, { leaving: true, down: true }]),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    [
      'all are being deleted, and etcd does not answer: nobody goes, and nobody comes',
      world([{ leaving: true }, { leaving: true, down: true }, { leaving: true, down: true }], { etcd: silent }),
      'waitForMembers',
      [],
    ],
    [
      'one of the two is down: it goes first',
      world([up, { leaving: true }, { leaving: true, down: true }]),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    [
      'the only voter is being deleted: it stays until another one has its data',
      world([{ leaving: true }], { replicas: 1 }),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'members do not agree on a leader: nothing is taken away',
      {
        ...world([up, up, { leaving: true }]),
        members: [view(1, up, 1, 'x'), view(2, up, 2, 'x'), view(3, { leaving: true }, 1, 'x')],
      },
      'waitForMembers',
      [],
    ],
    [
      'etcd has removed a member that nobody deleted',
      world([up, up, { ...down, as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [`delete ${name(3)}`],
    ],
    [
      'most of those that voted are not on the list: it is not believed',
      world([up, { ...down, as: 'unlisted', voted: true }, { ...down, as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [],
    ],
    [
      'one of two that voted is not on the list: it is not believed',
      world([up, { ...down, as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [],
    ],
    [
      'one that is not on the list answers for the cluster',
      world([up, up, { as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [],
    ],
    [
      'a learner that was taken from the list',
      world([up, { as: 'unlisted', fresh: true }]),
      'deleteRemovedMember',
      [`delete ${name(2)}`],
    ],
    [
      'a voter without an object, at an address of ours',
      world([up, up, up], { strangers: [{ ...entry(7, up), name: 'db-zzzzz' }] }),
      'removeOrphanMember',
      ['remove db-zzzzz'],
    ],
    [
      'a voter without an object, at an address that is not ours',
      world([up, up, up], { strangers: [{ ...entry(7, up), peerURLs: ['http://else.where:2380'] }] }),
      'steady',
      [],
    ],
    [
      'who follows nobody does not carry the cluster',
      world([up, { leaderless: true }, { leaving: true }]),
      'waitForMembers',
      [],
    ],
    [
      'one that is to go is down, and so is another: etcd lets it go, because a quorum of the others is up',
      world([up, up, up, { leaving: true, down: true }, down]),
      'removeLeaving',
      [`remove ${name(4)}`],
    ],
    [
      'a learner may go while a voter is down',
      world([up, up, down, { ...learner, leaving: true }], { replicas: 3 }),
      'removeLeaving',
      [`remove ${name(4)}`],
    ],
    [
      'one is on its way out: it goes before the next is chosen',
      world([up, up, up, up, { leaving: true }], { replicas: 3 }),
      'removeLeaving',
      [`remove ${name(5)}`],
    ],
    [
      'one that has left etcd is not counted as one too many',
      world([up, up, up, { as: 'unlisted', leaving: true, down: true }], { replicas: 3 }),
      'waitForMembers',
      [],
    ],
    [
      'the leader is the first of the list: another one takes over',
      world([{ leaving: true }, up, up]),
      'removeLeaving',
      [`moveLeader ${name(2)}`],
    ],
    [
      'a learner that never joined is forgotten, whoever else is missing',
      world([up, { as: 'unlisted', fresh: true }, { ...down, as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [`delete ${name(2)}`],
    ],
    [
      'somebody has the name and the address of a member, and is another one',
      world([up, up, { ...down, as: 'unlisted', voted: true }], { strangers: [{ ...entry(3, up), id: id(9) }] }),
      'deleteRemovedMember',
      [`delete ${name(3)}`],
    ],
    [
      'a person has removed a member and added it again: it answers under another id than the one that is recorded',
      answeringAs(
        world([up, up, { ...down, as: 'unlisted', voted: true }], { strangers: [{ ...entry(3, up), id: id(9) }] }),
        3,
        id(9),
      ),
      'deleteRemovedMember',
      [],
    ],
    [
      'the same, and its EtcdMember is being deleted: the voter is not taken for an unknown one',
      answeringAs(
        world([up, up, { ...down, as: 'unlisted', leaving: true }], {
          strangers: [{ ...entry(3, up), id: id(9) }],
        }),
        3,
        id(9),
      ),
      'waitForMembers',
      [],
    ],
    // parking
    [
      'parked: all at once',
      world([up, up], { replicas: 0 }),
      'pause',
      [1, 2].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    [
      'parked: nothing is protected, and nothing is done',
      world([parked, parked], { replicas: 0, etcd: { is: 'notAsked' } }),
      'repairPdb',
      ['delete db'],
    ],
    [
      'woken: all of them, also those that are too many',
      world([parked, parked, parked], { replicas: 1, etcd: { is: 'notAsked' } }),
      'repairPdb',
      ['delete db'],
    ],
    [
      'parked: it stays as it is',
      { ...world([parked, parked], { replicas: 0, etcd: { is: 'notAsked' } }), pdb: { is: 'absent' } },
      'pause',
      [],
    ],
    [
      'woken: all of them, and then nobody is added before they are up',
      { ...world([parked, parked, parked], { replicas: 5, etcd: { is: 'notAsked' } }), pdb: { is: 'absent' } },
      'resume',
      [1, 2, 3].map((n) => `patch ${name(n)} {"spec":{"dormant":null}}`),
    ],
    [
      'woken: also who is to go, for its vote counts',
      {
        ...world([parked, { ...parked, leaving: true }], { replicas: 1, etcd: { is: 'notAsked' } }),
        pdb: { is: 'absent' },
      },
      'resume',
      [1, 2].map((n) => `patch ${name(n)} {"spec":{"dormant":null}}`),
    ],
    [
      'parked while a member is to go: its Pod goes as well',
      withBudget(world([up, { leaving: true }], { replicas: 0 }), 2),
      'pause',
      [1, 2].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    [
      'one still sleeps: it is woken before anybody is added',
      world([up, parked], { replicas: 3 }),
      'resume',
      [`patch ${name(2)} {"spec":{"dormant":null}}`],
    ],
    [
      'parked with members too many: they stay',
      world([up, up, up], { replicas: 0 }),
      'pause',
      [1, 2, 3].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    // the budget
    [
      'a cluster grows: the budget keeps what it is to have',
      withBudget(world([up], { replicas: 5 }), 1),
      'repairPdb',
      ['patch db {"spec":{"minAvailable":3}}'],
    ],
    [
      'a cluster shrinks: the budget keeps what it has',
      withBudget(world([up, up, up, up, up], { replicas: 1 }), 1),
      'repairPdb',
      ['patch db {"spec":{"minAvailable":3}}'],
    ],
    // volumes
    ['a volume is kept for a week', keeping({ days: 6 }), 'steady', []],
    ['a week is over', keeping({ days: 7 }), 'expireVolumes', ['delete data-x']],
    ['a week is over, and it is on its way', keeping({ days: 7, deleting: true }), 'steady', []],
    ['an old claim, kept since yesterday', keeping({ days: 1, ageDays: 90 }), 'steady', []],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

const callOf = (o: Observed): EtcdCall | undefined => {
  const [step] = decide(o).steps;
  return step?.do === 'call' ? (step.call as EtcdCall) : undefined;
};

test('a change is asked of healthy voters, the leader first, and only for this cluster', () => {
  const { endpoints, clusterID } = callOf(world([up, up, { ...down, leaving: true }, learner], { leader: 2 })) ?? {};
  expect(endpoints).toEqual(['http://10.0.0.2:2379', 'http://10.0.0.1:2379']);
  expect(clusterID).toBe(CLUSTER_ID);
});

test('members with IPv6 addresses are asked, too', () => {
  const six: Is = { pod: { is: 'present', ip: 'fd00::1', ready: true, maxLearners: 8 } };
  expect(callOf(world([six], { replicas: 3 }))?.endpoints).toEqual(['http://[fd00::1]:2379']);
});

test('a name that etcd was told is recorded with the member, also when it was not this operator that told it', () => {
  const o = world([up, awaited], { replicas: 3, status: { membersNamed: 1 } });
  expect([decide(o).rule, decide(o).latch]).toEqual(['startNext', { membersNamed: 2 }]);
});

test('a volume is deleted only as it was seen', () => {
  expect(decide(keeping({ days: 7 })).steps[0]).toMatchObject({ do: 'delete', what: { resourceVersion: '5' } });
});

test('leadership is moved by the leader itself, also when it is the one whose data is wrong', () => {
  const wrong: Is = { leaving: true, alarm: 'CORRUPT' };
  const step = decide(world([up, up, wrong], { leader: 3, alarms: [{ id: id(3), alarm: 'CORRUPT' }] })).steps[0];
  expect(step?.do === 'call' && step.call).toMatchObject({ name: 'moveLeader', endpoints: ['http://10.0.0.3:2379'] });
});

test('a member whose Pod is ready, while its etcd follows nobody, is not said to be ready', () => {
  const { rule, message: why } = decide(world([up, up, { leaderless: true }]));
  expect([rule, why]).toEqual([
    'waitForMembers',
    `waiting for members to be ready (${name(3)}: its Pod is ready, but its etcd does not answer as a healthy voter)`,
  ]);
});
