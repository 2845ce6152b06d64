/** Decisions about a snapshot: the rule, the phase and the steps. */
import { describe, expect, test } from 'vitest';
import { aCluster, condition, FORMED, LATCHED, TARGET } from '../../../test/support/builders/builders.ts';
import {
  ago,
  aJob,
  anAgent,
  anUnreachableMember,
  aSnapshot,
  aVoter,
  ended,
  isStored,
  left,
  STARTED,
  STORED,
  tells,
  withJob,
  world,
} from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const MINUTE = 60_000;
const SECOND = 1_000;

/** Rule, phase, reason and requeue time. */
function outcome(o: Observed): readonly [string, string, string, number?] {
  const { rule, status, requeueAfterMs: requeue, steps } = decide(o);
  const ready = status.conditions?.find((c) => c.type === 'Ready');
  const made = steps.map((step) => (step.do === 'create' ? ` +${step.object.kind}` : step.do)).join();
  const phase = `${status.phase ?? '-'}${made}`;
  return requeue === undefined ? [rule, phase, ready?.reason ?? '-'] : [rule, phase, ready?.reason ?? '-', requeue];
}
const message = (o: Observed): string => decide(o).status.conditions?.find((c) => c.type === 'Ready')?.message ?? '';

const tls = { client: { managed: {} } };
const auth = { enabled: true, rootCredentialsSecretRef: { name: 'root' } };
const withAuth = (authEnabled: boolean) =>
  aCluster({ spec: { tls, auth }, status: { ...FORMED, ...(authEnabled && { authEnabled }) } });
const PAUSED = { ...FORMED, observed: { ...TARGET, replicas: 0 } };
const lack = { reason: 'SecretMissing', message: 'Secret keys does not exist' } as const;
const failure = (reason: 'AccessDenied' | 'NoSpace', text = 'what is wrong, what to do') =>
  left(1, tells({ ok: false, reason, message: text }), 'Error');

