/** Which member may be disrupted when, and what holds for every cluster. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { blockedBy, type Disruption, type JoinerView, type QuorumView, type VoterView } from './disruption.ts';
import { quorumOf } from './quorum.ts';

const voter = (id: string, change: Partial<VoterView> = {}): VoterView => ({
  id,
  name: `db-${id}`,
  healthy: true,
  responds: true,
  podReady: true,
  readyVoter: true,
  object: 'present',
  failed: false,
  data: 'present',
  policyRecorded: true,
  ...change,
});
const down = (id: string, change: Partial<VoterView> = {}): VoterView =>
  voter(id, { healthy: false, responds: false, podReady: false, readyVoter: false, ...change });
const lost = (id: string, change: Partial<VoterView> = {}): VoterView => down(id, { failed: true, ...change });
const MINUTE = 60_000;
const joiner = (id: string, change: Partial<JoinerView> = {}): JoinerView => ({ ...down(id), ...change });
const cluster = (
  voters: readonly VoterView[],
  joiners: readonly JoinerView[] = [],
  desired = voters.length + joiners.length,
): QuorumView => ({ desired, leader: 'a', voters, joiners });
const leaderless = (quorum: QuorumView): QuorumView => ({ ...quorum, leader: undefined });
const three = cluster([voter('a'), voter('b'), voter('c')]);

const ALL: readonly Disruption[] = [
  'remove',
  'scaleDown',
  'replace',
  'restart',
  'reconnect',
  'defragment',
  'discardJoiner',
];
const BY_NAME: readonly Disruption[] = ['restartExpired', 'remake', 'rejoin'];
const DELETES: readonly Disruption[] = ['scaleDown', 'replace', 'discardJoiner'];

type Row = [sentence: string, quorum: QuorumView, kinds: readonly Disruption[], reason: string | undefined];

/** A member that an edit has broken, and that another one is to replace: `b`. */
function rejoinRows(): readonly Row[] {
  const memory: Partial<VoterView> = { data: 'memory' };
  const rows: readonly [string, QuorumView, string | undefined][] = [
    ['when two others have it', cluster([voter('a', memory), down('b', memory), voter('c', memory)]), undefined],
    [
      'also while another of five is down, too',
      cluster([voter('a', memory), down('b', memory), down('c', memory), voter('d', memory), voter('e', memory)]),
      undefined,
    ],
    ['not of the only voter', leaderless(cluster([down('b', memory)])), 'NoLeader'],
    ['not of the last voter that is healthy', cluster([voter('b', memory)]), 'StillServing'],
    [
      'not of one of two: there is no quorum without it',
      cluster([voter('a', memory), down('b', memory)]),
      'QuorumAtRisk',
    ],
    [
      'not while another of three is down, too',
      cluster([voter('a', memory), down('b', memory), down('c', memory)]),
      'QuorumAtRisk',
    ],
    [
      'not while another of three is being deleted',
      cluster([voter('a', memory), down('b', memory), voter('c', { ...memory, object: 'terminating' })]),
      'QuorumAtRisk',
    ],
    [
      'not while the Pod of another of three is being deleted',
      cluster([voter('a', memory), down('b', memory), voter('c', { ...memory, podReady: false })]),
      'QuorumAtRisk',
    ],
    [
      'not while it responds: it may be needed',
      cluster([voter('a', memory), down('b', { ...memory, responds: true }), voter('c', memory)]),
      'StillServing',
    ],
    [
      'not just after it has started',
      cluster([voter('a', memory), down('b', { ...memory, runningForMs: 1_000 }), voter('c', memory)]),
      'ReadinessUnknown',
    ],
    [
      'not when the next Pod would be refused',
      cluster([voter('a', memory), down('b', { ...memory, podBlockedBy: 'a webhook' }), voter('c', memory)]),
      'PodNotAllowed',
    ],
    ['not of a voter on a volume', cluster([voter('a'), down('b'), voter('c')]), 'DataOnVolume'],
    ['but of a learner on a volume', cluster([voter('a'), voter('c')], [joiner('b')]), undefined],
    [
      'not of a learner while the voters are no quorum',
      cluster([voter('a'), down('c')], [joiner('b')]),
      'QuorumAtRisk',
    ],
  ];
  return rows.map(([when, quorum, reason]) => [
    `data in memory may be lost with a broken member: ${when}`,
    quorum,
    ['rejoin'],
    reason,
  ]);
}

