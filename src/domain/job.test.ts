import { expect, test } from 'vitest';
import { endOf, isStopping, podsOf, settledAt, troubleSuffix } from './job.ts';

const job = (...conditions: readonly { readonly type: string; readonly status: string }[]) => ({
  metadata: { name: 'j', uid: 'job' },
  status: { conditions },
});

test.each([
  ['runs while it has no condition', job(), undefined],
  ['runs while it is suspended', job({ type: 'Suspended', status: 'True' }), undefined],
  ['runs when its condition is False', job({ type: 'Failed', status: 'False' }), undefined],
  ['has failed', job({ type: 'FailureTarget', status: 'True' }, { type: 'Failed', status: 'True' }), 'Failed'],
  [
    'has failed with FailureTarget, although its Pod still runs',
    job({ type: 'FailureTarget', status: 'True' }),
    'Failed',
  ],
  ['is complete', job({ type: 'Complete', status: 'True' }), 'Complete'],
])('a Job %s', (_what, given, end) => {
  expect(endOf(given)?.type).toBe(end);
});

test('a Job with FailureTarget settles later than one that has finished', () => {
  const at = { status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' };
  const [failureTarget, failed] = [
    { type: 'FailureTarget', ...at },
    { type: 'Failed', ...at },
  ];
  expect([isStopping(job(failureTarget)), isStopping(job(failureTarget, failed)), isStopping(job())]).toEqual([
    true,
    false,
    false,
  ]);
  expect(new Date(settledAt(job(failureTarget))).toISOString()).toBe('2026-01-01T00:01:00.000Z');
  expect(new Date(settledAt(job(failureTarget, failed))).toISOString()).toBe('2026-01-01T00:00:15.000Z');
});

test('the Pods of a Job are those that it controls, the oldest first', () => {
  const pod = (name: string, second: number, uid: string) => ({
    metadata: {
      name,
      creationTimestamp: `2026-01-01T00:00:0${second}Z`,
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid, controller: true }],
    },
  });
  const found = podsOf(job(), [pod('second', 2, 'job'), pod('foreign', 3, 'other'), pod('first', 1, 'job')]);
  expect(found.map(({ metadata }) => metadata.name)).toEqual(['first', 'second']);
});

test('the problem of a Pod is reported with its name, and nothing when there is none', () => {
  const pod = { metadata: { name: 'p', deletionTimestamp: '2026-01-01T00:00:00Z' } };
  expect(troubleSuffix(pod, 'agent')).toBe('; Pod p: the Pod is being deleted');
  expect(troubleSuffix({ metadata: { name: 'p' } }, 'agent')).toBe('');
  expect(troubleSuffix(undefined, 'agent')).toBe('');
});

test('a Job whose condition has no time has settled long ago', () => {
  expect(settledAt(job({ type: 'Complete', status: 'True' }))).toBe(15_000);
});
