/** Rolling restarts, for a CA rotation: which member restarts, one after the other, and how it leaves the client Service. */

import { describe, expect, test } from 'vitest';
import { down, type Is, name, stepsOf, up, withCredentials } from '../../../../test/support/builders/members.ts';
import {
  BOTH,
  bundle,
  changed,
  draining,
  memory,
  NEW,
  narrowing,
  OLD,
  podless,
  rotating,
  started,
  terminating,
  trust,
  unready,
  widening,
} from '../../../../test/support/builders/rotating.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { iso } from '../../../lib/time.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';
import { restart } from '../rules/restart.ts';

/** etcd also lists a member that a user added. */
const withMirror = (o: Gathered, isLearner: boolean): Gathered => {
  if (o.etcd.is !== 'answers') return o;
  const mirror = { id: 'f00', name: 'mirror', peerURLs: ['https://10.9.9.9:2380'], isLearner };
  return { ...o, etcd: { ...o.etcd, members: [...o.etcd.members, mirror] } };
};

describe('which member is restarted', () => {
  test('none, while the recorded bundle does not change', () => {
    expect([decide(rotating([up, up, up], {})).rule, stepsOf(rotating([up, up, up], {}))]).toEqual(['steady', []]);
  });

  test('one, exactly the observed Pod, with an Event', () => {
    const plan = decide(draining(rotating([started(OLD), started(OLD), started(BOTH)], widening), 1));
    expect([plan.rule, plan.steps]).toEqual([
      'restart',
      [{ do: 'delete', what: { kind: 'Pod', namespace: 'ns', name: name(2), uid: 'pod-2' } }],
    ]);
    expect(plan.events[0]).toMatchObject({ type: 'Normal', reason: 'RotatingCA' });
  });

  test.each<[string, Gathered, readonly string[]]>([
    [
      'the leader last',
      draining(rotating([started(OLD), started(OLD), started(OLD)], widening), 1),
      [`delete ${name(2)}`],
    ],
    [
      'the leader first transfers leadership to a restarted member',
      rotating([started(OLD), started(BOTH), started(BOTH)], widening),
      [`moveLeader ${name(2)}`],
    ],
    [
      'the previous leader, once another member leads',
      draining(rotating([started(OLD), started(BOTH), started(BOTH)], widening, { leader: 2 }), 0),
      [`delete ${name(1)}`],
    ],
    [
      'the member that was taken out of the Service before the clock was set back by an hour',
      draining(rotating([started(OLD), started(OLD), started(BOTH)], widening), 1, -60 * 60_000),
      [`delete ${name(2)}`],
    ],
    ['not while another is down', rotating([started(OLD), started(OLD), started(BOTH, down)], widening), []],
    [
      'not a member that lags far behind: it may not come back',
      rotating([started(BOTH), { ...started(OLD), lag: 6_000 }, started(BOTH)], widening),
      [],
    ],
    [
      'not while the Pod of another is not ready',
      unready(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2),
      [],
    ],
    [
      'not while the Pod of another is being deleted, although its etcd responds',
      terminating(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2),
      [],
    ],
    ['not while another has no Pod', podless(rotating([started(OLD), started(OLD), started(BOTH)], widening), 2), []],
    [
      'not while the number of members is being changed',
      rotating([started(OLD), started(OLD), { ...started(BOTH), as: 'learner' }], widening),
      [`promote ${name(3)}`],
    ],
    [
      'not when the Secret that it mounts is lost',
      rotating([started(OLD), started(OLD), started(OLD)], widening, {
        view: {
          bundles: [{ secret: bundle('peer', BOTH), part: 'peer', findings: [{ is: 'caBundleLost', secret: 'x' }] }],
        },
      }),
      [],
    ],
    [
      'none while all serve certificates of the new CA, and the old CA is still trusted',
      rotating([started(OLD), started(BOTH), started(BOTH)], { ...widening, notReissued: [] }),
      [],
    ],
    [
      'none while the target bundle is not known',
      rotating([started(OLD), started(BOTH), started(BOTH)], {
        ...widening,
        trusted: false,
        target: undefined as never,
      }),
      [],
    ],
    [
      'again when only the new CA is to be trusted',
      draining(rotating([started(BOTH), started(BOTH), started(NEW)], narrowing), 1),
      [`delete ${name(2)}`],
    ],
    [
      'not one whose PVC is being deleted: the PVC would be deleted with the Pod',
      changed(rotating([started(BOTH), started(OLD), started(BOTH)], widening), 1, (m) => ({
        ...m,
        pvc: 'terminating',
      })),
      [`addLearner ${name(10)}`],
    ],
    [
      'a member beside a learner of a user, which has no vote',
      withMirror(draining(rotating([started(BOTH), started(OLD), started(BOTH)], widening), 1), true),
      [`delete ${name(2)}`],
    ],
    [
      'not beside a voter of a user: the quorum needs it, and the operator cannot tell whether it is healthy',
      withMirror(rotating([started(BOTH), started(OLD), started(BOTH)], widening), false),
      [],
    ],
    ['the only member, because its downtime is unavoidable', rotating([started(OLD)], widening), [`delete ${name(1)}`]],
    [
      'a member with data in memory is replaced, when others have the data',
      rotating([started(OLD), started(OLD, memory()), started(BOTH, memory())], widening),
      [`delete ${name(2)}`],
    ],
    [
      'not a member with data in memory when too few others have the data',
      rotating([started(OLD, memory())], widening),
      [],
    ],
  ])('%s', (_, o, expected) => {
    expect(stepsOf(o)).toEqual(expected);
  });

  test('a member in memory is replaced as a whole: its Pod alone would come back empty', () => {
    const [step] = decide(rotating([started(OLD), started(OLD, memory()), started(BOTH, memory())], widening)).steps;
    expect(step).toMatchObject({ do: 'delete', what: { kind: 'EtcdMember', name: name(2) } });
  });

  test('members whose Pods name no CA bundle are not restarted until the bundle changes', () => {
    const calm = rotating([up, up, up], {}, { bare: true, status: { peer: OLD, assumed: { peer: OLD } } });
    expect(stepsOf(calm)).toEqual([]);
    const changed = rotating([up, up, up], widening, { bare: true, status: { peer: BOTH, assumed: { peer: OLD } } });
    expect(stepsOf(draining(changed, 1))).toEqual([`delete ${name(2)}`]);
  });
});