/** `b` is the member. */
describe.each<Row>([
  ['a healthy voter may be removed or restarted', three, ['remove', 'scaleDown', 'restart', 'reconnect'], undefined],
  ['a healthy voter may be defragmented', three, ['defragment'], undefined],
  ['the only voter may be defragmented', cluster([voter('b')]), ['defragment'], undefined],
  [
    'no voter is defragmented while another one is not healthy or not ready',
    cluster([voter('a'), voter('b'), down('c')]),
    ['defragment'],
    'MembersNotReady',
  ],
  [
    'no voter is defragmented while a member is missing',
    cluster([voter('a'), voter('b')], [], 3),
    ['defragment'],
    'Scaling',
  ],
  [
    'no voter is defragmented whose PVC is being deleted',
    cluster([voter('a'), voter('b', { data: 'terminating' }), voter('c')]),
    ['defragment'],
    'PVCTerminating',
  ],
  [
    'no voter is defragmented that a snapshot streams from; any other disruption goes on',
    cluster([voter('a'), voter('b', { streaming: 'a snapshot streams' }), voter('c')]),
    ['defragment'],
    'SnapshotRunning',
  ],
  [
    'no voter is defragmented while other clusters have all places; any other disruption goes on',
    cluster([voter('a'), voter('b', { fleet: 'other clusters are being defragmented' }), voter('c')]),
    ['defragment'],
    'FleetBusy',
  ],
  [
    'and may be restarted meanwhile',
    cluster([voter('a'), voter('b', { fleet: 'other clusters are being defragmented' }), voter('c')]),
    ['restart', 'remove', 'scaleDown'],
    undefined,
  ],
  [
    'a member that is busy is left alone: it is neither lost nor broken',
    cluster([voter('a'), down('b', { busy: 'is being defragmented' }), voter('c')]),
    [...ALL, ...BY_NAME],
    'MemberBusy',
  ],
  [
    'nor is it removed because a user or the operator deletes it, or because its data differs',
    cluster([voter('a'), lost('b', { busy: 'is being defragmented', object: 'terminating' }), voter('c')]),
    ALL,
    'MemberBusy',
  ],
  [
    'while another member is busy, no voter goes',
    cluster([voter('a'), voter('b'), down('c', { busy: 'is being defragmented' })]),
    ['remove', 'scaleDown'],
    'QuorumAtRisk',
  ],
  ['a healthy voter is not replaced', three, ['replace'], 'NoFailureEvidence'],
  ['a voter is not discarded as a joiner', three, ['discardJoiner'], 'Joined'],
  [
    'nothing is disrupted while members do not agree on a leader',
    leaderless(cluster([voter('a'), voter('b'), voter('c')])),
    ALL,
    'NoLeader',
  ],
  ['a member that etcd does not list is not disrupted', cluster([voter('a'), voter('c')]), ALL, 'NotListed'],
  [
    'a lost member is removed and replaced',
    cluster([voter('a'), lost('b'), voter('c')]),
    ['remove', 'scaleDown', 'replace'],
    undefined,
  ],
  [
    'a lost member is not replaced while too many of other clusters were',
    cluster([voter('a'), lost('b', { rateLimit: 'too many' }), voter('c')]),
    ['replace'],
    'ReplacementRateLimited',
  ],
  [
    'a lost member that a user deletes is removed however many were replaced',
    cluster([voter('a'), lost('b', { rateLimit: 'too many', object: 'terminating' }), voter('c')]),
    ['remove', 'scaleDown'],
    undefined,
  ],
  [
    'two lost members of five do not block each other',
    cluster([voter('a'), lost('b'), lost('c'), voter('d'), voter('e')]),
    ['remove', 'scaleDown', 'replace'],
    undefined,
  ],
  [
    'a member that is down without evidence waits for the others',
    cluster([voter('a'), down('b'), down('c'), voter('d'), voter('e')]),
    ['remove', 'scaleDown', 'replace'],
    'QuorumAtRisk',
  ],
  [
    'a member that is down without evidence may come back',
    cluster([voter('a'), down('b'), voter('c')]),
    ['replace'],
    'NoFailureEvidence',
  ],
  [
    'a member that has recovered is not replaced, although its EtcdMember still has the evidence',
    cluster([voter('a'), voter('b', { failed: true }), voter('c')]),
    ['replace'],
    'NoFailureEvidence',
  ],
  [
    'a member that is down and being deleted is removed, if the others are a quorum',
    cluster([voter('a'), down('b', { object: 'terminating' }), lost('c'), voter('d'), voter('e')]),
    ['remove'],
    undefined,
  ],
  [
    'a lost member is kept while the others are no quorum',
    cluster([voter('a'), lost('b'), lost('c')]),
    ['remove', 'scaleDown', 'replace'],
    'QuorumAtRisk',
  ],
  ['the only voter is not removed', cluster([voter('b')]), ['remove', 'scaleDown'], 'LastVoter'],
  ['the only voter may restart: its downtime is unavoidable', cluster([voter('b')]), ['restart'], undefined],
  [
    'the last voter that is not being deleted is not removed',
    cluster([voter('a', { object: 'terminating' }), voter('b'), voter('c', { object: 'missing' })]),
    ['remove', 'scaleDown'],
    'LastVoter',
  ],
  [
    'a failed replacement delays the next',
    cluster([voter('a'), lost('b', { backOff: 'the next attempt is in 30 s' }), voter('c')]),
    ['replace'],
    'ReplacementBackOff',
  ],
  [
    'no restart while another voter is down',
    cluster([voter('a'), voter('b'), down('c')]),
    ['restart'],
    'MembersNotReady',
  ],
  [
    'no restart while another voter is not ready',
    cluster([voter('a'), voter('b'), voter('c', { podReady: false })]),
    ['restart', 'reconnect'],
    'MembersNotReady',
  ],
  [
    'no restart while another is not recorded as a ready voter, unless for new connections',
    cluster([voter('a'), voter('b'), voter('c', { readyVoter: false })]),
    ['restart'],
    'MembersNotReady',
  ],
  [
    'a restart for new connections does not wait for a member that is being deleted',
    cluster([voter('a'), voter('b'), voter('c', { readyVoter: false, object: 'terminating' })]),
    ['reconnect'],
    undefined,
  ],
  ['no restart while members are added', cluster(three.voters, [], 4), ['restart'], 'Scaling'],
  ['no restart while members are removed', cluster(three.voters, [], 2), ['restart'], 'Scaling'],
  ['no restart while a learner catches up', cluster(three.voters, [joiner('d')]), ['restart'], 'MembersNotReady'],
  [
    'no restart while a learner has not started for nine minutes',
    cluster(three.voters, [joiner('d', { neverStartedForMs: 9 * MINUTE })]),
    ['restart'],
    'MembersNotReady',
  ],
  [
    'a learner that has not started for ten minutes holds up no restart, nor do members that wait for it',
    cluster(three.voters, [joiner('d', { neverStartedForMs: 10 * MINUTE })], 5),
    ['restart'],
    undefined,
  ],
  [
    'it does, if the others are no quorum without the restarted member',
    cluster([voter('a'), voter('b')], [joiner('d', { neverStartedForMs: 10 * MINUTE })]),
    ['restart'],
    'QuorumAtRisk',
  ],
  [
    'it is removed first, if fewer members are wanted',
    cluster(three.voters, [joiner('d', { neverStartedForMs: 10 * MINUTE })], 3),
    ['restart'],
    'Scaling',
  ],
  [
    'its own Pod is replaced, although it has no data yet',
    cluster([voter('a')], [joiner('b', { neverStartedForMs: 10 * MINUTE, data: 'memory' })]),
    ['restart'],
    undefined,
  ],
  [
    'no restart while the PVC is being deleted: only the Pod keeps the data',
    cluster([voter('a'), voter('b', { data: 'terminating' }), voter('c')]),
    ['restart', 'reconnect'],
    'PVCTerminating',
  ],
  [
    'a PVC that the cache does not have yet holds up only the restart that can wait',
    cluster([voter('a'), voter('b', { data: 'missing' }), voter('c')]),
    ['reconnect'],
    'PVCMissing',
  ],
  [
    'data in memory may be lost when two others have it',
    cluster([voter('a'), voter('b', { data: 'memory' }), voter('c')]),
    ['restart'],
    undefined,
  ],
  [
    'data in memory is kept when fewer have it',
    cluster([voter('a'), voter('b', { data: 'memory' })]),
    ['restart', 'reconnect'],
    'DataInMemory',
  ],
  [
    'no restart when the new Pod could not mount its Secrets',
    cluster([voter('a'), voter('b', { mountBlockedBy: 'certificates are missing' }), voter('c')]),
    ['restart', 'reconnect'],
    'SecretsMissing',
  ],
  [
    'a member that serves over old connections is not restarted while its peers refuse new ones',
    cluster([voter('a', { healthy: false }), voter('b', { peersExpired: true }), voter('c', { healthy: false })]),
    ['restartExpired'],
    'StillServing',
  ],
  [
    'the last member with expired certificates is restarted when all others are healthy with new ones',
    cluster([voter('a'), voter('b', { peersExpired: true }), voter('c')]),
    ['restartExpired'],
    undefined,
  ],
  [
    'the only member has no peers that would refuse it',
    cluster([voter('b', { peersExpired: true })]),
    ['restartExpired'],
    undefined,
  ],
  [
    'a member that is not ready has no connection to lose, also while others are not ready',
    cluster([down('a'), voter('b', { peersExpired: true, podReady: false }), down('c')]),
    ['restartExpired'],
    undefined,
  ],
  [
    'a member that has just started, or whose node was cut off, may be part of a quorum that the kubelet has not probed yet',
    cluster([voter('a'), voter('b', { podReady: false, unreadyForMs: 1_000 }), down('c')]),
    ['restartExpired'],
    'ReadinessUnknown',
  ],
  [
    'a member that is not ready may become part of a quorum with one whose Pod was just created',
    cluster([voter('a', { podReady: false, runningForMs: 1_000 }), voter('b', { podReady: false }), down('c')]),
    ['restartExpired'],
    'ReadinessUnknown',
  ],
  [
    'a member whose client port alone has expired restarts while all are ready, and waits for those that are not',
    cluster([voter('a'), voter('b'), voter('c', { podReady: false })]),
    ['restartExpired'],
    'MembersNotReady',
  ],
  [
    'no restart when the new Pod would not be allowed',
    cluster([voter('a'), voter('b', { podBlockedBy: 'the image is not allowed' }), voter('c')]),
    ['restart', 'reconnect'],
    'PodNotAllowed',
  ],
  ...rejoinRows(),
  [
    'a learner has no vote: it is removed while a voter is down',
    cluster([voter('a'), down('c')], [joiner('b', { neverStartedForMs: 0 })]),
    ['remove', 'scaleDown', 'discardJoiner'],
    undefined,
  ],
  [
    'a learner that has started is not discarded',
    cluster([voter('a'), voter('c')], [joiner('b')]),
    ['discardJoiner'],
    'Joined',
  ],
  [
    'a lost learner is replaced while a voter is down',
    cluster([voter('a'), down('c')], [joiner('b', { failed: true })]),
    ['replace'],
    undefined,
  ],
  [
    'a voter without the deletionPolicy of its cluster is removed from etcd, and not deleted',
    cluster([voter('a'), voter('b', { policyRecorded: false }), voter('c')]),
    ['remove', 'restart'],
    undefined,
  ],
])('%s', (_, quorum, kinds, reason) => {
  test.each(kinds)('%s', (kind) => {
    expect(blockedBy(quorum, BY_NAME.includes(kind) ? 'db-b' : 'b', kind)?.reason).toBe(reason);
  });
});