describe('a snapshot that has not started', () => {
  test.each<[string, Partial<Observed>, readonly [string, string, string, number?]]>([
    ['can start', {}, ['start', 'Pending +Job', 'Starting']],
    [
      'has waited too long, but has nothing left to wait for',
      { object: aSnapshot({ ageMs: 16 * MINUTE }) },
      ['start', 'Pending +Job', 'Starting'],
    ],
    ['is being deleted', { object: aSnapshot({ deleting: true }) }, ['over', '-', '-']],
    [
      'has a foreign Job of its name',
      { job: { is: 'foreign', owner: 'no controller' } },
      ['nameTaken', 'Failed', 'NameConflict'],
    ],
    [
      'has the Job of its predecessor, which is being deleted',
      { job: { is: 'foreign', owner: 'EtcdSnapshot monday (uid 1)' }, isLeaving: true },
      ['nameTaken', 'Pending', 'NameConflict', 14 * MINUTE],
    ],
    [
      'has had the Job of its predecessor for too long',
      { job: { is: 'foreign', owner: 'x' }, isLeaving: true, object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['nameTaken', 'Failed', 'NameConflict'],
    ],
    ['has no image', { operatorImage: '' }, ['noImage', 'Failed', 'OperatorImageNotConfigured']],
    [
      'has no image and no cluster: an administrator is asked first, because no snapshot works without an image',
      { operatorImage: '', cluster: undefined },
      ['noImage', 'Failed', 'OperatorImageNotConfigured'],
    ],
    [
      'is of a paused cluster that is being deleted: resuming it is no advice',
      { cluster: aCluster({ spec: { replicas: 0 }, status: FORMED, deleting: true }) },
      ['clusterBeingDeleted', 'Failed', 'ClusterDeleted'],
    ],
    [
      'is of a cluster with auth that has not formed: the message is about the cluster',
      { cluster: { ...withAuth(false), status: LATCHED } },
      ['notFormed', 'Pending', 'ClusterNotReady', 14 * MINUTE],
    ],
    [
      'lacks the CA bundle, without which no member responds either',
      { cluster: withAuth(true), sources: { pair: 'b', root: 'c' }, members: [anUnreachableMember(1)] },
      ['noWayIn', 'Pending', 'SecretMissing', 10 * SECOND],
    ],
    ['has no cluster', { cluster: undefined }, ['noCluster', 'Failed', 'ClusterNotFound']],
    [
      'is of a cluster that is being deleted',
      { cluster: aCluster({ status: FORMED, deleting: true }) },
      ['clusterBeingDeleted', 'Failed', 'ClusterDeleted'],
    ],
    [
      'is of a paused cluster: it fails at once, whatever else is missing',
      { cluster: aCluster({ spec: { replicas: 0 }, status: PAUSED }), lacks: [lack] },
      ['parked', 'Failed', 'ClusterParked'],
    ],
    [
      'is of a cluster that is suspended, and paused only after it is resumed: its members run',
      { cluster: aCluster({ spec: { replicas: 0, suspend: true }, status: FORMED }), lacks: [lack] },
      ['lacking', 'Pending', 'SecretMissing', 10 * SECOND],
    ],
    ['lacks a Secret', { lacks: [lack] }, ['lacking', 'Pending', 'SecretMissing', 10 * SECOND]],
    [
      'lacks a Secret, and almost out of time',
      { lacks: [lack], object: aSnapshot({ ageMs: 15 * MINUTE - 3 * SECOND }) },
      ['lacking', 'Pending', 'SecretMissing', 3 * SECOND],
    ],
    [
      'has lacked a Secret for too long',
      { lacks: [lack], object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['lacking', 'Failed', 'SecretMissing'],
    ],
    [
      'lacks a Secret while its cluster forms: a user can create it meanwhile',
      { lacks: [lack], cluster: aCluster({ status: LATCHED }) },
      ['lacking', 'Pending', 'SecretMissing', 10 * SECOND],
    ],
    [
      'is of a cluster that has not formed',
      { cluster: aCluster({ status: LATCHED }), members: [] },
      ['notFormed', 'Pending', 'ClusterNotReady', 14 * MINUTE],
    ],
    [
      'is of a cluster that does not form',
      { cluster: aCluster({ status: LATCHED }), members: [], object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['notFormed', 'Failed', 'ClusterNotReady'],
    ],
    [
      'is of a cluster whose auth is not enabled yet',
      { cluster: withAuth(false) },
      ['authNotOn', 'Pending', 'WaitingForAuth', 14 * MINUTE],
    ],
    [
      'is of a cluster whose auth is not enabled for too long',
      { cluster: withAuth(false), object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['authNotOn', 'Failed', 'AuthLatchTimeout'],
    ],
    [
      'has all credentials',
      { cluster: withAuth(true), sources: { ca: 'a', pair: 'b', root: 'c' } },
      ['start', 'Pending +Job', 'Starting'],
    ],
    [
      'lacks the CA bundle',
      { cluster: withAuth(true), sources: { pair: 'b', root: 'c' } },
      ['noWayIn', 'Pending', 'SecretMissing', 10 * SECOND],
    ],
    [
      'lacks the client certificate',
      { cluster: withAuth(true), sources: { ca: 'a', root: 'c' } },
      ['noWayIn', 'Pending', 'SecretMissing', 10 * SECOND],
    ],
    [
      'lacks the root password, for too long',
      { cluster: withAuth(true), sources: { ca: 'a', pair: 'b' }, object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['noWayIn', 'Failed', 'SecretMissing'],
    ],
    [
      'needs no client certificate without mTLS',
      {
        cluster: aCluster({ spec: { tls: { client: { managed: { clientCertificates: 'None' } } } }, status: FORMED }),
        sources: { ca: 'a' },
      },
      ['start', 'Pending +Job', 'Starting'],
    ],
    [
      'finds no member, for a moment',
      { members: [anUnreachableMember(1)], unreachableSince: Date.parse(ago(5 * SECOND)) },
      ['noMember', 'Pending', 'NoMemberReachable', 2 * SECOND],
    ],
    [
      'finds no member, and the grace period is almost over',
      { members: [anUnreachableMember(1)], unreachableSince: Date.parse(ago(29 * SECOND)) },
      ['noMember', 'Pending', 'NoMemberReachable', SECOND],
    ],
    [
      'finds no member',
      { members: [anUnreachableMember(1)], unreachableSince: Date.parse(ago(30 * SECOND)) },
      ['noMember', 'Failed', 'NoMemberReachable'],
    ],
    [
      'cannot start: the API server refuses the Job',
      { refusal: 'the API server refuses: exceeded quota' },
      ['start', 'Pending +Job', 'JobRefused'],
    ],
    [
      'could not start for too long',
      { refusal: 'the API server refuses: exceeded quota', object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['start', 'Failed', 'JobRefused'],
    ],
    [
      'was started, and its Job is deleted: it is not taken again, but looked up in the store',
      { object: aSnapshot({ status: STARTED }) },
      ['jobLost', 'Started +Job', 'JobCreated'],
    ],
    [
      'was started, its Job is deleted, and the API server has long refused the one that looks it up',
      { object: aSnapshot({ status: STARTED, ageMs: 15 * MINUTE }), refusal: 'exceeded quota' },
      ['jobLost', 'Failed', 'SnapshotJobLost'],
    ],
    [
      'was started, and a foreign Job has its name now: a user can delete that Job',
      { object: aSnapshot({ status: STARTED }), job: { is: 'foreign', owner: 'x' } },
      ['nameTaken', 'Failed', 'NameConflict'],
    ],
    [
      'was started, and its cluster is deleted too, and the operator has no image: the message is about the Job',
      { object: aSnapshot({ status: STARTED }), cluster: undefined, operatorImage: '' },
      ['jobLost', 'Failed', 'SnapshotJobLost'],
    ],
  ])('%s', (_what, change, expected) => {
    expect(outcome(world(change))).toEqual(expected);
  });

  test('reports why no member can serve a snapshot', () => {
    const members = [anUnreachableMember(1), aVoter(2, { isLearner: true }), aVoter(3, { isCorrupt: true })];
    expect(message(world({ members }))).toBe(
      'no member of EtcdCluster db can serve a snapshot: db-1: connection refused; db-2 is a learner; db-3 has the alarm CORRUPT',
    );
    expect(message(world({ members: [] }))).toContain('it has no members');
  });

  test('reports all missing Secrets at once', () => {
    const claim = { reason: 'VolumeClaimMissing', message: 'PersistentVolumeClaim c does not exist' } as const;
    expect(message(world({ lacks: [lack, claim] }))).toBe(`${lack.message}; ${claim.message}`);
  });
});

describe('a snapshot whose Job exists', () => {
  test.each<[string, Observed, readonly [string, string, string, number?]]>([
    ['has no Pod yet', withJob({}), ['jobRuns', 'Started', 'JobCreated']],
    ['is being started', withJob({}, anAgent(1, {}, { phase: 'Pending' })), ['jobRuns', 'Started', 'JobCreated']],
    ['is taken', withJob({}, anAgent(1, { running: {} })), ['jobRuns', 'Started', 'JobRunning']],
    [
      'is taken although its cluster was deleted meanwhile',
      { ...withJob({}, anAgent(1, { running: {} })), cluster: undefined },
      ['jobRuns', 'Started', 'JobRunning'],
    ],
    [
      'is found again after a crash, before the status was written',
      { ...withJob({}, anAgent(1, { running: {} })), object: aSnapshot() },
      ['jobRuns', 'Started', 'JobRunning'],
    ],
    [
      'is retried',
      withJob({}, anAgent(1, failure('AccessDenied')), anAgent(2, { running: {} })),
      ['jobRuns', 'Started', 'JobRunning'],
    ],
    ['is stored', withJob({}, anAgent(1, left(0, isStored()))), ['stored', 'Complete', 'SnapshotStored']],
    [
      'is stored at the second attempt',
      withJob(ended('Complete', 0), anAgent(1, failure('NoSpace')), anAgent(2, left(0, isStored()))),
      ['stored', 'Complete', 'SnapshotStored'],
    ],
    [
      'is stored, although the Job has failed: the result of the agent wins',
      withJob(ended('Failed', 0, { reason: 'DeadlineExceeded' }), anAgent(1, left(0, isStored()))),
      ['stored', 'Complete', 'SnapshotStored'],
    ],
    [
      'is reported as stored elsewhere',
      withJob({}, anAgent(1, left(0, isStored({ uri: 's3://backups/prod/tuesday.db' })))),
      ['stored', 'Failed', 'ResultRefused'],
    ],
    [
      'has a result that no agent writes',
      withJob(ended('Complete', 0), anAgent(1, left(0, 'all is well'))),
      ['stored', 'Failed', 'ResultRefused'],
    ],
    [
      'has exit code 0 and reports a failure',
      withJob({}, anAgent(1, left(0, tells({ ok: false, reason: 'NoSpace', message: 'm' })))),
      ['stored', 'Failed', 'ResultRefused'],
    ],
    [
      'is complete, and its Pod has not reported a result yet',
      withJob(ended('Complete', 5 * SECOND), anAgent(1, left(0))),
      ['resultMissing', 'Started', 'JobRunning', 10 * SECOND],
    ],
    [
      'is complete, and no Pod reports a result',
      withJob(ended('Complete', 15 * SECOND)),
      ['resultMissing', 'Failed', 'ResultMissing'],
    ],
    [
      'has failed, and the last attempt reports the reason',
      withJob(ended('Failed', 0), anAgent(1, failure('NoSpace')), anAgent(2, failure('AccessDenied'))),
      ['jobFailed', 'Failed', 'AccessDenied'],
    ],
    [
      'has failed, and the last Pod has not reported a reason yet',
      withJob(ended('Failed', 5 * SECOND), anAgent(1, failure('NoSpace')), anAgent(2, {})),
      ['jobFailed', 'Started', 'JobRunning', 10 * SECOND],
    ],
    [
      'has failed, and the last attempt was killed without a result',
      withJob(
        ended('Failed', 15 * SECOND),
        anAgent(1, failure('NoSpace')),
        anAgent(2, left(137, undefined, 'OOMKilled')),
      ),
      ['jobFailed', 'Failed', 'JobFailed'],
    ],
    [
      'has failed, and reports a stored snapshot',
      withJob(ended('Failed', 15 * SECOND), anAgent(1, left(1, isStored()))),
      ['jobFailed', 'Failed', 'JobFailed'],
    ],
    [
      'took too long, and its Pod is being stopped',
      withJob(ended('FailureTarget', 20 * SECOND, { reason: 'DeadlineExceeded' }), anAgent(1)),
      ['jobFailed', 'Started', 'JobRunning', 40 * SECOND],
    ],
    [
      'took too long, and its Pod is on a lost node',
      withJob(ended('FailureTarget', MINUTE, { reason: 'DeadlineExceeded' }), anAgent(1)),
      ['jobFailed', 'Failed', 'TimedOut'],
    ],
    ['took too long', withJob(ended('Failed', 0, { reason: 'DeadlineExceeded' })), ['jobFailed', 'Failed', 'TimedOut']],
  ])('%s', (_what, o, expected) => {
    expect(outcome(o)).toEqual(expected);
  });

  test('reports what its Pod waits for', () => {
    const pulling = anAgent(
      1,
      { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } },
      { phase: 'Pending' },
    );
    expect(message(withJob({}, pulling))).toBe(
      'Pod monday-snapshot-1: snapshot-agent is waiting: ImagePullBackOff: no such image',
    );
    const conditions = [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes are available' }];
    expect(message(withJob({}, anAgent(1, {}, { phase: 'Pending', conditions })))).toContain(
      'not scheduled: 0/3 nodes are available',
    );
  });

  test('reports why the previous attempt failed, and why the last one did', () => {
    expect(message(withJob({}, anAgent(1, failure('AccessDenied', 'no right')), anAgent(2, { running: {} })))).toBe(
      'Pod monday-snapshot-2 is taking the snapshot; the previous attempt failed: AccessDenied: no right',
    );
    expect(message(withJob({}, anAgent(1, failure('AccessDenied', 'no right'))))).toBe(
      'Pod monday-snapshot-1 has failed and may be retried: AccessDenied: no right',
    );
    const killed = anAgent(1, left(137, undefined, 'OOMKilled'));
    const words = { reason: 'BackoffLimitExceeded', message: 'too often' };
    expect(message(withJob(ended('Failed', MINUTE, words), killed))).toBe(
      'Job monday-snapshot failed: BackoffLimitExceeded: too often; Pod monday-snapshot-1: snapshot-agent terminated: OOMKilled (exit code 137)',
    );
  });

  test('has a status with the artifact, the start time and the completion time', () => {
    const { status } = decide(withJob({}, anAgent(1, left(0, isStored({ surprise: 1 })))));
    expect(status).toMatchObject({
      phase: 'Complete',
      artifact: STORED,
      startTime: STARTED.startTime,
      completionTime: '2026-01-01T12:00:00Z',
    });
    expect(status.artifact).toEqual(STORED);
    expect(status.conditions).toMatchObject([
      { type: 'Ready', status: 'True', reason: 'SnapshotStored', message: 'stored at s3://backups/prod/monday.db' },
    ]);
  });

  test('has the creation time of its Job as start time, also when the status was not written before', () => {
    const o = { ...withJob({}), object: aSnapshot() };
    expect(decide(o).status.startTime).toBe(aJob().metadata.creationTimestamp);
  });
});

describe('a snapshot that has finished', () => {
  test.each<[string, EtcdSnapshotStatus]>([
    ['well', { phase: 'Complete', artifact: STORED, conditions: [condition('Ready', 'True', 'SnapshotStored')] }],
    ['under an earlier operator', { phase: 'Complete', artifact: { uri: 's3://b/k', sizeBytes: 1 }, conditions: [] }],
    ['badly', { phase: 'Failed', conditions: [condition('Ready', 'False', 'JobFailed')] }],
  ])('%s never changes again', (_how, status) => {
    const object = aSnapshot({ status });
    for (const o of [
      world({ object }),
      { ...withJob({}, anAgent(1, left(0, isStored()))), object },
      world({ object, cluster: undefined }),
    ])
      expect(decide(o)).toMatchObject({ rule: 'over', steps: [], status, events: [] });
  });
});

test.each<[string, Observed, boolean]>([
  ['starts', world(), false],
  ['runs', withJob({}, anAgent(1, { running: {} })), false],
  ['is stored', withJob({}, anAgent(1, left(0, isStored()))), true],
  ['has failed', world({ cluster: undefined }), true],
])('a snapshot that %s has a completionTime: %s', (_what, o, hasEnded) => {
  expect(decide(o).status.completionTime !== undefined).toBe(hasEnded);
});

describe('Events', () => {
  const reasons = (o: Observed): readonly string[] => decide(o).events.map(({ type, reason }) => `${type} ${reason}`);
  test.each<[string, Observed, readonly string[]]>([
    ['none for a start', world(), []],
    ['none for a running Job', withJob({}, anAgent(1, { running: {} })), []],
    ['for a stored snapshot', withJob({}, anAgent(1, left(0, isStored()))), ['Normal SnapshotStored']],
    ['for a missing Secret', world({ lacks: [lack] }), ['Warning SecretMissing']],
    [
      'once',
      world({
        lacks: [lack],
        object: aSnapshot({ status: { phase: 'Pending', conditions: [condition('Ready', 'False', 'SecretMissing')] } }),
      }),
      [],
    ],
    ['for a failure', world({ cluster: undefined }), ['Warning ClusterNotFound']],
  ])('%s', (_what, o, expected) => {
    expect(reasons(o)).toEqual(expected);
  });
});
