import { expect, test } from 'vitest';
import { aCluster, aMember, FORMED, MEMBER_ID, NOW, SEED_NAME } from '../../../test/support/builders/builders.ts';
import { down, type Is, id, learner, name, up, world } from '../../../test/support/builders/members.ts';
import type { EtcdClusterStatus, MemberEntry } from '../../api/etcd-cluster-status.ts';
import { isMinor } from './coalesce.ts';
import { coarsePercent, coarseSize, membersStatus } from './members-status.ts';
import type { Gathered, MemberView, SelfReport } from './observed.ts';

const MI = 1024 ** 2;

test.each([
  ['small sizes are all 16Mi', 1, undefined, 16],
  ['rounded up to the next power of two', 17, undefined, 32],
  ['exactly one', 64, undefined, 64],
  ['kept while the size fits', 40, 64, 64],
  ['kept when the size just fits', 64, 64, 64],
  ['kept after a small defragmentation', 17, 64, 64],
  ['lowered when most of it was freed', 16, 64, 16],
  ['raised when the size does not fit any more', 65, 64, 128],
  ['the minimum is kept', 0, 16, 16],
])('database size: %s', (_what, size, before, reported) => {
  expect(coarseSize(size * MI, before === undefined ? undefined : before * MI)).toBe(reported * MI);
});

test.each([
  [0, undefined, 0],
  [39.9, undefined, 30],
  [41, 30, 40],
  [39.9, 40, 40],
  [35, 40, 40],
  [34.9, 40, 30],
  [49.9, 40, 40],
  [100, 90, 100],
])('%d %% of the quota, after %s was reported, is %i', (percent, before, reported) => {
  expect(coarsePercent(percent, before)).toBe(reported);
});

const BEFORE = '2026-01-01T00:00:00Z';
const LATER = '2026-01-01T12:00:00Z';
const previous: MemberEntry = {
  name: SEED_NAME,
  id: MEMBER_ID,
  role: 'leader',
  version: '3.6.16',
  alarms: ['NOSPACE'],
  since: BEFORE,
  databaseSize: '64Mi',
  quotaUsedPercent: 20,
};
const { alarms: _a, databaseSize: _d, quotaUsedPercent: _q, version: _v, ...bare } = previous;
const report: SelfReport = {
  id: MEMBER_ID,
  clusterID: 'c',
  leader: MEMBER_ID,
  isLearner: false,
  version: '3.6.16',
  alarms: [],
  databaseBytes: 60 * MI,
  databaseBytesInUse: 60 * MI,
  term: 2,
  applied: 10,
};
const follower = { ...report, leader: 'other' };

function entryAfter(before: MemberEntry, ready: boolean, self?: SelfReport): MemberEntry | undefined {
  const object = aMember({ status: { memberID: MEMBER_ID } });
  const member: MemberView = { object, pod: { is: 'present', ready, maxLearners: 8 }, self };
  const cluster = aCluster({ status: { ...FORMED, members: [before] } });
  const o: Partial<Gathered> = { now: NOW, cluster, members: [member], etcd: { is: 'notAsked' } };
  return membersStatus(o as Gathered, LATER).members?.[0];
}

const figures = { databaseSize: '64Mi', quotaUsedPercent: 10, version: '3.6.16' };

test.each<[string, () => MemberEntry | undefined, MemberEntry]>([
  ['one late response keeps the previous figures', () => entryAfter(previous, true), previous],
  ['one late response of a member that never had figures', () => entryAfter(bare, true), bare],
  [
    'a Pod that is not ready has no figures',
    () => entryAfter(previous, false),
    { ...bare, role: 'unknown', since: LATER },
  ],
  [
    'the role is known again, and the alarm is disarmed',
    () => entryAfter({ ...previous, role: 'unknown', quotaUsedPercent: 0 }, true, report),
    { ...bare, ...figures, since: LATER },
  ],
  [
    'another role is new, and so is an alarm',
    () => entryAfter(bare, true, { ...follower, alarms: ['CORRUPT'] }),
    { ...bare, ...figures, role: 'follower', alarms: ['CORRUPT'], since: LATER },
  ],
  [
    'a learner',
    () => entryAfter(bare, true, { ...follower, isLearner: true }),
    { ...bare, ...figures, role: 'learner', since: LATER },
  ],
])('a member: %s', (_what, entry, expected) => {
  expect(entry()).toStrictEqual(expected);
});

/** Its Pod is ready, and its response is late. */
const late: Is = { down: true, pod: { is: 'present', ready: true, maxLearners: 8 } };
const noPod: Is = { down: true, pod: { is: 'absent' } };
const had = (...roles: readonly MemberEntry['role'][]) => ({
  status: { members: roles.map((role, i) => ({ name: name(i + 1), id: id(i + 1), role })) },
});

