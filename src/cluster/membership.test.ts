/** Growth, shrinking, parking and repair, as a table: what is so, which rule answers, what it does. */
import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  CLUSTER_ID,
  CLUSTER_UID,
  condition,
  FORMED,
  NOW,
  READY,
} from '../../test/support/builders.ts';
import { targetOf } from '../api/defaults.ts';
import type { EtcdClusterSpec } from '../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../api/etcd-cluster-status.ts';
import { type EtcdMember, EVIDENCE } from '../api/etcd-member.ts';
import { memberName, peerURL } from '../api/names.ts';
import { budget, clientService, headlessService, joinList } from './build.ts';
import { decide } from './decide.ts';
import { quorumOf } from './gate.ts';
import type { EtcdMemberEntry, MemberView, Observed, PodView } from './observed.ts';

const name = (n: number): string => memberName('db', CLUSTER_UID, n);
const id = (n: number): string => `beef00000000000${n}`;
const url = (n: number): string => peerURL(name(n), 'db', 'ns');
const at = (msAgo: number): string => new Date(NOW - msAgo).toISOString();
const DAY = 24 * 60 * 60_000;

interface Is {
  /** Learner: on etcd's list without a vote. Awaited: on the list, and there is no object. Unlisted: an object that etcd does not know. */
  readonly as?: 'voter' | 'learner' | 'awaited' | 'unlisted';
  /** Its etcd does not answer. */
  readonly down?: boolean;
  /** It is recorded as one that votes. */
  readonly voted?: boolean;
  /** Its etcd has never started. */
  readonly fresh?: boolean;
  readonly evidence?: string;
  readonly leaving?: boolean;
  readonly ageMs?: number;
  readonly lag?: number;
  readonly alarm?: string;
  readonly hash?: string;
  readonly maxLearners?: number;
  readonly spec?: Partial<EtcdMember['spec']>;
  readonly pod?: PodView;
}

const entry = (n: number, is: Is): EtcdMemberEntry => ({
  id: id(n),
  name: is.fresh || is.as === 'awaited' ? '' : name(n),
  peerURLs: [url(n)],
  isLearner: is.as === 'learner' || is.as === 'awaited',
});

function view(n: number, is: Is, leader: number, list: string): MemberView {
  const votes = (is.as ?? 'voter') === 'voter' || is.voted === true;
  const made = aMember({
    spec: { bootstrap: n === 1, initialCluster: list, ...is.spec },
    status: {
      ...(is.fresh ? {} : { memberID: id(n) }),
      isVoter: votes,
      conditions: is.evidence ? [condition('Ready', 'False', is.evidence)] : is.down || !votes ? [] : READY,
    },
    deleting: is.leaving ?? false,
  });
  const up = !is.down && !is.fresh;
  return {
    object: {
      ...made,
      metadata: { ...made.metadata, name: name(n), uid: `uid-${n}`, creationTimestamp: at(is.ageMs ?? DAY - n) },
    },
    pod: is.pod ?? {
      is: 'present',
      ip: `10.0.0.${n}`,
      ready: up && votes,
      startedAt: NOW - 1_000,
      runningSince: NOW - 1_000,
      maxLearners: is.maxLearners ?? 8,
    },
    ...(up && {
      self: {
        id: id(n),
        clusterID: CLUSTER_ID,
        leader: id(leader),
        isLearner: is.as === 'learner',
        version: '3.6.16',
        alarms: is.alarm ? [is.alarm] : [],
        databaseBytes: 0,
        term: 3,
        applied: 10_000 - (is.lag ?? 0),
        ...(is.hash !== undefined && { hash: is.hash }),
      },
    }),
  };
}

interface More {
  readonly replicas?: number;
  readonly leader?: number;
  readonly spec?: Partial<EtcdClusterSpec>;
  readonly status?: EtcdClusterStatus;
  readonly etcd?: Observed['etcd'];
  readonly alarms?: readonly { readonly id: string; readonly alarm: string }[];
  readonly strangers?: readonly EtcdMemberEntry[];
}

/** A cluster with these members; what is not said is as it should be. */
function world(members: readonly Is[], more: More = {}): Observed {
  const replicas = more.replicas ?? members.length;
  const spec = { replicas, ...more.spec };
  const listed = members.flatMap((is, i) => (is.as === 'unlisted' ? [] : [entry(i + 1, is)]));
  const entries = [...listed, ...(more.strangers ?? [])];
  const cluster = aCluster({
    spec,
    status: { ...FORMED, observed: targetOf(aCluster({ spec }).spec, FORMED), membersNamed: 9, ...more.status },
  });
  const views = members.flatMap((is, i) =>
    is.as === 'awaited' ? [] : [view(i + 1, is, more.leader ?? 1, joinList(entries))],
  );
  const floor = quorumOf(
    Math.max(views.filter((v) => v.object.status?.isVoter && !v.object.metadata.deletionTimestamp).length, replicas),
  );
  const withUid = <T extends { readonly metadata: object }>(object: T): T => ({
    ...object,
    metadata: { ...object.metadata, uid: 'some-uid' },
  });
  return {
    now: NOW,
    refusal: undefined,
    cluster,
    services: {
      headless: { is: 'ours', object: withUid(headlessService(cluster)) },
      client: { is: 'ours', object: withUid(clientService(cluster)) },
    },
    budget: { is: 'ours', object: withUid(budget(cluster, floor)) },
    seed: { is: 'absent' },
    members: views,
    etcd: more.etcd ?? { is: 'answers', clusterID: CLUSTER_ID, members: entries, alarms: more.alarms ?? [] },
    quarantined: [],
    images: { repository: 'quay.io/coreos/etcd', allowed: [] },
  };
}

