import { describe, expect, test } from 'vitest';
import { aCluster, aPod, FORMED, LATCHED, NOW } from '../../../test/support/builders/builders.ts';
import { type Is, world } from '../../../test/support/builders/members.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { findCondition } from '../../domain/conditions.ts';
import type { ContainerStatus, Pod } from '../../gen/kube.ts';
import { seedMember } from './build.ts';
import { decide } from './decide.ts';
import type { Gathered, PodView } from './observed.ts';
import { type RestoreView, restoreOf } from './restore.ts';

const source = { pvc: { claimName: 'backups', subPath: 'x.db' } };
const bootstrap = { restore: { source } };
const images = { repository: 'quay.io/coreos/etcd', allowed: [], operator: 'example.com/operator:1' };

const container = (name: string, state: ContainerStatus['state'], lastState?: ContainerStatus['state']) => ({
  name,
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 0,
  ...(state && { state }),
  ...(lastState && { lastState }),
});
const done = { terminated: { exitCode: 0 } };
const failure = { ok: false, reason: 'NoSpace', message: 'the volume is too small\u001b[2J\nfor the snapshot' };
const failed = { terminated: { exitCode: 1, reason: 'Error', message: JSON.stringify(failure) } };
const terminatedWith = (message: string | undefined, reason = 'Error') => ({
  terminated: { exitCode: 1, reason, ...(message !== undefined && { message }) },
});

function podWith(...initContainerStatuses: readonly ContainerStatus[]): Pod {
  const pod = aPod({ status: { phase: 'Pending', initContainerStatuses } });
  const initContainers = [{ name: 'install-tools' }, { name: 'restore' }];
  return { ...pod, spec: { containers: [], ...pod.spec, initContainers } };
}

describe('the state of a restore', () => {
  const tools = container('install-tools', done);
  const noSpace = { is: 'failed', reason: 'NoSpace', message: 'the volume is too small [2J for the snapshot' };
  test.each<[string, Pod, unknown]>([
    ['no Pod with an init container for a restore', aPod(), undefined],
    ['no container has started', podWith(), { is: 'running', what: 'its Pod' }],
    [
      'the tools are installed first',
      podWith(container('install-tools', { running: {} }), container('restore', {})),
      { is: 'running', what: 'install-tools' },
    ],
    [
      'an image cannot be pulled',
      podWith(container('install-tools', { waiting: { reason: 'ErrImagePull', message: 'no such host' } })),
      { is: 'running', what: 'install-tools: ErrImagePull: no such host' },
    ],
    ['it runs', podWith(tools, container('restore', { running: {} })), { is: 'running', what: 'restore' }],
    [
      'the restore container waits for the previous one',
      podWith(tools, container('restore', { waiting: { reason: 'PodInitializing' } })),
      { is: 'running', what: 'restore' },
    ],
    ['the restore has failed', podWith(tools, container('restore', failed)), noSpace],
    [
      'the restore has failed and is retried: the last failure is reported',
      podWith(tools, container('restore', { running: {} }, failed)),
      noSpace,
    ],
    [
      'the restore has failed and waits for its retry',
      podWith(tools, container('restore', { waiting: { reason: 'CrashLoopBackOff' } }, failed)),
      noSpace,
    ],
    [
      'the restore was killed',
      podWith(tools, container('restore', terminatedWith(undefined, 'Error'))),
      {
        is: 'failed',
        reason: 'AgentFailed',
        message: 'container restore ended with exit code 1 (Error) without a result: see its log',
      },
    ],
    [
      'the restore was killed at its memory limit: the message says which field to raise',
      podWith(tools, container('restore', terminatedWith(undefined, 'OOMKilled'))),
      {
        is: 'failed',
        reason: 'OutOfMemory',
        message:
          'container restore was killed at its memory limit: create the cluster again with a larger bootstrap.restore.resources.limits.memory',
      },
    ],
    [
      'a termination message that is not a valid result is not repeated',
      podWith(tools, container('restore', terminatedWith('{"ok":false,"reason":"Ready"}'))),
      { is: 'failed', reason: 'AgentFailed' },
    ],
    [
      'the exit code counts, not a termination message that reports success',
      podWith(tools, container('restore', terminatedWith('{"ok":true,"task":"restore"}'))),
      { is: 'failed', reason: 'AgentFailed' },
    ],
    ['the restore has succeeded', podWith(tools, container('restore', done)), { is: 'done' }],
    ['the restore has succeeded after a failure', podWith(tools, container('restore', done, failed)), { is: 'done' }],
  ])('%s', (_name, pod, expected) => {
    const view = restoreOf(pod);
    if (expected === undefined) expect(view).toBeUndefined();
    else expect(view).toMatchObject(expected as object);
  });
});

const pod = (restore?: RestoreView, more = {}): PodView => ({
  is: 'present',
  ip: '10.0.0.1',
  ready: false,
  startedAt: NOW - 1_000,
  maxLearners: 8,
  ...(restore && { restore }),
  ...more,
});