test.each(DELETES)('no EtcdMember is deleted before it has the deletionPolicy of its cluster: %s', (kind) => {
  const member = { failed: kind === 'replace', policyRecorded: false };
  const quorum =
    kind === 'discardJoiner'
      ? cluster([voter('a')], [joiner('b', { ...member, neverStartedForMs: 0 })])
      : cluster([voter('a'), down('b', { ...member, object: 'present' }), voter('c')]);
  expect(blockedBy(quorum, 'b', kind)?.reason).toBe('DeletionPolicyPending');
});
test('nor is one in memory deleted for a restart', () => {
  const quorum = cluster([voter('a'), voter('b', { data: 'memory', policyRecorded: false }), voter('c')]);
  expect(blockedBy(quorum, 'b', 'restart')?.reason).toBe('DeletionPolicyPending');
});

describe('messages', () => {
  test.each<[string, QuorumView, Disruption]>([
    ['the quorum needs db-c, which is not healthy', cluster([voter('a'), voter('b'), down('c')]), 'remove'],
    ['the quorum needs db-a, db-c, which are not healthy', cluster([down('a'), voter('b'), down('c')]), 'remove'],
    ['db-b, db-c must be ready and healthy first', cluster([voter('a'), down('b'), down('c')]), 'restart'],
    ['etcd does not respond', { ...cluster([]), leader: undefined }, 'restart'],
    ['etcd does not list it', cluster([voter('a')]), 'restart'],
    [
      'until db-d has joined, the others are no quorum without it',
      cluster([voter('a'), voter('b')], [joiner('d', { neverStartedForMs: 10 * MINUTE })]),
      'restart',
    ],
  ])('%s', (message, quorum, kind) => {
    expect(blockedBy(quorum, 'b', kind)?.message).toBe(message);
  });
});

