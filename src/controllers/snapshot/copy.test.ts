/** The copy of a stored snapshot: when its Job is created, what its result changes, and when it is tried again. */
import { describe, expect, test } from 'vitest';
import { NOW } from '../../../test/support/builders/builders.ts';
import {
  aJob,
  anAgent,
  aSnapshot,
  ended,
  left,
  STORED,
  tells,
  world,
} from '../../../test/support/builders/snapshot.ts';
import { type EtcdSnapshotStatus, isCopyPending } from '../../api/etcd-snapshot.ts';
import type { Result } from '../../domain/agent-result.ts';
import { TASK_VARIABLE } from '../../domain/agent-task.ts';
import { findCondition } from '../../domain/conditions.ts';
import type { Job } from '../../gen/kube.ts';
import { iso } from '../../lib/time.ts';
import { copyJob } from './build-copy.ts';
import { decide } from './decide.ts';
import type { CopyView, Observed } from './observed.ts';

const MINUTE = 60_000;
const copyTo = { destination: { pvc: { claimName: 'second', subPath: 'backups' } } };
const URI = 'file:///copy/data/backups/monday.db';
const stored = (copy?: EtcdSnapshotStatus['copy']) =>
  aSnapshot({ spec: { copyTo }, status: { phase: 'Complete', artifact: STORED, ...(copy && { copy }) } });
const ABSENT: CopyView = { job: { is: 'absent' }, pods: [] };
const at = (copying: CopyView = ABSENT, more: Partial<Observed> = {}): Observed =>
  world({ object: stored(), copying, members: [], ...more });
/** Its Job, which has ended a minute ago, with the result of its Pod. */
function after(type: 'Complete' | 'Failed', result?: Result, words = {}): CopyView {
  const pod = anAgent(1, left(type === 'Complete' ? 0 : 1, result && tells(result)));
  const [container] = pod.status?.containerStatuses ?? [];
  const named = {
    ...pod,
    status: { ...pod.status, containerStatuses: container ? [{ ...container, name: 'copy' }] : [] },
  };
  return { job: { is: 'ours', object: aJob(ended(type, MINUTE, words)) }, pods: result ? [named] : [] };
}
const failed = (reason: 'AccessDenied' | 'ObjectNotFound', message = 'what is wrong') =>
  after('Failed', { ok: false, reason, message });
const copied = (o: Observed): string => {
  const { status, reason, message } = findCondition(decide(o).status.conditions, 'Copied') ?? {};
  return `${status}/${reason}: ${message}`;
};
const events = (o: Observed) => decide(o).events.map(({ type, reason }) => `${type} ${reason}`);

describe('which snapshots are copied', () => {
  test.each<[string, Parameters<typeof aSnapshot>[0], boolean]>([
    [
      'a stored one with a second location',
      { spec: { copyTo }, status: { phase: 'Complete', artifact: STORED } },
      true,
    ],
    ['one without a second location', { status: { phase: 'Complete', artifact: STORED } }, false],
    ['one that has not finished', { spec: { copyTo }, status: { phase: 'Started' } }, false],
    ['one that has failed', { spec: { copyTo }, status: { phase: 'Failed' } }, false],
  ])('%s', (_name, options, expected) => {
    expect(isCopyPending(aSnapshot(options))).toBe(expected);
  });

  test('not one that is copied, nor one that is lost; but one whose last attempt failed', () => {
    expect(isCopyPending(stored({ uri: URI }))).toBe(false);
    expect(isCopyPending(stored({ attempts: 1, reason: 'ObjectNotFound' }))).toBe(false);
    expect(isCopyPending(stored({ attempts: 1, reason: 'AccessDenied', nextAttemptTime: iso(NOW) }))).toBe(true);
  });
});