/** A cluster during a restore: its seed is created, and the cluster ID is not recorded. */
function restoring(is: Is, more: Partial<Gathered> = {}, status: EtcdClusterStatus = LATCHED): Gathered {
  const restored: Is = { fresh: true, ageMs: 60 * 60_000, ...is, spec: { restore: { source }, ...is.spec } };
  const before = world([restored], { replicas: 1, spec: { bootstrap }, etcd: { is: 'notAsked' } });
  const { clusterID: _, ...unformed } = { clusterID: '', ...status };
  const { observed } = before.cluster.status ?? {};
  const cluster = { ...before.cluster, status: { ...unformed, ...(observed && { observed }), membersNamed: 1 } };
  return { ...before, cluster, images, ...more };
}
const condition = (o: Gathered) => {
  const { status, reason, message } = findCondition(decide(o).status.conditions, 'Restored') ?? {};
  return status && `${status} ${reason}: ${message}`;
};

describe('the condition Restored', () => {
  const noSpace: RestoreView = { is: 'failed', reason: 'NoSpace', message: 'the volume is too small' };
  test.each<[string, Gathered, string | undefined]>([
    [
      'it runs',
      restoring({ pod: pod({ is: 'running', what: 'restore' }) }),
      'False Restoring: volume backups/x.db is being restored',
    ],
    [
      'the seed has no Pod yet',
      restoring({ pod: { is: 'absent' } }),
      'False Restoring: volume backups/x.db will be restored when the first member starts',
    ],
    [
      'the restore fails',
      restoring({ pod: pod(noSpace) }),
      'False NoSpace: volume backups/x.db: the volume is too small',
    ],
    [
      'the restore is done, and etcd has not responded',
      restoring({ pod: pod({ is: 'done' }) }),
      'False Restoring: volume backups/x.db is restored, and etcd has not responded yet',
    ],
    [
      'the cluster ID is recorded',
      world([{}], { spec: { bootstrap } }),
      'True Restored: the cluster was restored from volume backups/x.db',
    ],
    ['the spec has no restore', world([{}]), undefined],
  ])('%s', (_name, o, expected) => {
    expect(condition(o)).toBe(expected);
  });

  test('a failure is a Warning Event, and a retry is not', () => {
    const notices = decide(restoring({ pod: pod(noSpace) })).events;
    expect(notices).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'NoSpace' }));
    const good = decide(restoring({ pod: pod({ is: 'running', what: 'restore' }) })).events;
    expect(good.filter(({ type }) => type === 'Warning')).toEqual([]);
  });
});

describe('a seed whose restore fails', () => {
  const noSpace: RestoreView = { is: 'failed', reason: 'NoSpace', message: 'too small' };

  test('is not recreated, and the cluster reports the failure', () => {
    const { rule, message, steps } = decide(restoring({ pod: pod(noSpace) }));
    expect([rule, steps]).toEqual(['waitForSeed', []]);
    expect(message).toContain('restoring the snapshot failed (NoSpace) and is retried: too small');
  });

  test('is not recreated after the progress deadline', () => {
    const late = { ...LATCHED, progressDeadline: new Date(NOW - 60_000).toISOString() };
    expect(decide(restoring({ pod: pod(noSpace), ageMs: 24 * 60 * 60_000 }, {}, late)).steps).toEqual([]);
  });

  test('is recreated when a user sets another version: that may fix it', () => {
    const o = restoring({ pod: pod(noSpace), spec: { version: '3.5.35' } });
    expect(decide(o).rule).toBe('rebuildSeed');
  });
});

test.each([
  [14, 'waitForSeed'],
  [15, 'rebuildSeed'],
])('etcd may read the restored data for %d minutes: %s', (minutes, rule) => {
  const running = pod({ is: 'done' }, { runningSince: NOW - minutes * 60_000 });
  expect(decide(restoring({ pod: running })).rule).toBe(rule);
});

test.each([EVIDENCE.nodeLost, EVIDENCE.volumeLost])(
  'the restored data is lost with its node or volume (%s)',
  (evidence) => {
    const after = (seconds: number) => {
      const { rule, requeueAfterMs } = decide(restoring({ pod: { is: 'absent' }, evidence, ageMs: seconds * 1_000 }));
      return [rule, requeueAfterMs];
    };
    expect([after(59)[0], after(60)[0]]).toEqual(['waitForSeed', 'rebuildSeed']);
    expect(after(20)).toEqual(['waitForSeed', 40_000]); // no event would enqueue it
  },
);

describe('without an operator image', () => {
  const { operator: _, ...without } = images;

  test('a cluster with a restore is not bootstrapped', () => {
    const o = { ...restoring({ pod: { is: 'absent' } }), members: [], images: without };
    const { rule, steps, status } = decide(o);
    expect([rule, steps]).toEqual(['blocked', []]);
    expect(findCondition(status.conditions, 'Available')?.reason).toBe('OperatorImageNotConfigured');
    expect(condition(o)).toContain('False OperatorImageNotConfigured');
  });

  test('a bootstrapped cluster continues', () => {
    const { rule, status } = decide({ ...world([{}], { spec: { bootstrap } }), images: without });
    expect([rule, findCondition(status.conditions, 'Progressing')?.reason]).toEqual(['steady', 'Reconciled']);
  });
});

test('only the seed gets the restore', () => {
  const cluster = aCluster({ spec: { bootstrap }, status: FORMED });
  const target = restoring({}).cluster.status?.observed;
  if (!target) throw new Error('no target');
  expect(seedMember(cluster, 'db-seed', target, 'token').spec.restore).toEqual({ source });
  expect(seedMember(aCluster(), 'db-seed', target, 'token').spec).not.toHaveProperty('restore');
});
