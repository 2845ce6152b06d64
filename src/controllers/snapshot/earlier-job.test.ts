/** Snapshots that the Go operator has started: its Jobs are in no cache, and their result is only in the log of a Pod. */
import { describe, expect, test } from 'vitest';
import { modelWorld, putInCache } from '../../../test/support/builders/ports.ts';
import {
  aGoJob,
  aJob,
  anAgent,
  aSnapshot,
  ended,
  isStored,
  left,
  tells,
  world,
} from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshot, EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { etcdSnapshots, JOB_NAME_LABEL, lookupJobName } from '../../api/names.ts';
import { TASK_VARIABLE } from '../../domain/agent-task.ts';
import type { Job, Pod } from '../../gen/kube.ts';
import { jobs, pods } from '../../kube/resources.ts';
import { Store } from '../../kube/store.ts';
import { decide } from './decide.ts';
import { observe } from './observe.ts';
import type { Observed } from './observed.ts';

const STARTED: EtcdSnapshotStatus = { phase: 'Started' };
const started = (change: Partial<Observed>, status = STARTED): Observed =>
  world({ object: aSnapshot({ status }), members: [], ...change });
const complete = aGoJob(ended('Complete', 60_000));
const named = (job: Job, name: string): Job => ({ ...job, metadata: { ...job.metadata, name } });
const lookup = (status: Job['status'] = {}): Job => {
  const args = ['lookup'];
  return {
    ...named(aJob(status), lookupJobName('monday')),
    spec: { template: { spec: { containers: [{ name: 'a', args }] } } },
  };
};
const notThere = left(2, tells({ ok: false, reason: 'ObjectNotFound', message: 's3://b/k is not there' }), 'Error');

const outcome = (o: Observed) => {
  const { rule, status, requeueAfterMs, steps } = decide(o);
  const reason = status.conditions?.find(({ type }) => type === 'Ready')?.reason;
  return [
    rule,
    `${status.phase}/${reason}`,
    requeueAfterMs,
    steps.map((s) => (s.do === 'create' ? s.object.metadata.name : s.do)),
  ];
};

describe('decides', () => {
  test.each<[string, Observed, readonly unknown[]]>([
    [
      'its Job runs: it is polled',
      started({ job: { is: 'ours', object: aGoJob() } }),
      ['jobRuns', 'Started/JobRunning', 10_000, []],
    ],
    [
      'its Job has failed',
      started({ job: { is: 'ours', object: aGoJob(ended('Failed', 60_000, { reason: 'BackoffLimitExceeded' })) } }),
      ['jobFailed', 'Failed/JobFailed', undefined, []],
    ],
    [
      'its Job is complete: the store has the result',
      started({ earlier: complete }),
      ['jobLost', 'Started/JobCreated', undefined, ['monday-lookup']],
    ],
    [
      'its Job is complete, and the Go operator was stopped before it wrote Started',
      started({ earlier: complete }, { phase: 'Pending' }),
      ['jobLost', 'Started/JobCreated', undefined, ['monday-lookup']],
    ],
    [
      'it is found in the store',
      started({ earlier: complete, job: { is: 'ours', object: lookup() }, pods: [anAgent(1, left(0, isStored()))] }),
      ['stored', 'Complete/SnapshotStored', undefined, []],
    ],
    [
      'it is not in the store',
      started({
        earlier: complete,
        job: { is: 'ours', object: lookup(ended('Failed', 60_000)) },
        pods: [anAgent(1, notThere)],
      }),
      ['jobFailed', 'Failed/ResultMissing', undefined, []],
    ],
    [
      'its Job was deleted ten minutes after its end',
      started({}),
      ['jobLost', 'Started/JobCreated', undefined, ['monday-snapshot']],
    ],
  ])('%s', (_, o, expected) => {
    expect(outcome(o)).toEqual(expected);
  });

  test.each<[string, Observed, boolean]>([
    ['of a Job of the Go operator', started({ earlier: complete }), true],
    ['of a Job that was deleted, and that this operator did not create', started({}), true],
    ['of a Job that this operator created', started({}, { ...STARTED, streamsFrom: ['db-1'] }), false],
  ])('a snapshot %s: whether it counts without a manifest', (_, o, expected) => {
    const [step] = decide(o).steps;
    const container = step?.do === 'create' ? (step.object as Job).spec?.template.spec?.containers[0] : undefined;
    const task = JSON.parse(container?.env?.find(({ name }) => name === TASK_VARIABLE)?.value ?? '{}');
    expect(task.withoutManifest ?? false).toBe(expected);
  });
});

describe('observes', () => {
  const { signal } = new AbortController();
  function observed(...created: readonly Job[]): Promise<Observed | undefined> {
    const model = modelWorld();
    const snapshots = new Store<EtcdSnapshot>(etcdSnapshots, []);
    putInCache(snapshots, aSnapshot({ status: STARTED }));
    const ports = {
      ...model,
      operatorImage: 'i',
      snapshots,
      pods: new Store<Pod>(pods, [], [JOB_NAME_LABEL]),
      jobs: new Store<Job>(jobs, []),
    };
    putInCache(ports.jobs, ...created); // the model of the API server drops the status of a new object
    return observe(ports, new Map(), 'ns/monday', signal, undefined);
  }

  test('the Job of the Go operator until it is complete, and then the one that looks the snapshot up', async () => {
    expect(await observed(aGoJob())).toMatchObject({ job: { is: 'ours' } });
    expect((await observed(aGoJob()))?.earlier).toBeUndefined();
    expect(await observed(complete)).toMatchObject({
      earlier: { metadata: { name: 'monday-snapshot' } },
      job: { is: 'absent' },
    });
    const both = await observed(complete, lookup());
    expect(both).toMatchObject({ job: { is: 'ours', object: { metadata: { name: 'monday-lookup' } } } });
  });

  test('a complete Job of its own as before', async () => {
    const own = await observed(aJob(ended('Complete', 60_000)));
    expect([own?.earlier, own?.job.is]).toEqual([undefined, 'ours']);
  });
});