test.each<[string, () => Gathered, readonly string[], string | undefined]>([
  ['all respond', () => world([up, up, learner]), ['leader', 'follower', 'learner'], name(1)],
  [
    'a member has not applied its own promotion yet',
    () => {
      const o = world([up, up, learner]);
      const voters = o.etcd.is === 'answers' ? o.etcd.members.map((each) => ({ ...each, isLearner: false })) : [];
      return o.etcd.is === 'answers' ? { ...o, etcd: { ...o.etcd, members: voters } } : o;
    },
    ['leader', 'follower', 'follower'],
    name(1),
  ],
  [
    'the response of the leader is late',
    () => world([late, up], had('leader', 'follower')),
    ['leader', 'follower'],
    name(1),
  ],
  [
    'the response of the previous leader is late, and another leads',
    () => world([late, up, up], { ...had('leader', 'follower', 'follower'), leader: 2 }),
    ['follower', 'leader', 'follower'],
    name(2),
  ],
  [
    'the response of a learner is late',
    () => world([up, late], had('leader', 'learner')),
    ['leader', 'learner'],
    name(1),
  ],
  ['all responses are late', () => world([late, late], had('follower', 'leader')), ['follower', 'leader'], name(2)],
  [
    'the Pod of the leader is deleted',
    () => world([noPod, up], { ...had('leader', 'follower'), leader: 2 }),
    ['unknown', 'leader'],
    name(2),
  ],
  ['no member has reported yet', () => world([late, late]), ['unknown', 'unknown'], undefined],
])('the roles when %s', (_what, observed, roles, leader) => {
  const status = membersStatus(observed(), LATER);
  expect(status.members?.map(({ role }) => role)).toEqual(roles);
  expect(status.leader).toBe(leader);
});

const reporting = (o: Gathered, ...reports: readonly Partial<SelfReport>[]): Gathered => ({
  ...o,
  members: o.members.map((m, i) => ({ ...m, self: m.self && { ...m.self, ...reports[i] } })),
});

test.each<[readonly string[], string]>([
  [['3.6.10', '3.6.9'], '3.6.9'],
  [['3.10.0', '3.9.9'], '3.9.9'],
  [['4.0.0', '3.9.9'], '3.9.9'],
  [['3.5.9', '3.6.0'], '3.5.9'],
])('the version of a cluster is the lowest of its members: of %j, %s', (versions, lowest) => {
  const o = reporting(world(versions.map(() => up)), ...versions.map((version) => ({ version })));
  expect(membersStatus(o, LATER).version).toBe(lowest);
});

test.each<[string, Is, number]>([
  ['its default', { spec: { options: {} } }, 50],
  ['its default, which 0 stands for', { spec: { options: { quotaBackendBytes: 0 } } }, 50],
  ['the quota in its spec', { spec: { options: { quotaBackendBytes: 4096 * MI } } }, 20],
])('how much of the quota is used, of %s', (_what, is, percent) => {
  const o = reporting(world([is]), { databaseBytes: 1024 * MI });
  expect(membersStatus(o, LATER).members?.[0]?.quotaUsedPercent).toBe(percent);
});

/** The kubelet has not reported its Pod as ready, and it has run for this long. */
const starting = (ms: number): Is => ({
  evidence: 'Starting',
  pod: { is: 'present', ip: '10.0.0.9', ready: false, runningSince: NOW - ms, maxLearners: 8 },
});
const readyPod: Is['pod'] = { is: 'present', ip: '10.0.0.9', ready: true, maxLearners: 8 };

test.each<[string, () => Gathered, number]>([
  ['all voters', () => world([up, up, up]), 3],
  ['one voter less when one is down', () => world([up, up, down]), 2],
  ['no learner', () => world([up, up, learner]), 2],
  ['a voter that has just started', () => world([up, up, starting(14_999)]), 3],
  ['no voter that is not ready long after it has started', () => world([up, up, starting(15_000)]), 2],
  ['no voter that has just started and is being deleted', () => world([up, up, { ...starting(1), leaving: true }]), 2],
  ['no voter that has just started and lags', () => world([up, up, { ...starting(1), lag: 6_000 }]), 2],
  ['no learner that has just started', () => world([up, up, { ...starting(1), as: 'learner' }]), 2],
  [
    'a voter that has published its name, and has not responded yet',
    () => world([up, up, { ...starting(1), fresh: true, started: true }]),
    3,
  ],
  ['a voter that is being deleted, while its Pod is ready', () => world([up, up, { leaving: true }]), 3],
  ['no voter that is being deleted without a Pod', () => world([up, up, { leaving: true, pod: { is: 'absent' } }]), 2],
  ['no voter that is being deleted and lags', () => world([up, up, { leaving: true, lag: 6_000 }]), 2],
  [
    'no learner that is being deleted, although its Pod is ready',
    () => world([up, up, { ...learner, leaving: true, pod: readyPod }]),
    2,
  ],
  [
    'no voter that is not being deleted and whose EtcdMember is not ready',
    () => world([up, up, { evidence: 'Unknown', lag: 6_000, pod: readyPod }]),
    2,
  ],
])('the voters that serve clients are %s', (_what, observed, healthy) => {
  expect(membersStatus(observed(), LATER).quorum).toMatchObject({ healthy, margin: healthy - 2 });
});

test('a cluster without members reports no quorum, no leader and no version', () => {
  expect(membersStatus(world([], { etcd: { is: 'notAsked' } }), LATER)).toStrictEqual({ updatedMembers: 0 });
});

test.each<[string, EtcdClusterStatus, boolean]>([
  ['the leader', { leader: 'db-1' }, true],
  ['a figure of a member', { members: [{ name: 'db-1', role: 'learner' }] }, true],
  ['how many are ready', { readyMembers: 2 }, false],
  ['how many are broken', { brokenMembers: 1 }, false],
])('whether a status write may wait: %s', (_what, change, expected) => {
  expect(isMinor({ readyMembers: 3 }, { readyMembers: 3, ...change })).toBe(expected);
});
