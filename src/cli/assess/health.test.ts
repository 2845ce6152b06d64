/** One row per sentence that the first lines of `kubectl etcd status` can have. */
import { describe, expect, test } from 'vitest';
import { condition } from '../../../test/support/builders/builders.ts';
import { facts, HEALTHY, member } from '../../../test/support/builders/plugin.ts';
import type { ClusterFacts } from './facts.ts';
import { type Health, judge } from './health.ts';
import { quorum } from './quorum.ts';

const failed = { is: 'failed', message: 'connection refused' } as const;
const notAsked = { is: 'notAsked', message: 'you lack the permission to get secrets' } as const;
const silent = member(1, { answer: failed });

const lost = condition('Available', 'False', 'QuorumLost', 'quorum lost: 1 of 3 voters are ready');
const withConditions = (...changed: (typeof HEALTHY)[number][]) => ({
  conditions: HEALTHY.map((each) => changed.find(({ type }) => type === each.type) ?? each),
});

describe.each<[sentence: string, given: ClusterFacts, health: Health, says: string]>([
  ['three of three', facts(), 'healthy', 'All 3 voters are healthy: 1 more may fail without an outage.'],
  [
    'one of one: any failure is an outage',
    facts({ members: [member(1)] }),
    'healthy',
    'The only voter is healthy: no further voter may fail.',
  ],
  [
    'a member that does not respond costs the margin',
    facts({ members: [member(1), member(2), member(3, { answer: failed })] }),
    'degraded',
    'A quorum serves, and 1 of 3 voters is not healthy: no further voter may fail.',
  ],
  [
    'two members without a leader have lost the quorum, whatever the operator reported before',
    facts({ members: [member(1, { answer: { leader: undefined } }), member(2, { answer: failed }), silent] }),
    'unavailable',
    'Quorum lost: 0 of 3 voters are healthy, and 2 are needed. etcd serves neither writes nor linearizable reads.',
  ],
  [
    'a follower proves that there is a quorum although two others did not respond to the plugin',
    facts({ members: [member(1), member(2, { answer: failed }), member(3, { answer: failed })] }),
    'degraded',
    'A quorum serves, and 2 of 3 voters are not healthy: no further voter may fail.',
  ],
  [
    'a quorum that has come back is not reported as lost because of an old condition',
    facts({ status: withConditions(lost) }),
    'healthy',
    'All 3 voters are healthy: 1 more may fail without an outage.',
  ],
  [
    'no member responds, and the operator reports a quorum: neither is taken for the truth',
    facts({ members: [silent], list: failed }),
    'unknown',
    'The operator reports that a quorum is available, but no member responded to this command: connection refused.',
  ],
  [
    'no member responds, and the operator reports the loss',
    facts({ members: [silent], list: failed, status: withConditions(lost) }),
    'unavailable',
    'Quorum lost: 1 of 3 voters are ready.',
  ],
  [
    'a user without permissions gets what the operator reports, and by whom',
    facts({ members: [1, 2, 3].map((index) => member(index, { answer: notAsked })), list: notAsked }),
    'healthy',
    'All 3 voters are healthy, as the operator reports: 1 more may fail without an outage.',
  ],
  [
    'NOSPACE is worse than a member that is down',
    facts({
      members: [member(1, { answer: { alarms: ['NOSPACE'] } }), member(2), member(3, { answer: failed })],
      status: withConditions(condition('Degraded', 'True', 'MembersUnhealthy', 'db-aaaa3 is down')),
    }),
    'degraded',
    'etcd rejects writes: the database of db-aaaa1 has reached its quota (NOSPACE). Delete keys, then run: kubectl etcd compact, and kubectl etcd defrag, which disarms the alarm when there is room.',
  ],
  [
    'the reason of the operator for a degraded cluster',
    facts({
      status: withConditions(condition('Degraded', 'True', 'PVCTerminating', 'the PVC of db-aaaa1 is being deleted')),
    }),
    'degraded',
    'The PVC of db-aaaa1 is being deleted.',
  ],
  [
    'a rollout that has failed, although all voters are healthy',
    facts({ status: withConditions(condition('Progressing', 'False', 'RolloutFailed', 'db-aaaa2 was not ready')) }),
    'degraded',
    'A quorum serves, and the operator is stuck (RolloutFailed): db-aaaa2 was not ready.',
  ],
  [
    'an edit that waits for a window is nothing wrong',
    facts({ status: withConditions(condition('Progressing', 'False', 'WaitingForWindow', 'it opens in 3h')) }),
    'healthy',
    'All 3 voters are healthy: 1 more may fail without an outage.',
  ],
  [
    'a cluster that grows',
    facts({ status: withConditions(condition('Progressing', 'True', 'Scaling', 'waits for learner db-aaaa3')) }),
    'progressing',
    'Waits for learner db-aaaa3.',
  ],
  [
    'a paused cluster',
    facts({
      members: [],
      list: failed,
      status: withConditions(condition('Available', 'False', 'Paused', 'paused: the data is kept')),
    }),
    'paused',
    'Paused: the data is kept.',
  ],
  [
    'before the first member responds',
    facts({
      members: [],
      list: failed,
      status: withConditions(condition('Available', 'False', 'WaitingForSeed', 'waits for the Pod of db-aaaa1')),
    }),
    'unavailable',
    'Waits for the Pod of db-aaaa1.',
  ],
  [
    'an EtcdCluster that is being deleted',
    facts({ deleting: true }),
    'unavailable',
    'The EtcdCluster is being deleted.',
  ],
])('%s', (_, given, health, says) => {
  test(health, () => expect(judge(given)).toEqual({ health, summary: says }));
});

test('an EtcdCluster without a status was never reconciled', () => {
  const { cluster, ...rest } = facts({ members: [] });
  const { status: _, ...bare } = cluster;
  expect(judge({ ...rest, cluster: bare }).summary).toContain('check that it runs');
});

describe('the quorum', () => {
  test('counts by the member list of etcd: a learner has no vote', () => {
    const given = facts();
    const listed = given.list.is === 'answers' ? given.list.members : [];
    const members = listed.map((entry, index) => ({ ...entry, isLearner: index === 2 }));
    expect(quorum({ ...given, list: { is: 'answers', confirmed: true, members } })).toMatchObject({
      voters: 2,
      needed: 2,
      margin: 0,
    });
  });
  test('counts a voter that etcd lists and that has no EtcdMember', () => {
    const given = facts();
    const listed = given.list.is === 'answers' ? given.list.members : [];
    const foreign = { id: 'f00d', name: 'mirror', peerURLs: [], isLearner: false };
    const list = { is: 'answers', confirmed: true, members: [...listed, foreign] } as const;
    expect(quorum({ ...given, list })).toMatchObject({ voters: 4, needed: 3, healthy: 3, margin: 0 });
  });
  test('does not count a member that lags behind by more than etcd keeps for it', () => {
    expect(quorum(facts({ members: [member(1), member(2), member(3, { answer: { applied: 1 } })] }))).toMatchObject({
      healthy: 2,
      margin: 0,
    });
  });
  test('does not count a response with the id of another member twice', () => {
    expect(
      quorum(facts({ members: [member(1), member(2), member(3, { answer: { id: 'beef000000000002' } })] })),
    ).toMatchObject({
      healthy: 2,
    });
  });
});
