import { expect, test } from 'vitest';
import { aCluster, aMember, FORMED, MEMBER_ID, NOW, SEED_NAME } from '../../../test/support/builders/builders.ts';
import type { EtcdClusterStatus, MemberEntry } from '../../api/etcd-cluster-status.ts';
import { coarsePercent, coarseSize, isMinor, membersStatus } from './members-status.ts';
import type { Gathered, MemberView, SelfReport } from './observed.ts';

const MI = 1024 ** 2;

test.each([
  ['small sizes are all 16Mi', 1, undefined, 16],
  ['rounded up to the next power of two', 17, undefined, 32],
  ['exactly one', 64, undefined, 64],
  ['kept while the size fits', 40, 64, 64],
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

test.each<[string, MemberEntry | undefined, Partial<MemberEntry>]>([
  ['one late response keeps the previous figures', entryAfter(previous, true), previous],
  ['a Pod that is not ready has no figures', entryAfter(previous, false), { ...bare, role: 'unknown', since: LATER }],
  [
    'the role is known again',
    entryAfter({ ...previous, role: 'unknown' }, true, report),
    { role: 'leader', since: LATER },
  ],
  ['another role is new', entryAfter(previous, true, follower), { role: 'follower', since: LATER }],
])('a member: %s', (what, entry, expected) => {
  if (what.startsWith('the role') || what.startsWith('another')) expect(entry).toMatchObject(expected);
  else expect(entry).toEqual(expected);
});

test.each<[string, EtcdClusterStatus, boolean]>([
  ['the leader', { leader: 'db-1' }, true],
  ['a figure of a member', { members: [{ name: 'db-1', role: 'learner' }] }, true],
  ['how many are ready', { readyMembers: 2 }, false],
  ['how many are broken', { brokenMembers: 1 }, false],
])('whether a status write may wait: %s', (_what, change, expected) => {
  expect(isMinor({ readyMembers: 3 }, { readyMembers: 3, ...change })).toBe(expected);
});
