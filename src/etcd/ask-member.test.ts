import { expect, test } from 'vitest';
import { askMember, type Expected } from './ask-member.ts';
import { alarmsIn, type MemberStatus } from './maintenance.ts';

const status: MemberStatus = {
  clusterId: 0xcn,
  memberId: 0xan,
  version: '3.6.14',
  leader: 0xbn,
  isLearner: false,
  alarms: alarmsIn(['etcdserver: no leader', 'memberID:10 alarm:CORRUPT ', 'memberID:11 alarm:NOSPACE ']),
  revision: 5n,
  raftTerm: 2n,
  raftIndex: 9n,
  raftAppliedIndex: 8n,
  dbSize: 100,
  dbSizeInUse: 50,
};
const asked = (expected: Expected, is = status) =>
  askMember(
    { status: () => Promise.resolve({ ok: true, value: is }) },
    { endpoint: 'http://a:2379', timeoutMs: 1 },
    expected,
  );
const [cluster, member] = ['000000000000000c', '000000000000000a'];

test.each<[string, Expected, object]>([
  ['nothing is recorded yet', {}, { is: 'answers' }],
  ['both ids are as recorded', { clusterID: cluster, memberID: member }, { is: 'answers' }],
  ['another cluster has its address', { clusterID: member, memberID: member }, { is: 'otherCluster' }],
  ['another member has its address', { clusterID: cluster, memberID: cluster }, { is: 'otherMember', id: member }],
])('%s', async (_, expected, answer) => {
  expect(await asked(expected)).toMatchObject(answer);
});

test('a member reports ids as objects record them, and of all alarms its own', async () => {
  expect(await asked({})).toEqual({
    is: 'answers',
    status,
    self: {
      id: member,
      clusterID: cluster,
      leader: '000000000000000b',
      isLearner: false,
      version: '3.6.14',
      alarms: ['CORRUPT'],
      databaseBytes: 100,
      databaseBytesInUse: 50,
      term: 2,
      applied: 8,
    },
  });
  expect(await asked({}, { ...status, leader: 0n })).toMatchObject({ self: { leader: undefined } });
});

test('a call that fails reports its error', async () => {
  const error = { kind: 'unreachable', message: 'connection refused' } as const;
  const etcd = { status: () => Promise.resolve({ ok: false, error } as const) };
  const answer = await askMember(etcd, { endpoint: 'http://a:2379', timeoutMs: 1 }, {});
  expect(answer).toEqual({ is: 'failed', message: 'connection refused' });
});
