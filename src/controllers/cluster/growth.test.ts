/** Growth as a table: the observed state, the rule that decides, its steps. */

import { describe, expect, test } from 'vitest';
import { CLUSTER_ID, NOW } from '../../../test/support/builders/builders.ts';
import {
  awaited,
  down,
  entry,
  type Is,
  joining,
  learner,
  list,
  lost,
  name,
  stepsOf,
  up,
  url,
  view,
  world,
} from '../../../test/support/builders/members.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

/** A learner that a user added, to mirror the data. */
const mirror = { id: 'f00', name: 'mirror', peerURLs: ['https://10.9.9.9:2380'], isLearner: true };
const pending: Is = { as: 'unlisted', fresh: true, spec: { initialCluster: '' } };

describe('while a cluster grows, the rule that decides', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    [
      'one of three members: a learner is added',
      world([up], { replicas: 3 }),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'etcd lists the learner: its EtcdMember is created',
      world([up, awaited], { replicas: 3, status: { membersNamed: 1 } }),
      'startNext',
      [`create ${name(2)}`],
    ],
    [
      'etcd lists a learner whose number is not recorded yet: its EtcdMember is created',
      world([up], { replicas: 2, alsoListed: [entry(9 + 32, awaited)] }),
      'startNext',
      [`create ${name(9 + 32)}`],
    ],
    [
      'etcd lists a learner whose number this operator cannot have chosen: it is removed',
      world([up], { replicas: 2, alsoListed: [entry(9 + 33, awaited)] }),
      'removeOrphanMember',
      [`remove ${url(9 + 33)}`],
    ],
    [
      'etcd lists a voter that has never started and has no EtcdMember: it is removed',
      world([up, up, up], { replicas: 4, alsoListed: [{ ...entry(4, awaited), isLearner: false }] }),
      'removeOrphanMember',
      [`remove ${url(4)}`],
    ],
    [
      'etcd has refused a leadership transfer: that does not keep the next member from being added',
      { ...world([up, learner], { replicas: 3 }), ...remembering('etcd refuses', { is: 'later', call: 'moveLeader' }) },
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    // where two rules apply
    [
      'an earlier operator has created a member, and another is being deleted: etcd gets the new one first',
      world([up, up, up, { leaving: true }, pending], { replicas: 4 }),
      'completePending',
      [`addLearner ${name(5)}`],
    ],
    [
      'a member is being deleted, and etcd does not list another: the removal in progress is finished first',
      world([up, up, up, { leaving: true }, { ...down, as: 'unlisted', voted: true }], { replicas: 4 }),
      'removeLeaving',
      [`remove ${name(4)}`],
    ],
    [
      'replicas is lowered, and the spec changes, while a learner joins: it is deleted, and not recreated',
      world([up, up, up, { ...joining, spec: { version: '3.6.99' } }], { replicas: 3 }),
      'shrink',
      [`delete ${name(4)}`],
    ],
    [
      'the spec and the membership change while a learner joins: it is recreated, which also updates its initialCluster',
      world([up, { ...joining, spec: { version: '3.6.99', initialCluster: 'a=http://a:2380' } }], { replicas: 2 }),
      'rebuildJoining',
      [`delete ${name(2)}`],
    ],
    ['the learner is starting: the next is not added yet', world([up, joining], { replicas: 3 }), 'waitForJoining', []],
    [
      'the learner serves: the next is added before it is promoted',
      world([up, learner], { replicas: 3, status: { membersNamed: 2 } }),
      'addLearner',
      [`addLearner ${name(3)}`],
    ],
    [
      'the next EtcdMember is created before the learner is promoted',
      world([up, learner, awaited]),
      'startNext',
      [`create ${name(3)}`],
    ],
    [
      'there is no cluster version yet: etcd 3.5 exits when it joins',
      {
        ...world([up], { replicas: 3 }),
        etcd: { is: 'answers', clusterID: CLUSTER_ID, members: [entry(1, up)], unversioned: true, alarms: [] },
      },
      'addLearner',
      [],
    ],
    [
      'the learner has published its name and does not respond yet: the next is added',
      world([up, { ...joining, started: true }], { replicas: 3 }),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'all are added, and one has published its name: it is promoted although it does not respond yet',
      world([up, { ...joining, started: true }]),
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'a learner published its name and was restarted: it is promoted only once it responds',
      world([up, { ...joining, started: true, restarted: true }]),
      'waitForJoining',
      [],
    ],
    [
      'a learner published its name and does not run: it is promoted only once it responds',
      world([up, { ...joining, started: true, pod: { is: 'present', ready: false, maxLearners: 8 } }]),
      'waitForJoining',
      [],
    ],
    [
      'all are added: a learner that serves is promoted',
      world([up, learner, joining]),
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'more members are to be added: no learner is promoted',
      world([up, learner, joining], { replicas: 4 }),
      'waitForJoining',
      [],
    ],
    [
      'etcd accepts one learner only: it is promoted before the next is added',
      world([{ maxLearners: 1 }, learner], { replicas: 3 }),
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'etcd refuses to add the next: the learner that serves is promoted meanwhile',
      {
        ...world([up, learner], { replicas: 3 }),
        ...remembering('etcd refuses: unhealthy cluster', { is: 'later', call: 'addLearner' }),
      },
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'a learner starts slowly: no member is added, because none can join while its DNS name is missing',
      world([up, { ...joining, ageMs: 16_000 }], { replicas: 3 }),
      'waitForJoining',
      [],
    ],
    [
      'a learner has been starting for exactly as long as is usual: others are not promoted yet',
      world([up, learner, { ...joining, ageMs: 15_000 }], { replicas: 4 }),
      'waitForJoining',
      [],
    ],
    [
      'the only learner that etcd accepts serves, and another one waits: it is promoted',
      world([{ maxLearners: 2 }, learner, joining], { replicas: 4 }),
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'a member that an earlier operator created is being deleted: etcd does not get it',
      world([up, { ...pending, leaving: true }], { replicas: 2 }),
      'waitForMembers',
      [],
    ],
    [
      'a learner that starts slowly does not delay the promotion of others',
      world([up, learner, { ...joining, ageMs: 16_000 }], { replicas: 4 }),
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'two learners serve: the one that has applied more is promoted',
      world([up, { ...learner, lag: 50 }, learner]),
      'promote',
      [`promote ${name(3)}`],
    ],
    ['a voter is down: no member is added', world([up, up, down], { replicas: 5 }), 'waitForMembers', []],
    ['a learner is joining: no other is added', world([up, up, up, joining], { replicas: 5 }), 'waitForJoining', []],
    [
      'the member list changed before the joining member started',
      world([up, up, { ...joining, spec: { initialCluster: list(up, up, up, joining) } }]),
      'refreshJoinList',
      [`patch ${name(3)} ${JSON.stringify({ spec: { initialCluster: list(up, up, joining) } })}`],
    ],
    [
      'the member list changed after the joining member started: its initial cluster is not updated',
      world([up, up, { ...joining, started: true, restarted: true, spec: { initialCluster: 'a=http://a:2380' } }]),
      'waitForJoining',
      [],
    ],
    [
      'the spec changed before the joining member started',
      world([up, up, { ...joining, spec: { version: '3.6.99' } }]),
      'rebuildJoining',
      [`delete ${name(3)}`],
    ],
    [
      'the spec changed after the joining member started, and its etcd was restarted: it has data',
      world([up, up, { ...joining, started: true, restarted: true, spec: { version: '3.6.99' } }]),
      'waitForJoining',
      [],
    ],
    [
      'the joining member cannot start',
      world([up, up, { ...joining, evidence: EVIDENCE.crashLooping }]),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'an EtcdMember of the earlier operator is pending: it is added to etcd',
      world([up, up, pending]),
      'completePending',
      [`addLearner ${name(3)}`],
    ],
    [
      'an EtcdMember of the earlier operator is pending, and a member is lost: the lost one is removed first',
      world([up, up, lost, pending], { replicas: 4 }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'an EtcdMember of the earlier operator is pending, and etcd accepts one learner only',
      world([{ maxLearners: 1 }, { maxLearners: 1 }, learner, pending]),
      'promote',
      [`promote ${name(3)}`],
    ],
    [
      'an EtcdMember of the earlier operator is pending, and a member is down: it waits, and does not count as removed from etcd',
      world([up, up, down, pending]),
      'waitForMembers',
      [],
    ],
    [
      'a pending EtcdMember that etcd lists gets its initialCluster',
      world([up, up, { as: 'learner', fresh: true, spec: { initialCluster: '' } }]),
      'completePending',
      [`patch ${name(3)} ${JSON.stringify({ spec: { initialCluster: list(up, up, joining) } })}`],
    ],
    [
      'replicas changed after the initial cluster was written: it is updated before the next member is created',
      world([up, { ...joining, spec: { initialCluster: 'old' } }, awaited]),
      'refreshJoinList',
      [`patch ${name(2)} ${JSON.stringify({ spec: { initialCluster: list(up, joining, awaited) } })}`],
    ],
    [
      'the member list changed after the joining member published its name: it has joined',
      world([up, up, { ...joining, started: true, spec: { initialCluster: 'old' } }]),
      'promote',
      [`promote ${name(3)}`],
    ],
    [
      'the spec changed after the joining member published its name: it has joined',
      world([up, up, { ...joining, started: true, spec: { version: '3.6.99' } }]),
      'promote',
      [`promote ${name(3)}`],
    ],
    [
      'a removed member still has an EtcdMember: no member is added until it is deleted',
      world([up, up, { as: 'unlisted', leaving: true, down: true }]),
      'waitForMembers',
      [],
    ],
    [
      'a learner that is being deleted is not promoted, even while members do not agree on a leader',
      {
        ...world([up, up, { ...learner, leaving: true }]),
        members: [view(1, up, 1, 'x'), view(2, up, 2, 'x'), view(3, { ...learner, leaving: true }, 1, 'x')],
      },
      'waitForMembers',
      [],
    ],
    [
      'a learner without an EtcdMember that has started is not created again',
      world([up, up, up], { replicas: 4, alsoListed: [entry(4, learner)] }),
      'removeOrphanMember',
      [`remove ${name(4)}`],
    ],
    [
      'a learner at a foreign address was added by a user, who may be moving the data: it is left alone',
      world([up, up, up], {
        alsoListed: [{ ...entry(7, awaited), peerURLs: ['http://else.where:2380'] }],
      }),
      'steady',
      [],
    ],
    [
      'a learner of a user takes the place of no member: a lost one is replaced',
      world([up, up], { replicas: 3, alsoListed: [mirror] }),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'a voter of a user takes the place of no member, and etcd alone knows whether it is healthy',
      world([up, up], { replicas: 3, alsoListed: [{ ...mirror, isLearner: false }] }),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'beside a voter of a user, no member is added while one of the others is down',
      world([up, down], { replicas: 3, alsoListed: [{ ...mirror, isLearner: false }] }),
      'waitForMembers',
      [],
    ],
    [
      'a member that was just added beside a learner of a user is created',
      world([up, up, awaited], { alsoListed: [mirror] }),
      'startNext',
      [`create ${name(3)}`],
    ],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

const starting = { is: 'present', ready: false, startedAt: NOW - 1_000, maxLearners: 8 } as const;

test.each<[string, Is, boolean]>([
  ['its etcd runs', joining, true],
  ['its Pod has started, and not its etcd', { ...joining, pod: { ...starting, ip: '10.0.0.2' } }, true],
  ['its Pod has no address', { ...joining, pod: starting }, false],
  [
    'its Pod has an address and has not started',
    { ...joining, pod: { is: 'present', ready: false, ip: 'x', maxLearners: 8 } },
    false,
  ],
  ['there is no Pod', { ...joining, pod: { is: 'absent' } }, false],
])('a joining member is polled often only when it can respond soon: %s', (_what, is, often) => {
  const { rule, requeueAfterMs = 0 } = decide(world([up, is], { replicas: 3 }));
  expect([rule, requeueAfterMs < 5_000]).toEqual(['waitForJoining', often]);
});

test('adding a member is an Event only when all voters are being deleted', () => {
  const reasons = (o: Gathered): readonly string[] => decide(o).events.map(({ reason }) => reason);
  expect(reasons(world([{ leaving: true }]))).toContain('AllMembersDeleted');
  expect(reasons(world([up], { replicas: 3 }))).not.toContain('AllMembersDeleted');
});
