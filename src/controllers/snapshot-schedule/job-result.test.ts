/** What the end of a Job, and what its Pods report, mean for its schedule. */
import { expect, test } from 'vitest';
import { aWork, RESTORED } from '../../../test/support/builders/schedules.ts';
import { jobResultOf } from './job-result.ts';

const ENDED = Date.parse('2026-03-01T09:05:00Z');
const [SETTLED, STOPPED] = [ENDED + 15_000, ENDED + 60_000];
const failure = { ok: false, reason: 'NoSpace', message: 'the volume is full' };
const job = (...rest: Parameters<typeof aWork> extends [string, ...infer Rest] ? Rest : never) => aWork('j', ...rest);

test.each<[string, ReturnType<typeof job>, number, string]>([
  ['it has not ended', job(), ENDED, 'running'],
  ['it is complete with a result', job({ type: 'Complete' }, RESTORED), ENDED, 'done'],
  ['it is complete, and the result of its Pod may be late', job({ type: 'Complete' }), SETTLED - 1, 'running'],
  ['it is complete, and no Pod reports a result', job({ type: 'Complete' }), SETTLED, 'ResultMissing'],
  ['it is complete, and its Pod reports a failure', job({ type: 'Complete' }, failure), SETTLED, 'ResultMissing'],
  ['it has failed with a reason', job({ type: 'Failed' }, failure), ENDED, 'NoSpace'],
  ['it has failed, although its Pod reports a result', job({ type: 'Failed' }, RESTORED), SETTLED, 'JobFailed'],
  ['it has failed, and the reason may be late', job({ type: 'Failed' }), SETTLED - 1, 'running'],
  ['it has failed without a reason', job({ type: 'Failed' }), SETTLED, 'JobFailed'],
  ['it took too long', job({ type: 'Failed', reason: 'DeadlineExceeded' }), ENDED, 'TimedOut'],
  ['its Pod is being stopped', job({ type: 'FailureTarget', reason: 'DeadlineExceeded' }), STOPPED - 1, 'running'],
  ['its Pod cannot be stopped', job({ type: 'FailureTarget', reason: 'DeadlineExceeded' }), STOPPED, 'TimedOut'],
  ['it failed at an unknown time', job({ type: 'Failed', at: '' }, failure), ENDED, 'NoSpace'],
])('of a Job, when %s', (_what, owned, now, expected) => {
  const result = jobResultOf(owned, 'drill', now);
  expect(result.is === 'failed' ? result.reason : result.is).toBe(expected);
  if (result.is !== 'running') expect(result.at).toBe(ENDED);
});

test('of a drill that was killed at its memory limit: the field to raise, and nothing about the snapshot', () => {
  const { job: owned, pods } = job({ type: 'Failed', reason: 'BackoffLimitExceeded' }, '');
  const [pod] = pods;
  const statuses = pod?.status?.containerStatuses?.map((status) => ({
    ...status,
    state: { terminated: { exitCode: 137, reason: 'OOMKilled' } },
  }));
  const killed = { job: owned, pods: pod && statuses ? [{ ...pod, status: { containerStatuses: statuses } }] : [] };
  expect(jobResultOf(killed, 'drill', SETTLED)).toMatchObject({
    reason: 'OutOfMemory',
    message: expect.stringMatching(/proves nothing about the snapshot: raise drill\.resources\.limits\.memory/),
  });
});
