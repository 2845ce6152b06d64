import { describe, expect, test } from 'vitest';
import { aCluster, aPod, FORMED, LATCHED, NOW } from '../../../test/support/builders/builders.ts';
import { type Is, world } from '../../../test/support/builders/members.ts';
import { findCondition } from '../../api/conditions.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import type { ContainerStatus, Pod } from '../../gen/kube.ts';
import { seedMember } from './build.ts';
import { decide } from './decide.ts';
import type { Observed, PodView } from './observed.ts';
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
const said = (message: string | undefined, reason = 'Error') => ({
  terminated: { exitCode: 1, reason, ...(message !== undefined && { message }) },
});

function podWith(...initContainerStatuses: readonly ContainerStatus[]): Pod {
  const pod = aPod({ status: { phase: 'Pending', initContainerStatuses } });
  const initContainers = [{ name: 'install-tools' }, { name: 'restore' }];
  return { ...pod, spec: { containers: [], ...pod.spec, initContainers } };
}

describe('how far the restore of a seed is', () => {
  const tools = container('install-tools', done);
  const noSpace = { is: 'failed', reason: 'NoSpace', message: 'the volume is too small [2J for the snapshot' };
  test.each<[string, Pod, unknown]>([
    ['no Pod with a restore', aPod(), undefined],
    ['nothing has started', podWith(), { is: 'running', what: 'its Pod' }],
    [
      'the tools come first',
      podWith(container('install-tools', { running: {} }), container('restore', {})),
      { is: 'running', what: 'install-tools' },
    ],
    [
      'an image cannot be had',
      podWith(container('install-tools', { waiting: { reason: 'ErrImagePull', message: 'no such host' } })),
      { is: 'running', what: 'install-tools: ErrImagePull: no such host' },
    ],
    ['it runs', podWith(tools, container('restore', { running: {} })), { is: 'running', what: 'restore' }],
    [
      'it waits for its turn',
      podWith(tools, container('restore', { waiting: { reason: 'PodInitializing' } })),
      { is: 'running', what: 'restore' },
    ],
    ['it has failed', podWith(tools, container('restore', failed)), noSpace],
    [
      'it has failed and is tried again: what is known is not forgotten',
      podWith(tools, container('restore', { running: {} }, failed)),
      noSpace,
    ],
    [
      'it has failed and waits',
      podWith(tools, container('restore', { waiting: { reason: 'CrashLoopBackOff' } }, failed)),
      noSpace,
    ],
    [
      'it was killed',
      podWith(tools, container('restore', said(undefined, 'OOMKilled'))),
      {
        is: 'failed',
        reason: 'AgentFailed',
        message: 'container restore ended with exit code 1 (OOMKilled) and did not say why: see its log',
      },
    ],
    [
      'somebody else says something: it is not repeated',
      podWith(tools, container('restore', said('{"ok":false,"reason":"Ready"}'))),
      { is: 'failed', reason: 'AgentFailed' },
    ],
    [
      'it fails and says that it did not: it did',
      podWith(tools, container('restore', said('{"ok":true,"task":"restore"}'))),
      { is: 'failed', reason: 'AgentFailed' },
    ],
    ['it has succeeded', podWith(tools, container('restore', done)), { is: 'done' }],
    ['it has succeeded after a failure', podWith(tools, container('restore', done, failed)), { is: 'done' }],
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

/** A seed that is restored: made, and not recorded as a cluster. */
function restoring(is: Is, more: Partial<Observed> = {}, status: EtcdClusterStatus = LATCHED): Observed {
  const restored: Is = { fresh: true, ageMs: 60 * 60_000, ...is, spec: { restore: { source }, ...is.spec } };
  const before = world([restored], { replicas: 1, spec: { bootstrap }, etcd: { is: 'notAsked' } });
  const { clusterID: _, ...unformed } = { clusterID: '', ...status };
  const { observed } = before.cluster.status ?? {};
  const cluster = { ...before.cluster, status: { ...unformed, ...(observed && { observed }), membersNamed: 1 } };
  return { ...before, cluster, images, ...more };
}
const condition = (o: Observed) => {
  const { status, reason, message } = findCondition(decide(o).status.conditions, 'Restored') ?? {};
  return status && `${status} ${reason}: ${message}`;
};

describe('what is said about it', () => {
  const noSpace: RestoreView = { is: 'failed', reason: 'NoSpace', message: 'the volume is too small' };
  test.each<[string, Observed, string | undefined]>([
    [
      'it runs',
      restoring({ pod: pod({ is: 'running', what: 'restore' }) }),
      'False Restoring: volume backups/x.db is being restored',
    ],
    [
      'there is no Pod yet',
      restoring({ pod: { is: 'absent' } }),
      'False Restoring: volume backups/x.db will be restored when the first member starts',
    ],
    ['it fails', restoring({ pod: pod(noSpace) }), 'False NoSpace: volume backups/x.db: the volume is too small'],
    [
      'it is done, and etcd has not answered',
      restoring({ pod: pod({ is: 'done' }) }),
      'False Restoring: volume backups/x.db is restored, and its etcd has not answered yet',
    ],
    [
      'the cluster is recorded',
      world([{}], { spec: { bootstrap } }),
      'True Restored: the cluster began with the data of volume backups/x.db',
    ],
    ['nobody asked for it', world([{}]), undefined],
  ])('%s', (_name, o, expected) => {
    expect(condition(o)).toBe(expected);
  });

  test('a failure is told in an Event, and that it goes on is no warning', () => {
    const notices = decide(restoring({ pod: pod(noSpace) })).events;
    expect(notices).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'NoSpace' }));
    const good = decide(restoring({ pod: pod({ is: 'running', what: 'restore' }) })).events;
    expect(good.filter(({ type }) => type === 'Warning')).toEqual([]);
  });
});

describe('a seed whose restore fails', () => {
  const noSpace: RestoreView = { is: 'failed', reason: 'NoSpace', message: 'too small' };

  test('is left alone, and the cluster says why nothing happens', () => {
    const { rule, message: why, steps } = decide(restoring({ pod: pod(noSpace) }));
    expect([rule, steps]).toEqual(['waitForSeed', []]);
    expect(why).toContain('cannot be restored (NoSpace), and is tried again: too small');
  });

  test('is left alone when its time is long over', () => {
    const late = { ...LATCHED, progressDeadline: new Date(NOW - 60_000).toISOString() };
    expect(decide(restoring({ pod: pod(noSpace), ageMs: 24 * 60 * 60_000 }, {}, late)).steps).toEqual([]);
  });

  test('is made again when somebody asks for another version: that may be what it lacks', () => {
    const o = restoring({ pod: pod(noSpace), spec: { version: '3.5.35' } });
    expect(decide(o).rule).toBe('rebuildSeed');
  });
});

test.each([
  [14, 'waitForSeed'],
  [15, 'rebuildSeed'],
])('etcd may read what was restored for %d minutes: %s', (minutes, rule) => {
  const running = pod({ is: 'done' }, { runningSince: NOW - minutes * 60_000 });
  expect(decide(restoring({ pod: running })).rule).toBe(rule);
});

test.each([EVIDENCE.nodeLost, EVIDENCE.volumeLost])('what was restored went with its place (%s)', (evidence) => {
  const after = (seconds: number) => {
    const { rule, requeueAfterMs: wakeAfter } = decide(
      restoring({ pod: { is: 'absent' }, evidence, ageMs: seconds * 1_000 }),
    );
    return [rule, wakeAfter];
  };
  expect([after(59)[0], after(60)[0]]).toEqual(['waitForSeed', 'rebuildSeed']);
  expect(after(20)).toEqual(['waitForSeed', 40_000]); // nobody else would look again
});

describe('without an image for agents', () => {
  const { operator: _, ...without } = images;

  test('a cluster that is to begin with a snapshot is not begun', () => {
    const o = { ...restoring({ pod: { is: 'absent' } }), members: [], images: without };
    const { rule, steps, status } = decide(o);
    expect([rule, steps]).toEqual(['blocked', []]);
    expect(findCondition(status.conditions, 'Available')?.reason).toBe('OperatorImageNotConfigured');
    expect(condition(o)).toContain('False OperatorImageNotConfigured');
  });

  test('one that exists goes on', () => {
    const { rule, status } = decide({ ...world([{}], { spec: { bootstrap } }), images: without });
    expect([rule, findCondition(status.conditions, 'Progressing')?.reason]).toEqual(['steady', 'Reconciled']);
  });
});

test('the seed is told what to begin with, and no later member is', () => {
  const cluster = aCluster({ spec: { bootstrap }, status: FORMED });
  const target = restoring({}).cluster.status?.observed;
  if (!target) throw new Error('no target');
  expect(seedMember(cluster, 'db-seed', target, 'token').spec.restore).toEqual({ source });
  expect(seedMember(aCluster(), 'db-seed', target, 'token').spec).not.toHaveProperty('restore');
});