const facts = {
  healthy: fc.boolean(),
  podReady: fc.boolean(),
  readyVoter: fc.boolean(),
  object: fc.constantFrom('present', 'present', 'terminating', 'missing'),
  failed: fc.boolean(),
  data: fc.constantFrom('present', 'present', 'terminating', 'missing', 'memory'),
  policyRecorded: fc.boolean(),
} as const;
/** Half of the members differ from a healthy voter. */
const members = (prefix: string, size: { readonly minLength?: number; readonly maxLength: number }) =>
  fc
    .array(fc.option(fc.record(facts), { freq: 2 }), size)
    .map((list) => list.map((change, i) => voter(`${prefix}${i}`, change ?? {})));
const quorums: fc.Arbitrary<QuorumView> = fc
  .record({
    voters: members('v', { minLength: 1, maxLength: 7 }),
    joiners: members('l', { maxLength: 2 }),
    ages: fc.array(fc.option(fc.integer({ min: 0, max: 20 * MINUTE }), { freq: 2, nil: undefined }), {
      minLength: 2,
      maxLength: 2,
    }),
    more: fc.constantFrom(0, 0, 0, 1, -1),
    led: fc.boolean(),
  })
  .map(({ voters, joiners, ages, more, led }) => ({
    desired: voters.length + joiners.length + more,
    leader: led && voters.some(({ healthy }) => healthy) ? 'v0' : undefined,
    voters,
    joiners: joiners.map((each, i) => {
      const age = ages[i];
      return age === undefined ? each : { ...each, neverStartedForMs: age };
    }),
  }));