/** The rules of members that join come first, so the rule is asked directly. */
describe('a member that joins', () => {
  const joined = (is: Is, replicas = 5) =>
    restart(
      withCredentials(
        draining(rotating([started(OLD), started(OLD), started(BOTH), started(BOTH, is)], widening, { replicas }), 1),
      ),
    );
  const deleted = (n: number, kind = 'Pod') => [
    { do: 'delete', what: expect.objectContaining({ kind, name: name(n) }) },
  ];
  const fresh = (minutes: number): Is => ({ as: 'learner', fresh: true, ageMs: minutes * 60_000 });

  test('holds up the restart of the others while it starts or catches up', () => {
    expect(joined({ as: 'learner' })).toBeUndefined();
    expect(joined(fresh(9))).toBeUndefined();
    expect(joined({ ...fresh(11), started: true })).toBeUndefined();
    expect(joined({ ...fresh(11), leaving: true })).toBeUndefined();
    expect(joined({ as: 'awaited' })).toBeUndefined();
  });

  test('does not once it has found no node for ten minutes: five members on three nodes rotate their CA', () => {
    expect(joined(fresh(11))?.steps).toEqual(deleted(2));
    expect(joined(fresh(11), 4)?.steps).toEqual(deleted(2));
    expect(joined(fresh(11), 3)).toBeUndefined(); // it is removed first
  });

  test('gets a new Pod with the recorded CA bundle, even if its data will be in memory', () => {
    const o = (is: Is) =>
      withCredentials(rotating([started(BOTH), started(BOTH), started(OLD, { ...fresh(11), ...is })], widening));
    expect(restart(o({}))?.steps).toEqual(deleted(3));
    expect(restart(o(memory()))?.steps).toEqual(deleted(3));
  });
});

