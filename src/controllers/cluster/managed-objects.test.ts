/** What a user reads about objects that the operator cannot keep as it wants them. */
import { describe, expect, test } from 'vitest';
import { aCluster, LATCHED } from '../../../test/support/builders/builders.ts';
import { up, world } from '../../../test/support/builders/members.ts';
import type { Failure } from '../../runtime/plan.ts';
import { inSyncConditions, stepFailures } from './managed-objects.ts';
import type { Gathered } from './observed.ts';

const failure = (change: Partial<Failure> = {}): Failure => ({
  in: 'upkeep',
  row: 'pdb',
  target: 'PodDisruptionBudget db',
  is: 'refused',
  message: 'no budgets',
  times: 1,
  since: 0,
  at: 0,
  retryInMs: 0,
  ...change,
});
const after = (...failures: readonly Failure[]): Gathered => ({
  ...world([up]),
  memory: { failures, unconfirmed: [] },
});
const task = (row: string, target: string) => ({ row, target, steps: [] });
const pdb = task('pdb', 'PodDisruptionBudget db');

describe('the condition ManagedObjectsInSync', () => {
  test.each<[string, Failure, readonly (typeof pdb)[], string | undefined]>([
    ['says why an object is refused', failure(), [pdb], 'Refused'],
    ['says that writing an object fails', failure({ is: 'failed' }), [pdb], 'Failed'],
    ['is absent when the object is not wanted any more', failure(), [], undefined],
    ['is absent when only another object of that row is wanted', failure(), [task('pdb', 'Service db')], undefined],
    ['is absent when only another row wants that object', failure(), [task('relabel', pdb.target)], undefined],
    ['is absent when etcd refuses a call for now', failure({ is: 'later' }), [pdb], undefined],
    ['is absent when a step of the plan failed: another condition says so', failure({ in: 'steps' }), [pdb], undefined],
    [
      'stays while another writer reverts the object, also in moments when it is as wanted',
      failure({ is: 'overwritten', retryInMs: 1 }),
      [],
      'Overwritten',
    ],
    [
      'ends when the object is as wanted after the last attempt',
      failure({ is: 'overwritten', retryInMs: 0 }),
      [],
      undefined,
    ],
    ['is absent for an object that was refused, and is as wanted now', failure({ retryInMs: 1 }), [], undefined],
  ])('%s', (_what, failed, tasks, reason) => {
    expect(inSyncConditions(after(failed), tasks)[0]?.reason).toBe(reason);
  });

  test('names every object once, in the same order in every reconcile', () => {
    const service = failure({ row: 'services', target: 'Service db', message: 'no Services', is: 'failed' });
    const tasks = [pdb, task('services', 'Service db')];
    for (const failures of [
      [failure(), service, failure()],
      [service, failure()],
    ])
      expect(inSyncConditions(after(...failures), tasks)).toEqual([
        {
          type: 'ManagedObjectsInSync',
          status: 'False',
          reason: 'Refused',
          message:
            'PodDisruptionBudget db: no budgets; Service db: no Services. The operator tries again at growing intervals; members are repaired meanwhile',
        },
      ]);
  });
});

describe('the message about steps that failed', () => {
  const forming = (o: Gathered): Gathered => ({ ...o, cluster: aCluster({ status: LATCHED }) });
  test.each<[string, Gathered, boolean]>([
    ['has those of the plan', after(failure({ in: 'steps' })), true],
    ['has none of upkeep, which has its own condition', after(failure()), false],
    ['has those of upkeep before the bootstrap, which has no other condition', forming(after(failure())), true],
    ['has no call that etcd has refused twice', after(failure({ is: 'later', times: 2 })), false],
    ['has a call that etcd keeps refusing', after(failure({ is: 'later', times: 3 })), true],
    ['has no object that is refused again and again', after(failure({ times: 3 })), false],
  ])('%s', (_what, observed, isReported) => {
    expect(stepFailures(observed)).toEqual(isReported ? ['no budgets'] : []);
  });
});