const stepsOf = (o: Observed): readonly string[] =>
  decide(o).steps.map((s) => {
    if (s.do === 'create') return `create ${s.object.metadata.name}`;
    if (s.do === 'call') return `${s.call.name} ${s.call.target}`;
    if (s.do === 'delete') return `delete ${s.what.name}`;
    return `${s.do} ${s.to.name} ${JSON.stringify(s.fields)}`;
  });

const up: Is = {};
const down: Is = { down: true };
const lost: Is = { down: true, evidence: EVIDENCE.dataLost };
const learner: Is = { as: 'learner' };
const joining: Is = { as: 'learner', fresh: true, ageMs: 2_000 };
const awaited: Is = { as: 'awaited' };
const parked: Is = { down: true, spec: { dormant: true }, pod: { is: 'absent' } };
const silent: Observed['etcd'] = { is: 'silent', why: 'no leader' };
const list = (...members: readonly Is[]): string => joinList(members.map((is, i) => entry(i + 1, is)));
const repair = (count: number, secondsAgo: number) => ({
  repair: { count, last: at(secondsAgo * 1000), generation: 1 },
});

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['all is well', world([up, up, up]), 'steady', []],
    // growth
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
      'the spec was edited before the joining member has started',
      world([up, up, { ...joining, spec: { version: '3.6.99' } }]),
      'rebuildJoining',
      [`delete ${name(3)}`],
    ],
    [
      'the joining member cannot start',
      world([up, up, { ...joining, evidence: EVIDENCE.crashLooping }]),
      'replaceLost',
      [`delete ${name(3)}`],
    ],
    [
      'a member of the earlier operator is half made: etcd is told',
      world([up, up, { as: 'unlisted', fresh: true, spec: { initialCluster: '' } }]),
      'completePending',
      [`addLearner ${name(3)}`],
    ],
    [
      'and then it is told whom to join',
      world([up, up, { as: 'learner', fresh: true, spec: { initialCluster: '' } }]),
      'completePending',
      [`patch ${name(3)} ${JSON.stringify({ spec: { initialCluster: list(up, up, joining) } })}`],
    ],
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
      'a growth is taken back before anybody started',
      world([up, awaited], { replicas: 1 }),
      'removeStranger',
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
    ['another is down: who is needed stays', world([up, down, { leaving: true }]), 'waitForMembers', []],
    [
      'two are being deleted: one after the other',
      world([up, { leaving: true }, { leaving: true }]),
      'removeLeaving',
      [`remove ${name(2)}`],
    ],
    [
      'all are being deleted: the data stays',
      world([{ leaving: true }, { leaving: true }, { leaving: true }]),
      'waitForMembers',
      [],
    ],
    [
      'one of the two is down: it goes first',
      world([up, { leaving: true }, { leaving: true, down: true }]),
      'removeLeaving',
      [`remove ${name(3)}`],
    ],
    ['the only voter stays', world([{ leaving: true }], { replicas: 1 }), 'waitForMembers', []],
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
      'forget',
      [`delete ${name(3)}`],
    ],
    [
      'most of those that voted are not on the list: it is not believed',
      world([up, { ...down, as: 'unlisted', voted: true }, { ...down, as: 'unlisted', voted: true }]),
      'forget',
      [],
    ],
    [
      'one of two that voted is not on the list: it is not believed',
      world([up, { ...down, as: 'unlisted', voted: true }]),
      'forget',
      [],
    ],
    [
      'one that is not on the list answers for the cluster',
      world([up, up, { as: 'unlisted', voted: true }]),
      'forget',
      [],
    ],
    [
      'a learner that was taken from the list',
      world([up, { as: 'unlisted', fresh: true }]),
      'forget',
      [`delete ${name(2)}`],
    ],
    [
      'a voter without an object, at an address of ours',
      world([up, up, up], { strangers: [{ ...entry(7, up), name: 'db-zzzzz' }] }),
      'removeStranger',
      ['remove db-zzzzz'],
    ],
    [
      'a voter without an object, at an address that is not ours',
      world([up, up, up], { strangers: [{ ...entry(7, up), peerURLs: ['http://else.where:2380'] }] }),
      'steady',
      [],
    ],
    // repair
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
    // parking
    [
      'parked: all at once',
      world([up, up], { replicas: 0 }),
      'park',
      [1, 2].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    [
      'parked: nothing is protected, and nothing is done',
      world([parked, parked], { replicas: 0, etcd: { is: 'notAsked' } }),
      'repairBudget',
      ['delete db'],
    ],
    [
      'woken: all of them, also those that are too many',
      world([parked, parked, parked], { replicas: 1, etcd: { is: 'notAsked' } }),
      'repairBudget',
      ['delete db'],
    ],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

test('leadership is moved by the leader itself, also when it is the one whose data is wrong', () => {
  const wrong: Is = { leaving: true, alarm: 'CORRUPT' };
  const step = decide(world([up, up, wrong], { leader: 3, alarms: [{ id: id(3), alarm: 'CORRUPT' }] })).steps[0];
  expect(step?.do === 'call' && step.call).toMatchObject({ name: 'moveLeader', endpoints: ['http://10.0.0.3:2379'] });
});
