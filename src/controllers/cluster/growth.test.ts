/** Growth, as a table: what is so, which rule answers, what it does. */
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
  view,
  world,
} from '../../../test/support/builders/members.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const pending: Is = { as: 'unlisted', fresh: true, spec: { initialCluster: '' } };

describe('while a cluster grows, the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['one of three: the second is added', world([up], { replicas: 3 }), 'addLearner', [`addLearner ${name(10)}`]],
    [
      'it is on the list: it starts',
      world([up, awaited], { replicas: 3, status: { membersNamed: 1 } }),
      'startNext',
      [`create ${name(2)}`],
    ],
    ['it is starting: the next waits', world([up, joining], { replicas: 3 }), 'waitForJoining', []],
    [
      'it serves: the next is added before it is promoted',
      world([up, learner], { replicas: 3, status: { membersNamed: 2 } }),
      'addLearner',
      [`addLearner ${name(3)}`],
    ],
    ['the next starts before it is promoted', world([up, learner, awaited]), 'startNext', [`create ${name(3)}`]],
    [
      'the seed has not agreed on a version: on 3.5, whoever joins now ends',
      {
        ...world([up], { replicas: 3 }),
        etcd: { is: 'answers', clusterID: CLUSTER_ID, members: [entry(1, up)], unversioned: true, alarms: [] },
      },
      'addLearner',
      [],
    ],
    [
      'it has told its name and does not answer yet: the next is added',
      world([up, { ...joining, started: true }], { replicas: 3 }),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'all are added, and one has told its name: it is promoted, although it does not answer yet',
      world([up, { ...joining, started: true }]),
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'it had told its name and has ended since: it must answer before it votes',
      world([up, { ...joining, started: true, restarted: true }]),
      'waitForJoining',
      [],
    ],
    [
      'it had told its name and does not run: it must answer before it votes',
      world([up, { ...joining, started: true, pod: { is: 'present', ready: false, maxLearners: 8 } }]),
      'waitForJoining',
      [],
    ],
    ['all are added: who serves is promoted', world([up, learner, joining]), 'promote', [`promote ${name(2)}`]],
    ['more are to be added: nobody is promoted', world([up, learner, joining], { replicas: 4 }), 'waitForJoining', []],
    [
      'etcd has room for one learner only: it is promoted before the next is added',
      world([{ maxLearners: 1 }, learner], { replicas: 3 }),
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'etcd refuses to add the next: who serves is promoted meanwhile',
      { ...world([up, learner], { replicas: 3 }), refusal: 'etcd refuses: unhealthy cluster' },
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'one that takes long: nobody is added, because nobody can join while its name is not there',
      world([up, { ...joining, ageMs: 16_000 }], { replicas: 3 }),
      'waitForJoining',
      [],
    ],
    [
      'one that takes long does not hold up those that serve',
      world([up, learner, { ...joining, ageMs: 16_000 }], { replicas: 4 }),
      'promote',
      [`promote ${name(2)}`],
    ],
    [
      'two serve: the one that has more is promoted',
      world([up, { ...learner, lag: 50 }, learner]),
      'promote',
      [`promote ${name(3)}`],
    ],
    ['a voter is down: nobody is added', world([up, up, down], { replicas: 5 }), 'waitForMembers', []],
    ['a learner is on its way: nobody is added', world([up, up, up, joining], { replicas: 5 }), 'waitForJoining', []],
    [
      'the list has changed before the joining member has started',
      world([up, up, { ...joining, spec: { initialCluster: list(up, up, up, joining) } }]),
      'refreshJoinList',
      [`patch ${name(3)} ${JSON.stringify({ spec: { initialCluster: list(up, up, joining) } })}`],
    ],
    [
      'the list has changed after it has: it needs none any more',
      world([up, up, { ...joining, started: true, restarted: true, spec: { initialCluster: 'a=http://a:2380' } }]),
      'waitForJoining',
      [],
    ],
    [
      'the spec was edited before the joining member has started',
      world([up, up, { ...joining, spec: { version: '3.6.99' } }]),
      'rebuildJoining',
      [`delete ${name(3)}`],
    ],
    [
      'the spec was edited after it has, and its etcd has ended since: it has data',
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
      'a member of the earlier operator is half made: etcd is told',
      world([up, up, pending]),
      'completePending',
      [`addLearner ${name(3)}`],
    ],
    [
      'one of the earlier operator is half made, and another is lost: etcd takes nobody before that one is out',
      world([up, up, lost, pending], { replicas: 4 }),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'one of the earlier operator is half made, and etcd has room for one learner only',
      world([{ maxLearners: 1 }, { maxLearners: 1 }, learner, pending]),
      'promote',
      [`promote ${name(3)}`],
    ],
    [
      'one of the earlier operator is half made, and another is down: it waits, and is not taken for one that etcd has forgotten',
      world([up, up, down, pending]),
      'waitForMembers',
      [],
    ],
    [
      'and then it is told whom to join',
      world([up, up, { as: 'learner', fresh: true, spec: { initialCluster: '' } }]),
      'completePending',
      [`patch ${name(3)} ${JSON.stringify({ spec: { initialCluster: list(up, up, joining) } })}`],
    ],
    [
      'an edit comes after the list: the list of who joins is put right before the next starts',
      world([up, { ...joining, spec: { initialCluster: 'old' } }, awaited]),
      'refreshJoinList',
      [`patch ${name(2)} ${JSON.stringify({ spec: { initialCluster: list(up, joining, awaited) } })}`],
    ],
    [
      'the list has changed after the joining member has told its name: it is in',
      world([up, up, { ...joining, started: true, spec: { initialCluster: 'old' } }]),
      'promote',
      [`promote ${name(3)}`],
    ],
    [
      'the spec was edited after the joining member has told its name: it is in',
      world([up, up, { ...joining, started: true, spec: { version: '3.6.99' } }]),
      'promote',
      [`promote ${name(3)}`],
    ],
    [
      'one that has left etcd is still there: nobody is added until it is gone',
      world([up, up, { as: 'unlisted', leaving: true, down: true }]),
      'waitForMembers',
      [],
    ],
    [
      'a learner that is to go is not promoted, also while nobody agrees on a leader',
      {
        ...world([up, up, { ...learner, leaving: true }]),
        members: [view(1, up, 1, 'x'), view(2, up, 2, 'x'), view(3, { ...learner, leaving: true }, 1, 'x')],
      },
      'waitForMembers',
      [],
    ],
    [
      'a learner without an object that has started is not made a second time',
      world([up, up, up], { replicas: 4, strangers: [entry(4, learner)] }),
      'removeOrphanMember',
      [`remove ${name(4)}`],
    ],
    [
      'a learner at an address that is not ours is not made, and goes',
      world([up, up, up], {
        replicas: 4,
        strangers: [{ ...entry(7, awaited), peerURLs: ['http://else.where:2380'] }],
      }),
      'removeOrphanMember',
      ['remove http://else.where:2380'],
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
])('a joining member is asked often only when it can answer soon: %s', (_what, is, often) => {
  const { rule, requeueAfterMs: wakeAfter = 0 } = decide(world([up, is], { replicas: 3 }));
  expect([rule, wakeAfter < 5_000]).toEqual(['waitForJoining', often]);
});

test('only the deletion of all voters is an Event when a member is added', () => {
  const reasons = (o: Observed): readonly string[] => decide(o).events.map(({ reason }) => reason);
  expect(reasons(world([{ leaving: true }]))).toContain('AllMembersDeleted');
  expect(reasons(world([up], { replicas: 3 }))).not.toContain('AllMembersDeleted');
});
