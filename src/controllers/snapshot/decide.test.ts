/** What is decided about a snapshot: which rule answers, what becomes of it, and what is made. */
import { describe, expect, test } from 'vitest';
import { aCluster, condition, FORMED, LATCHED } from '../../../test/support/builders/builders.ts';
import {
  ago,
  aJob,
  anAgent,
  aSilentOne,
  aSnapshot,
  aVoter,
  begun,
  ended,
  isStored,
  left,
  STARTED,
  STORED,
  tells,
  world,
} from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const MINUTE = 60_000;
const SECOND = 1_000;

/** Rule, phase, reason, and when it looks again. */
function outcome(o: Observed): readonly [string, string, string, number?] {
  const { rule, status, requeueAfterMs: wakeAfter, steps } = decide(o);
  const ready = status.conditions?.find((c) => c.type === 'Ready');
  const made = steps.map((step) => (step.do === 'create' ? ` +${step.object.kind}` : step.do)).join();
  const said = `${status.phase ?? '-'}${made}`;
  return wakeAfter === undefined ? [rule, said, ready?.reason ?? '-'] : [rule, said, ready?.reason ?? '-', wakeAfter];
}
const message = (o: Observed): string => decide(o).status.conditions?.find((c) => c.type === 'Ready')?.message ?? '';

const tls = { client: { managed: {} } };
const auth = { enabled: true, rootCredentialsSecretRef: { name: 'root' } };
const withAuth = (authEnabled: boolean) =>
  aCluster({ spec: { tls, auth }, status: { ...FORMED, ...(authEnabled && { authEnabled }) } });
const lack = { reason: 'SecretMissing', message: 'Secret keys is not there' } as const;
const failure = (reason: 'AccessDenied' | 'NoSpace', text = 'who, why, what to do') =>
  left(1, tells({ ok: false, reason, message: text }), 'Error');

