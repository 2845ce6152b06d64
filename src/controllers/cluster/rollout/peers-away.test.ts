/** Whether a member that is not ready with an edit lacks anything but its peers. */
import { expect, test } from 'vitest';
import { NOW } from '../../../../test/support/builders/builders.ts';
import { down, type Is, up, withCredentials, world } from '../../../../test/support/builders/members.ts';
import { lacksPeers } from './peers-away.ts';

const running = (forMs: number, more: object = {}): Is => ({
  ...down,
  pod: { is: 'present', ready: false, maxLearners: 8, ip: '10.0.0.9', runningSince: NOW - forMs, ...more },
});
const pending: Is = { ...down, pod: { is: 'present', ready: false, maxLearners: 8 } };

test.each<[string, readonly Is[], boolean]>([
  ['it runs, and the others do not', [running(15_000), pending, pending], true],
  ['it responds, and the others do not run', [{ leaderless: true }, pending, pending], true],
  ['it has just started, and may exit', [running(14_000), pending, pending], false],
  ['it crashes again and again', [running(59_000, { restarted: true }), pending, pending], false],
  ['it has crashed, and runs since', [running(60_000, { restarted: true }), pending, pending], true],
  ['its Pod is being deleted', [running(60_000, { terminating: true }), pending, pending], false],
  ['it does not run', [pending, pending, pending], false],
  ['its Pod is missing', [{ ...down, pod: { is: 'absent' } }, pending, pending], false],
  ['the others serve without it', [running(60_000), up, up], false],
  ['another one runs, and both are a quorum', [running(60_000), running(60_000), pending], false],
  ['of five, another one runs', [running(60_000), running(60_000), pending, pending, pending], true],
  [
    'a learner runs, which has no vote',
    [running(60_000), { ...running(60_000), as: 'learner' }, pending, pending],
    true,
  ],
])('%s', (_, members, expected) => {
  const o = withCredentials(world(members));
  const [m] = o.members;
  expect(m && lacksPeers(o, m)).toBe(expected);
});