const changed = (quorum: QuorumView, id: string, change: Partial<VoterView>): QuorumView => ({
  ...quorum,
  voters: quorum.voters.map((each) => (each.id === id ? { ...each, ...change } : each)),
});
/** Every voter, with every kind of disruption that is allowed for it. */
const allowed = (quorum: QuorumView, kinds: readonly Disruption[] = ALL) =>
  quorum.voters.flatMap((member) =>
    kinds.filter((kind) => blockedBy(quorum, member.id, kind) === undefined).map((kind) => ({ member, kind })),
  );
const always = (name: string, check: (quorum: QuorumView) => void): void =>
  test(name, () => fc.assert(fc.property(quorums, check), { numRuns: 2_000 }));
const healthyOf = (voters: readonly VoterView[]): number => voters.filter(({ healthy }) => healthy).length;

describe('in every cluster', () => {
  always('a removal leaves a healthy quorum of the others', (quorum) => {
    for (const { member } of allowed(quorum, ['remove', 'scaleDown', 'replace'])) {
      const others = quorum.voters.filter((each) => each !== member);
      expect(healthyOf(others)).toBeGreaterThanOrEqual(quorumOf(others.length));
    }
  });

  always(
    'during a restart the other voters are healthy, and a quorum unless two or one are all that is wanted',
    (quorum) => {
      const { voters, joiners } = quorum;
      for (const { member, kind } of allowed(quorum, ['restart', 'reconnect'])) {
        const left = healthyOf(voters.filter((each) => each !== member));
        expect(left).toBe(voters.length - 1);
        if (voters.length > 2 || (kind === 'restart' && joiners.length > 0))
          expect(left).toBeGreaterThanOrEqual(quorumOf(voters.length));
      }
    },
  );

  always('a member rejoins only while a quorum of all voters does without it', (quorum) => {
    for (const member of [...quorum.voters, ...quorum.joiners]) {
      if (blockedBy(quorum, member.name, 'rejoin')) continue;
      const others = quorum.voters.filter((each) => each !== member);
      expect(healthyOf(others)).toBeGreaterThanOrEqual(quorumOf(quorum.voters.length));
      expect(member.policyRecorded).toBe(true);
      expect(member.healthy || member.podReady).toBe(false);
    }
  });

  always('while one voter restarts, no other is disrupted', (quorum) => {
    for (const { member } of allowed(quorum, ['restart', 'reconnect'])) {
      const then = changed(quorum, member.id, { healthy: false, podReady: false, readyVoter: false });
      expect(allowed(then).filter((next) => next.member.id !== member.id)).toEqual([]);
    }
  });

  always('an unhealthy voter never allows what a healthy one did not', (quorum) => {
    for (const other of quorum.voters) {
      const after = changed(quorum, other.id, { healthy: false });
      for (const { member, kind } of allowed(after).filter((each) => each.member.id !== other.id))
        expect(blockedBy(quorum, member.id, kind)).toBeUndefined();
    }
  });

  always('no data is deleted whose policy is not recorded, and none in memory without two other copies', (quorum) => {
    for (const { member, kind } of allowed(quorum)) {
      const keepsData = kind === 'remove' || kind === 'reconnect' || kind === 'defragment';
      if (!keepsData && (kind !== 'restart' || member.data === 'memory')) expect(member.policyRecorded).toBe(true);
      if (kind === 'restart' && member.data === 'memory') expect(healthyOf(quorum.voters)).toBeGreaterThan(2);
    }
  });
});
