/** Removal of members, pause and resume as a table: the observed state, the rule that decides, its steps. */
import { describe, expect, test } from 'vitest';
import { CLUSTER_ID } from '../../../test/support/builders/builders.ts';
import {
  at,
  awaited,
  DAY,
  dormant,
  down,
  entry,
  type Is,
  id,
  learner,
  name,
  stepsOf,
  unreachable,
  up,
  url,
  view,
  world,
} from '../../../test/support/builders/members.ts';
import { QUARANTINED_AT_ANNOTATION } from '../../api/names.ts';
import { pdb } from './build.ts';
import type { EtcdCall } from './calls.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const withPdb = (o: Gathered, minAvailable: number): Gathered => ({
  ...o,
  pdb: { is: 'ours', object: pdb(o.cluster, minAvailable) },
});

/** A healthy cluster, and a PVC that was quarantined this number of days ago. */
const keeping = (kept: {
  readonly days: number;
  readonly ageDays?: number;
  readonly deleting?: boolean;
}): Gathered => ({
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

/** This id responds at the address of this member. */
const answeringAs = (o: Gathered, n: number, answersAs: string): Gathered => ({
  ...o,
  members: o.members.map((m, i) => (i === n - 1 ? { ...m, answersAs } : m)),
});

describe('the rule that decides', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    ['all members are healthy', world([up, up, up]), 'steady', []],
    // shrinking
    [
      'five members, replicas 3: the newest is deleted',
      world([up, up, up, up, up], { replicas: 3 }),
      'shrink',
      [`delete ${name(5)}`],
    ],
    ['the leader is kept', world([up, up, up, up], { replicas: 3, leader: 4 }), 'shrink', [`delete ${name(3)}`]],
    [
      'a member that is down is deleted first',
      world([up, down, up, up], { replicas: 3 }),
      'shrink',
      [`delete ${name(2)}`],
    ],
    [
      'a learner is deleted before voters',
      world([up, up, learner, up], { replicas: 3 }),
      'shrink',
      [`delete ${name(3)}`],
    ],
    [
      'members are missing, and etcd does not respond: none is added',
      world([up], { replicas: 3, etcd: unreachable }),
      'waitForMembers',
      [],
    ],
    ['two members are down: no voter is deleted', world([up, down, down, up, up], { replicas: 4 }), 'shrink', []],
    [
      'a member that lags does not count towards the quorum',
      world([up, { lag: 6_000 }, down, up, up], { replicas: 4 }),
      'shrink',
      [],
    ],
    [
      'another member responds at the address of a member: that one counts as down and is deleted first',
      world([up, { answersAs: 3 }, up], { replicas: 2 }),
      'shrink',
      [`delete ${name(2)}`],
    ],
    [
      'another member responds at the address of a member that the quorum needs: no voter is removed',
      world([up, { answersAs: 1 }, { leaving: true }], { replicas: 2 }),
      'waitForMembers',
      [],
    ],
    [
      'replicas is lowered before the new member started',
      world([up, awaited], { replicas: 1 }),
      'removeOrphanMember',
      [`remove ${url(2)}`],
    ],
    [
      'a member is being deleted: it is removed from etcd',
      world([up, up, { leaving: true }]),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    [
      'a leader that is being deleted transfers leadership first',
      world([up, up, { leaving: true }], { leader: 3 }),
      'removeLeaving',
      [`moveLeader ${name(1)}`],
    ],
    [
      'a leader that is being deleted and does not respond, as with an expired certificate, is removed without a leadership transfer',
      world([up, up, { leaving: true, down: true }], { leader: 3 }),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    [
      'a member is being deleted while another is down: it is not removed',
      world([up, down, { leaving: true }]),
      'waitForMembers',
      [],
    ],
    [
      'two members are being deleted: they are removed one at a time',
      world([up, { leaving: true }, { leaving: true }]),
      'removeLeaving',
      [`remove ${name(2)}`],
    ],
    [
      'all voters are being deleted: a replacement voter is added first',
      world([{ leaving: true }, { leaving: true }, { leaving: true }]),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'all voters are being deleted, and the replacement voter has no EtcdMember yet: it is created',
      world([{ leaving: true }, { leaving: true }, { leaving: true }, awaited], { replicas: 3 }),
      'startNext',
      [`create ${name(4)}`],
    ],
    [
      'all voters are being deleted, and the replacement voter has the data: it is promoted',
      world([{ leaving: true }, { leaving: true }, { leaving: true }, learner], { replicas: 3 }),
      'promote',
      [`promote ${name(4)}`],
    ],
    [
      'all old voters are being deleted, and the replacement voter leads: they are removed',
      withPdb(world([{ leaving: true }, { leaving: true }, { leaving: true }, up], { replicas: 3, leader: 4 }), 3),
      'removeLeaving',
      [`remove ${name(1)}`],
    ],
    [
      'all voters are being deleted, and one of them is down: it is removed before a member is added',
      world([{ leaving: true }, { leaving: true }, { leaving: true, down: true }]),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    [
      'all voters are being deleted, and etcd does not respond: no member is removed or added',
      world([{ leaving: true }, { leaving: true, down: true }, { leaving: true, down: true }], { etcd: unreachable }),
      'waitForMembers',
      [],
    ],
    [
      'two members are being deleted, and one is down: that one is removed first',
      world([up, { leaving: true }, { leaving: true, down: true }]),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    [
      'the only voter is being deleted: it is kept until a replacement voter has its data',
      world([{ leaving: true }], { replicas: 1 }),
      'addLearner',
      [`addLearner ${name(10)}`],
    ],
    [
      'members do not agree on a leader: none is removed',
      {
        ...world([up, up, { leaving: true }]),
        members: [view(1, up, 1, 'x'), view(2, up, 2, 'x'), view(3, { leaving: true }, 1, 'x')],
      },
      'waitForMembers',
      [],
    ],
    [
      'etcd does not list a member whose EtcdMember is not being deleted',
      world([up, up, { ...down, as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [`delete ${name(3)}`],
    ],
    [
      'most recorded voters are not listed: nothing is deleted',
      world([up, { ...down, as: 'unlisted', voted: true }, { ...down, as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [],
    ],
    [
      'one of two recorded voters is not listed: nothing is deleted',
      world([up, { ...down, as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [],
    ],
    [
      'a member that is not listed responds with the cluster ID',
      world([up, up, { as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [],
    ],
    [
      'a learner is not listed any more',
      world([up, { as: 'unlisted', fresh: true }]),
      'deleteRemovedMember',
      [`delete ${name(2)}`],
    ],
    [
      'a voter without an EtcdMember, at an address of the headless Service',
      world([up, up, up], { alsoListed: [{ ...entry(7, up), name: 'db-zzzzz' }] }),
      'removeOrphanMember',
      ['remove db-zzzzz'],
    ],
    [
      'a voter without an EtcdMember, at a foreign address',
      world([up, up, up], { alsoListed: [{ ...entry(7, up), peerURLs: ['http://else.where:2380'] }] }),
      'steady',
      [],
    ],
    [
      'a member without a leader does not count towards the quorum',
      world([up, { leaderless: true }, { leaving: true }]),
      'waitForMembers',
      [],
    ],
    [
      'a member that is being deleted is down, and so is another: it is removed, because the others have a quorum',
      world([up, up, up, { leaving: true, down: true }, down]),
      'removeLeaving',
      [`remove ${name(4)}`],
    ],
    [
      'a learner is removed while a voter is down',
      world([up, up, down, { ...learner, leaving: true }], { replicas: 3 }),
      'removeLeaving',
      [`remove ${name(4)}`],
    ],
    [
      'a member is being deleted: it is removed before the next is chosen',
      world([up, up, up, up, { leaving: true }], { replicas: 3 }),
      'removeLeaving',
      [`remove ${name(5)}`],
    ],
    [
      'a member that was removed from etcd does not count against replicas',
      world([up, up, up, { as: 'unlisted', leaving: true, down: true }], { replicas: 3 }),
      'waitForMembers',
      [],
    ],
    [
      'the leader is the first of the list: leadership is transferred to the second',
      world([{ leaving: true }, up, up]),
      'removeLeaving',
      [`moveLeader ${name(2)}`],
    ],
    [
      'a learner that never joined is deleted, even while a voter is not listed',
      world([up, { as: 'unlisted', fresh: true }, { ...down, as: 'unlisted', voted: true }]),
      'deleteRemovedMember',
      [`delete ${name(2)}`],
    ],
    [
      'an entry has the name and the address of a member, and another id',
      world([up, up, { ...down, as: 'unlisted', voted: true }], { alsoListed: [{ ...entry(3, up), id: id(9) }] }),
      'deleteRemovedMember',
      [`delete ${name(3)}`],
    ],
    [
      'a user has removed a member and added it again: it responds with another id than the recorded one',
      answeringAs(
        world([up, up, { ...down, as: 'unlisted', voted: true }], { alsoListed: [{ ...entry(3, up), id: id(9) }] }),
        3,
        id(9),
      ),
      'deleteRemovedMember',
      [],
    ],
    [
      'the same, and its EtcdMember is being deleted: the voter does not count as an unknown member',
      answeringAs(
        world([up, up, { ...down, as: 'unlisted', leaving: true }], {
          alsoListed: [{ ...entry(3, up), id: id(9) }],
        }),
        3,
        id(9),
      ),
      'waitForMembers',
      [],
    ],
    // pause and resume
    [
      'paused: all members at once',
      world([up, up], { replicas: 0 }),
      'pause',
      [1, 2].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    [
      'paused: the PodDisruptionBudget is deleted',
      world([dormant, dormant], { replicas: 0, etcd: { is: 'notAsked' } }),
      'pause',
      ['pdb: delete db'],
    ],
    [
      'resumed with fewer replicas: the PodDisruptionBudget follows when they run',
      world([dormant, dormant, dormant], { replicas: 1, etcd: { is: 'notAsked' } }),
      'resume',
      [...[1, 2, 3].map((n) => `patch ${name(n)} {"spec":{"dormant":null}}`), 'pdb: delete db'],
    ],
    [
      'paused: no further step',
      { ...world([dormant, dormant], { replicas: 0, etcd: { is: 'notAsked' } }), pdb: { is: 'absent' } },
      'pause',
      [],
    ],
    [
      'resumed: all members, before any member is added',
      { ...world([dormant, dormant, dormant], { replicas: 5, etcd: { is: 'notAsked' } }), pdb: { is: 'absent' } },
      'resume',
      [1, 2, 3].map((n) => `patch ${name(n)} {"spec":{"dormant":null}}`),
    ],
    [
      'resumed: also a member that is being deleted, because its vote counts',
      {
        ...world([dormant, { ...dormant, leaving: true }], { replicas: 1, etcd: { is: 'notAsked' } }),
        pdb: { is: 'absent' },
      },
      'resume',
      [1, 2].map((n) => `patch ${name(n)} {"spec":{"dormant":null}}`),
    ],
    [
      'paused while a member is being deleted: its Pod is deleted too',
      withPdb(world([up, { leaving: true }], { replicas: 0 }), 2),
      'pause',
      [1, 2].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    [
      'one member is still dormant: it is resumed before a member is added',
      world([up, dormant], { replicas: 3 }),
      'resume',
      [`patch ${name(2)} {"spec":{"dormant":null}}`],
    ],
    [
      'paused with three members: none is removed',
      world([up, up, up], { replicas: 0 }),
      'pause',
      [1, 2, 3].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    // the PodDisruptionBudget
    [
      'a cluster grows: minAvailable is the quorum of replicas',
      withPdb(world([up], { replicas: 5 }), 1),
      'addLearner',
      [`addLearner ${name(10)}`, 'pdb: patch db {"spec":{"minAvailable":3}}'],
    ],
    [
      'a cluster shrinks: minAvailable is the quorum of the current voters',
      withPdb(world([up, up, up, up, up], { replicas: 1 }), 1),
      'shrink',
      [`delete ${name(5)}`, 'pdb: patch db {"spec":{"minAvailable":3}}'],
    ],
    // quarantined PVCs
    ['a quarantined PVC is kept for a week', keeping({ days: 6 }), 'steady', []],
    ['a quarantined PVC is deleted after a week', keeping({ days: 7 }), 'expireVolumes', ['delete data-x']],
    [
      'a quarantined PVC is kept when the clock of the operator jumps by a week',
      { ...keeping({ days: 8 }), clockAheadMs: 7 * DAY },
      'steady',
      [],
    ],
    ['a quarantined PVC is being deleted already', keeping({ days: 7, deleting: true }), 'steady', []],
    ['an old PVC that is quarantined since yesterday is kept', keeping({ days: 1, ageDays: 90 }), 'steady', []],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

const callOf = (o: Gathered): EtcdCall | undefined => {
  const [step] = decide(o).steps;
  return step?.do === 'call' ? (step.call as EtcdCall) : undefined;
};

test('a change is sent to healthy voters, the leader first, with the cluster ID', () => {
  const { endpoints, clusterID } = callOf(world([up, up, { ...down, leaving: true }, learner], { leader: 2 })) ?? {};
  expect(endpoints).toEqual(['http://10.0.0.2:2379', 'http://10.0.0.1:2379']);
  expect(clusterID).toBe(CLUSTER_ID);
});

test('a change is sent to IPv6 addresses', () => {
  const six: Is = { pod: { is: 'present', ip: 'fd00::1', ready: true, maxLearners: 8 } };
  expect(callOf(world([six], { replicas: 3 }))?.endpoints).toEqual(['http://[fd00::1]:2379']);
});

test('the number of a learner is recorded with its EtcdMember, even if another operator added it', () => {
  const o = world([up, awaited], { replicas: 3, status: { membersNamed: 1 } });
  expect([decide(o).rule, decide(o).latch]).toEqual(['startNext', { membersNamed: 2 }]);
});

const stopping: Is = { ...dormant, pod: { is: 'present', ready: false, maxLearners: 8 } };

test.each<[string, Gathered, string]>([
  ['pausing', world([up, dormant], { replicas: 0 }), `pausing ${name(1)}`],
  [
    'Pods are left',
    world([dormant, stopping], { replicas: 0 }),
    `pausing: waiting for the Pods of ${name(2)} to be deleted`,
  ],
  [
    'no Pod is left',
    world([dormant], { replicas: 0 }),
    'paused: all volumes are kept; set replicas to resume the cluster',
  ],
  ['growing', world([up], { replicas: 3 }), `1 of 3 members: adding ${name(10)}`],
  [
    'all voters are being deleted',
    world([{ leaving: true }], { replicas: 1 }),
    `all voters are being deleted: ${name(10)} replicates their data before they are removed. To delete the data, delete EtcdCluster db`,
  ],
  [
    'a member is being deleted, and etcd does not respond',
    world([up, { leaving: true }], { replicas: 1, etcd: unreachable }),
    `waiting for members to be ready (${name(2)}: being deleted, but etcd does not respond and cannot remove the member. Restore the quorum; if the data is not needed, delete the EtcdCluster)`,
  ],
  [
    'a member that is being deleted cannot be removed now',
    world([up, down, { leaving: true }]),
    `waiting for members to be ready (${name(2)}: no status yet; ${name(3)}: being deleted, but cannot be removed from etcd now: the quorum needs ${name(2)}, which is not healthy)`,
  ],
  [
    'etcd has removed a member that is being deleted',
    world([up, { as: 'unlisted', leaving: true, down: true }], { replicas: 1 }),
    `waiting for members to be ready (${name(2)}: being deleted)`,
  ],
  [
    'only the operator does not reach etcd',
    world([up, up], { etcd: unreachable }),
    'members are ready, but etcd does not respond to the operator: no leader',
  ],
  [
    'the spec wants another member, and the operator does not reach etcd',
    world([up, up], { replicas: 3, etcd: unreachable }),
    '2 of 3 members, all ready, but etcd does not respond to the operator: no leader',
  ],
])('the message when %s', (_what, observed, message) => {
  expect(decide(observed).message).toBe(message);
});

test.each([
  [undefined, 500],
  [60_000, 500],
  [60_001, 10_000],
])('a change that etcd has refused for %s ms is retried after %i ms', (ms, retryMs) => {
  const o = world([up], { replicas: 3 });
  const [step] = decide({ ...o, ...(ms !== undefined && { refusedSince: o.now - ms }) }).steps;
  expect(step).toMatchObject({ do: 'call', retryMs });
});

test('members of the same age are removed in the same order in every reconcile', () => {
  const three = [up, up, up].map((is) => ({ ...is, ageMs: DAY }));
  const o = world(three, { replicas: 2 });
  const steps = stepsOf(o);
  expect(steps).toEqual([`delete ${[name(2), name(3)].sort().at(-1)}`]);
  expect(stepsOf({ ...o, members: o.members.toReversed() })).toEqual(steps);
});

test('a PVC is deleted with its resourceVersion as a precondition', () => {
  expect(decide(keeping({ days: 7 })).steps[0]).toMatchObject({ do: 'delete', what: { resourceVersion: '5' } });
});

test('MoveLeader is sent to the leader, even if its data is corrupt', () => {
  const wrong: Is = { leaving: true, alarm: 'CORRUPT' };
  const step = decide(world([up, up, wrong], { leader: 3, alarms: [{ id: id(3), alarm: 'CORRUPT' }] })).steps[0];
  expect(step?.do === 'call' && step.call).toMatchObject({ name: 'moveLeader', endpoints: ['http://10.0.0.3:2379'] });
});

test('a member with a ready Pod whose etcd has no leader is not reported as ready', () => {
  const { rule, message } = decide(world([up, up, { leaderless: true }]));
  expect([rule, message]).toEqual([
    'waitForMembers',
    `waiting for members to be ready (${name(3)}: its Pod is ready, but its etcd does not answer as a healthy voter)`,
  ]);
});
