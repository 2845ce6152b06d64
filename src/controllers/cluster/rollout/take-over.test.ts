/** A cluster that this operator takes over from an earlier one: what differs from the spec waits for an edit. */
import { describe, expect, test } from 'vitest';
import { DAY, type Is, up, world } from '../../../../test/support/builders/members.ts';
import { targetOf } from '../../../api/defaults.ts';
import type { EtcdClusterSpec } from '../../../api/etcd-cluster.ts';
import { RESTARTED_AT_ANNOTATION } from '../../../api/names.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';

const MIRROR = 'mirror.local/etcd';
const settled: Is = { ...up, readyForMs: DAY };

/** The earlier operator has recorded another priorityClassName than the spec has, and its members have none. */
const found = (spec: Partial<EtcdClusterSpec> = {}): Gathered => {
  const o = world([settled, settled, settled], { spec: { priorityClassName: 'high', ...spec } });
  const { priorityClassName: _, image: _image, ...had } = o.cluster.spec;
  const observed = targetOf(had, o.cluster.status);
  return { ...o, cluster: { ...o.cluster, status: { ...o.cluster.status, observed } } };
};

/** After a reconcile that changed only the status, and after what users did then. */
const then = (o: Gathered, spec: Partial<EtcdClusterSpec> = {}, more: Partial<Gathered> = {}): Gathered => {
  const { steps, status, latch } = decide(o);
  expect(steps).toEqual([]);
  const edited = { ...o.cluster, spec: { ...o.cluster.spec, ...spec }, status: { ...status, ...latch } };
  return { ...o, cluster: edited, ...more };
};
const restarts = (o: Gathered): boolean => {
  const { rule, steps } = decide(o);
  return rule === 'restart' && steps.length > 0;
};
const reason = (o: Gathered) => findCondition(decide(o).status.conditions, 'Progressing')?.reason;

const allowed = { images: { repository: 'quay.io/coreos/etcd', allowed: [MIRROR] } };
const suspended = { suspend: true };
const resumed = { suspend: false };
const edit = { priorityClassName: 'higher' };

describe('no member restarts for what was found', () => {
  test.each<[string, Gathered]>([
    ['at once', then(found())],
    ['while it is suspended', then(then(then(found(suspended)), resumed))],
    [
      'while it is suspended, and edited and taken back',
      then(then(then(found(suspended), edit), { ...resumed, priorityClassName: 'high' })),
    ],
    ['while its image is not allowed', then(then(then(found({ image: { repository: MIRROR } })), {}, allowed))],
    [
      'while it is suspended, and its image is not allowed',
      then(then(then(then(found({ ...suspended, image: { repository: MIRROR } })), resumed), {}, allowed)),
    ],
  ])('%s', (_, o) => {
    expect([restarts(o), reason(o)]).toEqual([false, 'UpdatePending']);
    expect(o.cluster.status?.rollout).toBeUndefined();
    expect(restarts(then(then(o)))).toBe(false);
  });

  test('until the spec is edited', () => {
    expect(restarts(then(then(found()), edit))).toBe(false); // recorded first
    expect(restarts(then(then(then(found()), edit)))).toBe(true);
  });

  test('until a restart is requested', () => {
    const o = then(then(then(found(suspended)), resumed));
    const annotations = { [RESTARTED_AT_ANNOTATION]: 'now' };
    expect(restarts({ ...o, cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, annotations } } })).toBe(true);
  });
});

describe('an edit is rolled out that a user makes', () => {
  test.each<[string, Gathered]>([
    ['while the cluster is suspended', then(then(then(found(suspended), edit), resumed))],
    ['when the cluster is resumed', then(then(then(found(suspended)), { ...resumed, ...edit }))],
    ['after the cluster was resumed', then(then(then(then(found(suspended)), resumed), edit))],
    ['while its image is not allowed', then(then(then(found({ image: { repository: MIRROR } })), edit, allowed))],
    ['in a cluster that was suspended later', then(then(then(then(found()), { ...suspended, ...edit }), resumed))],
  ])('%s', (_, o) => {
    expect(restarts(o)).toBe(true);
  });
});

test('an edit is not reported as one that waits in the reconcile that adopts it', () => {
  expect(reason(then(then(found()), edit))).toBe('RollingOut');
});