const conditionOf = (o: Gathered, type: string) => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && `${found.status} ${found.reason}: ${found.message}`;
};

test('a member in memory is not deleted before it has the deletionPolicy of its cluster', () => {
  const made = rotating([started(OLD), started(OLD, memory()), started(BOTH)], widening);
  const spec = { ...made.cluster.spec, deletionPolicy: 'Retain' } as const;
  const o = { ...made, cluster: { ...made.cluster, spec } };
  expect(restart(withCredentials(o))).toBeUndefined();
  expect(conditionOf(o, 'Progressing')).toContain(
    `the next member is not restarted yet: EtcdMember ${name(2)} does not have the deletionPolicy of its cluster yet`,
  );
});

test('a member that finds no node does not hold up the restarts: the fourth of five on three nodes', () => {
  const stuck = (ageMs: number): Is => ({ as: 'learner', fresh: true, ageMs, pod: { is: 'absent' } });
  const o = (ageMs: number) =>
    rotating([started(OLD), started(OLD), started(BOTH), stuck(ageMs)], widening, { replicas: 5 });
  expect(decide(o(9 * 60_000)).rule).toBe('waitForJoining');
  expect(decide(o(11 * 60_000)).rule).toBe('restart');
});

test('a bundle that is narrowed on one port while members restart for another is recorded before the Pod is deleted', () => {
  const peer = trust({ recorded: BOTH, target: NEW, next: { step: 'narrow', digest: NEW } });
  const client = trust({ part: 'client', recorded: NEW, target: NEW });
  const made = rotating([started(BOTH)], peer, {
    status: { peer: BOTH, client: NEW },
    view: { trusts: [peer, client], proven: ['client', 'peer'] },
  });
  const o = changed(made, 0, (m) => {
    const mount = { leaf: 'db-server-mounted', bundle: bundle('client', BOTH) };
    return m.pod.is === 'present' ? { ...m, pod: { ...m.pod, tls: { ...m.pod.tls, client: mount } } } : m;
  });
  expect([decide(o).latch?.trust?.peer, stepsOf(o)]).toEqual([NEW, [`delete ${name(1)}`]]);
});

describe('the client Service of a restarted member', () => {
  const three = rotating([started(OLD), started(OLD), started(BOTH)], widening);
  const patched = (role: string | null, since: string | null): string =>
    `patch ${name(2)} ${JSON.stringify({ metadata: { labels: { 'etcd-operator.cozystack.io/role': role }, annotations: { 'etcd-operator.cozystack.io/draining-since': since, ...(since === null && { 'etcd-operator.cozystack.io/aside-since': null }) } } })}`;

  test('loses the member before the restart', () => {
    expect(stepsOf(three)).toEqual([patched(null, iso(three.now))]);
  });

  test('has some time to update its endpoints', () => {
    const { steps, requeueAfterMs } = decide(draining(three, 1, 1_000));
    expect([steps, requeueAfterMs]).toEqual([[], 2_000]);
    expect(stepsOf(draining(three, 1, 3_000))).toEqual([`delete ${name(2)}`]);
  });

  test.each<[number, string]>([
    [2_000, `delete ${name(2)}`],
    [1_000, patched(null, iso(three.now))],
  ])('loses a member whose etcd goes on for %d ms when its Pod is deleted: %s', (preStopMs, expected) => {
    const o = changed(three, 1, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, preStopMs } } : m));
    expect(stepsOf(o)).toEqual([expected]);
  });

  test.each<[string, Gathered]>([
    ['because another one is down', rotating([started(OLD), started(OLD), started(BOTH, down)], widening)],
    ['because the rotation is over', rotating([up, up, up], {})],
    [
      'because another member is restarted first',
      rotating([started(OLD), started(BOTH), started(BOTH)], widening, { leader: 2 }),
    ],
  ])('gets back a member that is not restarted after all: %s', (_, o) => {
    expect(stepsOf(draining(o, 1))).toContain(`restoreTraffic: ${patched('voter', null)}`);
  });

  test('does not get back a member whose Pod is being deleted', () => {
    expect(stepsOf(terminating(draining(three, 1), 1))).toEqual([]);
  });
});