describe('a snapshot that has not begun', () => {
  test.each<[string, Partial<Observed>, readonly [string, string, string, number?]]>([
    ['can begin', {}, ['start', 'Pending +Job', 'Starting']],
    [
      'and is a minute too old for any more waiting, but has nothing to wait for',
      { object: aSnapshot({ ageMs: 16 * MINUTE }) },
      ['start', 'Pending +Job', 'Starting'],
    ],
    ['is being deleted', { object: aSnapshot({ deleting: true }) }, ['over', '-', '-']],
    [
      'has a Job of somebody else in its way',
      { job: { is: 'foreign', owner: 'nobody' } },
      ['nameTaken', 'Failed', 'NameConflict'],
    ],
    [
      'has the Job of its predecessor in its way, which goes',
      { job: { is: 'foreign', owner: 'EtcdSnapshot monday (uid 1)' }, isLeaving: true },
      ['nameTaken', 'Pending', 'NameConflict', 14 * MINUTE],
    ],
    [
      'has had the Job of its predecessor in its way for too long',
      { job: { is: 'foreign', owner: 'x' }, isLeaving: true, object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['nameTaken', 'Failed', 'NameConflict'],
    ],
    ['has no image', { operatorImage: '' }, ['noImage', 'Failed', 'OperatorImageNotConfigured']],
    ['has no cluster', { cluster: undefined }, ['noCluster', 'Failed', 'ClusterNotFound']],
    [
      'is of a cluster that goes',
      { cluster: aCluster({ status: FORMED, deleting: true }) },
      ['clusterGoing', 'Failed', 'ClusterDeleted'],
    ],
    [
      'is of a parked cluster: nothing is waited for, whatever else is missing',
      { cluster: aCluster({ spec: { replicas: 0 }, status: FORMED }), lacks: [lack] },
      ['parked', 'Failed', 'ClusterParked'],
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
      'lacks a Secret while its cluster is made: somebody can give it meanwhile',
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
      'is of a cluster whose clients are to log in soon',
      { cluster: withAuth(false) },
      ['authNotOn', 'Pending', 'WaitingForAuth', 14 * MINUTE],
    ],
    [
      'is of a cluster whose clients are to log in, and cannot for too long',
      { cluster: withAuth(false), object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['authNotOn', 'Failed', 'AuthLatchTimeout'],
    ],
    [
      'finds all that it comes in with',
      { cluster: withAuth(true), sources: { ca: 'a', pair: 'b', root: 'c' } },
      ['start', 'Pending +Job', 'Starting'],
    ],
    [
      'does not find whom to trust',
      { cluster: withAuth(true), sources: { pair: 'b', root: 'c' } },
      ['noWayIn', 'Pending', 'SecretMissing', 10 * SECOND],
    ],
    [
      'does not find what to show',
      { cluster: withAuth(true), sources: { ca: 'a', root: 'c' } },
      ['noWayIn', 'Pending', 'SecretMissing', 10 * SECOND],
    ],
    [
      'does not find the password, for too long',
      { cluster: withAuth(true), sources: { ca: 'a', pair: 'b' }, object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['noWayIn', 'Failed', 'SecretMissing'],
    ],
    [
      'has nothing to show where nobody asks for it',
      {
        cluster: aCluster({ spec: { tls: { client: { managed: { clientCertificates: 'None' } } } }, status: FORMED }),
        sources: { ca: 'a' },
      },
      ['start', 'Pending +Job', 'Starting'],
    ],
    [
      'finds nobody to ask, for a moment',
      { members: [aSilentOne(1)], silentSince: Date.parse(ago(5 * SECOND)) },
      ['noMember', 'Pending', 'NoMemberReachable', 2 * SECOND],
    ],
    [
      'finds nobody to ask, and its grace is almost over',
      { members: [aSilentOne(1)], silentSince: Date.parse(ago(29 * SECOND)) },
      ['noMember', 'Pending', 'NoMemberReachable', SECOND],
    ],
    [
      'finds nobody to ask',
      { members: [aSilentOne(1)], silentSince: Date.parse(ago(30 * SECOND)) },
      ['noMember', 'Failed', 'NoMemberReachable'],
    ],
    [
      'cannot be begun: the API server refuses the Job',
      { refusal: 'the API server refuses: exceeded quota' },
      ['start', 'Pending +Job', 'JobRefused'],
    ],
    [
      'could not be begun for too long',
      { refusal: 'the API server refuses: exceeded quota', object: aSnapshot({ ageMs: 15 * MINUTE }) },
      ['start', 'Failed', 'JobRefused'],
    ],
    [
      'was begun, and its Job is gone: it is not begun again',
      { object: aSnapshot({ status: STARTED }) },
      ['jobLost', 'Failed', 'SnapshotJobLost'],
    ],
    [
      'was begun, and its cluster is gone too: what is said is about the Job',
      { object: aSnapshot({ status: STARTED }), cluster: undefined },
      ['jobLost', 'Failed', 'SnapshotJobLost'],
    ],
  ])('%s', (_what, change, expected) => {
    expect(outcome(world(change))).toEqual(expected);
  });

  test('says who was asked, and why none of them will do', () => {
    const members = [aSilentOne(1), aVoter(2, { isLearner: true }), aVoter(3, { isCorrupt: true })];
    expect(message(world({ members }))).toBe(
      'no member of EtcdCluster db can be asked for a snapshot: db-1: connection refused; db-2 is a learner; db-3 has the alarm CORRUPT',
    );
    expect(message(world({ members: [] }))).toContain('there is none');
  });

  test('says all that is lacking at once', () => {
    const claim = { reason: 'VolumeClaimMissing', message: 'PersistentVolumeClaim c is not there' } as const;
    expect(message(world({ lacks: [lack, claim] }))).toBe(`${lack.message}; ${claim.message}`);
  });

  test('loses what an earlier version said about not being supported', () => {
    const status = { conditions: [condition('NotYetSupported', 'True', 'Snapshots')] };
    const said = decide(world({ object: aSnapshot({ status }) })).status.conditions;
    expect(said?.map((c) => c.type)).toEqual(['Ready']);
  });
});

describe('a snapshot whose Job was made', () => {
  test.each<[string, Observed, readonly [string, string, string, number?]]>([
    ['has no Pod yet', begun({}), ['jobRuns', 'Started', 'JobCreated']],
    ['is being started', begun({}, anAgent(1, {}, { phase: 'Pending' })), ['jobRuns', 'Started', 'JobCreated']],
    ['is taken', begun({}, anAgent(1, { running: {} })), ['jobRuns', 'Started', 'JobRunning']],
    [
      'is taken although its cluster is gone meanwhile',
      { ...begun({}, anAgent(1, { running: {} })), cluster: undefined },
      ['jobRuns', 'Started', 'JobRunning'],
    ],
    [
      'is found again after a crash, before that was said anywhere',
      { ...begun({}, anAgent(1, { running: {} })), object: aSnapshot() },
      ['jobRuns', 'Started', 'JobRunning'],
    ],
    [
      'is tried again',
      begun({}, anAgent(1, failure('AccessDenied')), anAgent(2, { running: {} })),
      ['jobRuns', 'Started', 'JobRunning'],
    ],
    ['is stored', begun({}, anAgent(1, left(0, isStored()))), ['stored', 'Complete', 'SnapshotStored']],
    [
      'is stored at the second attempt',
      begun(ended('Complete', 0), anAgent(1, failure('NoSpace')), anAgent(2, left(0, isStored()))),
      ['stored', 'Complete', 'SnapshotStored'],
    ],
    [
      'is stored, and the Job is said to have failed: the agent knows better',
      begun(ended('Failed', 0, { reason: 'DeadlineExceeded' }), anAgent(1, left(0, isStored()))),
      ['stored', 'Complete', 'SnapshotStored'],
    ],
    [
      'is said to be stored elsewhere',
      begun({}, anAgent(1, left(0, isStored({ uri: 's3://backups/prod/tuesday.db' })))),
      ['stored', 'Failed', 'ResultRefused'],
    ],
    [
      'has ended with words that no agent of ours says',
      begun(ended('Complete', 0), anAgent(1, left(0, 'all is well'))),
      ['stored', 'Failed', 'ResultRefused'],
    ],
    [
      'has ended well, and says that it has failed',
      begun({}, anAgent(1, left(0, tells({ ok: false, reason: 'NoSpace', message: 'm' })))),
      ['stored', 'Failed', 'ResultRefused'],
    ],
    [
      'has ended, and nobody has said yet with what',
      begun(ended('Complete', 5 * SECOND), anAgent(1, left(0))),
      ['resultMissing', 'Started', 'JobRunning', 10 * SECOND],
    ],
    [
      'has ended, and nobody says with what',
      begun(ended('Complete', 15 * SECOND)),
      ['resultMissing', 'Failed', 'ResultMissing'],
    ],
    [
      'has failed, and the last attempt says why',
      begun(ended('Failed', 0), anAgent(1, failure('NoSpace')), anAgent(2, failure('AccessDenied'))),
      ['jobFailed', 'Failed', 'AccessDenied'],
    ],
    [
      'has failed, and nobody has said yet why',
      begun(ended('Failed', 5 * SECOND), anAgent(1, failure('NoSpace')), anAgent(2, {})),
      ['jobFailed', 'Started', 'JobRunning', 10 * SECOND],
    ],
    [
      'has failed, and the last attempt was killed without a word',
      begun(
        ended('Failed', 15 * SECOND),
        anAgent(1, failure('NoSpace')),
        anAgent(2, left(137, undefined, 'OOMKilled')),
      ),
      ['jobFailed', 'Failed', 'JobFailed'],
    ],
    [
      'has failed, and claims to have stored',
      begun(ended('Failed', 15 * SECOND), anAgent(1, left(1, isStored()))),
      ['jobFailed', 'Failed', 'JobFailed'],
    ],
    [
      'took too long, and its Pod is being stopped',
      begun(ended('FailureTarget', 20 * SECOND, { reason: 'DeadlineExceeded' }), anAgent(1)),
      ['jobFailed', 'Started', 'JobRunning', 40 * SECOND],
    ],
    [
      'took too long, and its Pod is on a node that is gone',
      begun(ended('FailureTarget', MINUTE, { reason: 'DeadlineExceeded' }), anAgent(1)),
      ['jobFailed', 'Failed', 'TimedOut'],
    ],
    ['took too long', begun(ended('Failed', 0, { reason: 'DeadlineExceeded' })), ['jobFailed', 'Failed', 'TimedOut']],
  ])('%s', (_what, o, expected) => {
    expect(outcome(o)).toEqual(expected);
  });

  test('says what its Pod waits for', () => {
    const pulling = anAgent(
      1,
      { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } },
      { phase: 'Pending' },
    );
    expect(message(begun({}, pulling))).toBe(
      'Pod monday-snapshot-1: snapshot-agent is waiting: ImagePullBackOff: no such image',
    );
    const conditions = [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes are available' }];
    expect(message(begun({}, anAgent(1, {}, { phase: 'Pending', conditions })))).toContain(
      'not scheduled: 0/3 nodes are available',
    );
  });

  test('says why the attempt before failed, and why the last one did', () => {
    expect(message(begun({}, anAgent(1, failure('AccessDenied', 'no right')), anAgent(2, { running: {} })))).toBe(
      'Pod monday-snapshot-2 takes the snapshot; an attempt before failed: AccessDenied: no right',
    );
    expect(message(begun({}, anAgent(1, failure('AccessDenied', 'no right'))))).toBe(
      'Pod monday-snapshot-1 has failed, and there may be another attempt: AccessDenied: no right',
    );
    const killed = anAgent(1, left(137, undefined, 'OOMKilled'));
    const words = { reason: 'BackoffLimitExceeded', message: 'too often' };
    expect(message(begun(ended('Failed', MINUTE, words), killed))).toBe(
      'Job monday-snapshot failed: BackoffLimitExceeded: too often; Pod monday-snapshot-1: snapshot-agent ended: OOMKilled (exit code 137)',
    );
  });

  test('has a status that says what was stored, when it began and when it was over', () => {
    const { status } = decide(begun({}, anAgent(1, left(0, isStored({ surprise: 1 })))));
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

  test('began when its Job was made, also when nobody had the time to say so', () => {
    const o = { ...begun({}), object: aSnapshot() };
    expect(decide(o).status.startTime).toBe(aJob().metadata.creationTimestamp);
  });
});

describe('a snapshot that has ended', () => {
  test.each<[string, EtcdSnapshotStatus]>([
    ['well', { phase: 'Complete', artifact: STORED, conditions: [condition('Ready', 'True', 'SnapshotStored')] }],
    ['under an earlier operator', { phase: 'Complete', artifact: { uri: 's3://b/k', sizeBytes: 1 }, conditions: [] }],
    ['badly', { phase: 'Failed', conditions: [condition('Ready', 'False', 'JobFailed')] }],
  ])('%s stays as it is, whatever the world is like', (_how, status) => {
    const object = aSnapshot({ status });
    for (const o of [
      world({ object }),
      { ...begun({}, anAgent(1, left(0, isStored()))), object },
      world({ object, cluster: undefined }),
    ])
      expect(decide(o)).toMatchObject({ rule: 'over', steps: [], status, events: [] });
  });
});

describe('Events', () => {
  const reasons = (o: Observed): readonly string[] => decide(o).events.map(({ type, reason }) => `${type} ${reason}`);
  test.each<[string, Observed, readonly string[]]>([
    ['nothing is told of a beginning', world(), []],
    ['nor of a Job that runs', begun({}, anAgent(1, { running: {} })), []],
    ['that it is stored is', begun({}, anAgent(1, left(0, isStored()))), ['Normal SnapshotStored']],
    ['and what it waits for', world({ lacks: [lack] }), ['Warning SecretMissing']],
    [
      'once',
      world({
        lacks: [lack],
        object: aSnapshot({ status: { phase: 'Pending', conditions: [condition('Ready', 'False', 'SecretMissing')] } }),
      }),
      [],
    ],
    ['and why it failed', world({ cluster: undefined }), ['Warning ClusterNotFound']],
  ])('%s', (_what, o, expected) => {
    expect(reasons(o)).toEqual(expected);
  });
});
