/** Which member a snapshot is taken from. */
import { expect, test } from 'vitest';
import { anUnreachableMember, aVoter } from '../../../test/support/builders/snapshot.ts';
import { type MemberView, membersToAsk, memberToAsk } from './observed.ts';

const LAG = 1_000;

test.each<[string, readonly MemberView[], string | undefined]>([
  ['a follower, to spare the leader', [aVoter(1), aVoter(2), aVoter(3)], 'db-2'],
  ['the first by name of those that are equally close', [aVoter(1), aVoter(3), aVoter(2)], 'db-2'],
  ['the follower that is closest', [aVoter(1), aVoter(2, { applied: 9_990 }), aVoter(3, { applied: 9_999 })], 'db-3'],
  ['a follower that is just close enough', [aVoter(1), aVoter(2, { applied: 10_000 - LAG })], 'db-2'],
  ['the leader, when no follower is close', [aVoter(1), aVoter(2, { applied: 9_999 - LAG })], 'db-1'],
  ['the only one', [aVoter(1)], 'db-1'],
  ['never a learner', [aVoter(1), aVoter(2, { isLearner: true })], 'db-1'],
  ['never corrupt data', [aVoter(1), aVoter(2, { isCorrupt: true })], 'db-1'],
  ['a follower rather than a leader with corrupt data', [aVoter(1, { isCorrupt: true }), aVoter(2)], 'db-2'],
  ['the leader rather than a member that knows no leader', [aVoter(1), aVoter(2, { leader: undefined })], 'db-1'],
  ['the member that responds', [anUnreachableMember(1), aVoter(2)], 'db-2'],
  [
    'without a leader, the voter with the most entries',
    [
      aVoter(1, { leader: undefined, applied: 5 }),
      aVoter(2, { leader: undefined, applied: 7 }),
      anUnreachableMember(3),
    ],
    'db-2',
  ],
  ['none, when no member responds', [anUnreachableMember(1), anUnreachableMember(2)], undefined],
  ['none, when only a learner responds', [anUnreachableMember(1), aVoter(2, { isLearner: true })], undefined],
  ['none, without members', [], undefined],
])('%s', (_what, members, expected) => {
  expect(memberToAsk(members)?.name).toBe(expected);
});

test.each<[string, readonly MemberView[], readonly string[]]>([
  [
    'the other followers, and the leader last',
    [aVoter(1), aVoter(2), aVoter(3, { applied: 9_999 })],
    ['db-2', 'db-3', 'db-1'],
  ],
  ['no member that is far behind', [aVoter(1), aVoter(2), aVoter(3, { applied: 5 })], ['db-2', 'db-1']],
  [
    'without a leader, the voters by their entries',
    [aVoter(1, { leader: undefined, applied: 5 }), aVoter(2, { leader: undefined, applied: 7 })],
    ['db-2', 'db-1'],
  ],
])('when a member fails, the next is asked: %s', (_what, members, expected) => {
  expect(membersToAsk(members).map(({ name }) => name)).toEqual(expected);
});