describe('the Job of a copy', () => {
  test('is created as soon as the snapshot is stored, and reported', () => {
    const plan = decide(at());
    expect(plan.rule).toBe('copy');
    expect(plan.steps.map((step) => step.do === 'create' && step.object.metadata.name)).toEqual(['monday-copy-0']);
    expect(plan.status.phase).toBe('Complete');
    expect(copied(at())).toContain('Unknown/Copying');
    const running = at({ job: { is: 'ours', object: aJob() }, pods: [] });
    expect([decide(running).steps, events(running)]).toEqual([[], []]);
  });

  test('reads the first location, writes the second, and has no key', () => {
    const cluster = at().cluster;
    if (!cluster) throw new Error('there is no cluster');
    const job: Job = copyJob(stored(), { cluster, image: 'i', to: copyTo.destination });
    const { containers: [container] = [], volumes = [] } = job.spec?.template.spec ?? {};
    expect(JSON.parse(container?.env?.find(({ name }) => name === TASK_VARIABLE)?.value ?? '')).toMatchObject({
      task: 'copy',
      key: 'prod/monday.db',
      to: { kind: 'pvc', root: '/copy/data' },
      toKey: 'backups/monday.db',
      sha256: 'a'.repeat(64),
    });
    expect(volumes.map(({ name }) => name)).toEqual(['store', 'copies']);
    expect(volumes[1]?.persistentVolumeClaim?.readOnly).toBeUndefined();
  });

  test('that succeeded is recorded, with an Event', () => {
    const done = at(after('Complete', { ok: true, task: 'copy', uri: URI }));
    expect(decide(done).status.copy).toEqual({ uri: URI, time: iso(NOW) });
    expect(copied(done)).toBe(`True/SnapshotCopied: copied to ${URI}`);
    expect(events(done)).toEqual(['Normal SnapshotCopied']);
  });

  test('a result that names another place is rejected: it is from a Pod in the namespace of a user', () => {
    const other = at(after('Complete', { ok: true, task: 'copy', uri: 'file:///elsewhere/monday.db' }));
    expect(decide(other).status.copy).toMatchObject({ reason: 'ResultRefused' });
  });

  test('that failed is tried again, later each time, and the snapshot stays complete', () => {
    const delays = [0, 1, 2, 9].map((attempts) => {
      const object = stored({ attempts, reason: 'AccessDenied', message: 'x', nextAttemptTime: iso(NOW - MINUTE) });
      const plan = decide(at(failed('AccessDenied'), { object }));
      expect(plan.status.phase).toBe('Complete');
      expect(plan.status.copy).toMatchObject({
        attempts: attempts + 1,
        reason: 'AccessDenied',
        message: 'what is wrong',
      });
      expect(plan.requeueAfterMs).toBe(Date.parse(plan.status.copy?.nextAttemptTime ?? '') - NOW);
      return (plan.requeueAfterMs ?? 0) / MINUTE;
    });
    expect(delays).toEqual([5, 10, 20, 360]);
    expect(copied(at(failed('AccessDenied')))).toContain(
      'False/AccessDenied: the copy failed: what is wrong. It is tried again at',
    );
    expect(events(at(failed('AccessDenied')))).toEqual(['Warning CopyFailed']);
    const waiting = at(ABSENT, {
      object: stored({ attempts: 1, reason: 'AccessDenied', nextAttemptTime: iso(NOW + 7_000) }),
    });
    expect([decide(waiting).steps, decide(waiting).requeueAfterMs]).toEqual([[], 7_000]);
    const due = at(ABSENT, { object: stored({ attempts: 1, reason: 'AccessDenied', nextAttemptTime: iso(NOW) }) });
    expect(decide(due).steps.map((step) => step.do === 'create' && step.object.metadata.name)).toEqual([
      'monday-copy-1',
    ]);
    expect(copied(due)).toContain('False/AccessDenied');
  });

  test('is not tried again when the snapshot is gone', () => {
    const gone = decide(at(failed('ObjectNotFound')));
    expect(gone.status.copy).toEqual({ attempts: 1, reason: 'ObjectNotFound', message: 'what is wrong' });
    expect(copied(at(failed('ObjectNotFound')))).toContain('It is not tried again');
  });

  test.each<[string, Partial<Observed>, CopyView, string]>([
    [
      'S2: the administrator does not permit the second location',
      {},
      { ...ABSENT, notPermitted: 'not in the list' },
      'ReferenceNotPermitted',
    ],
    ['there is no cluster', { cluster: undefined }, ABSENT, 'ClusterNotFound'],
    ['the operator image is unknown', { operatorImage: '' }, ABSENT, 'OperatorImageNotConfigured'],
    ['the API server refuses the Job', { refusal: 'quota exceeded' }, ABSENT, 'JobRefused'],
    ['its name is taken', {}, { job: { is: 'foreign', owner: 'x' }, pods: [] }, 'NameConflict'],
    ['it took too long', {}, after('Failed', undefined, { reason: 'DeadlineExceeded' }), 'TimedOut'],
    ['it failed without a result', {}, after('Failed', undefined, { reason: 'BackoffLimitExceeded' }), 'JobFailed'],
    ['it reports nothing', {}, after('Complete'), 'ResultMissing'],
  ])('%s: reported, and tried again', (_name, more, copying, reason) => {
    const plan = decide(at(copying, more));
    expect([plan.steps, plan.status.phase]).toEqual([[], 'Complete']);
    expect(plan.status.copy).toMatchObject({ attempts: 1, reason });
    expect(plan.status.copy?.nextAttemptTime).toBeDefined();
  });
});
