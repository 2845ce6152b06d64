/** Every voter refuses a membership change although all are healthy: which member is restarted, how often, and the conditions. */

import { describe, expect, test } from 'vitest';
import { at, down, type Is, learner, name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import { NO_CERTIFICATES } from '../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { findCondition } from '../../domain/conditions.ts';
import { iso } from '../../lib/time.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { decide } from './decide.ts';
import type { Gathered, MemberView } from './observed.ts';

const MINUTE = 60_000;
const ADD = `add ${name(10)}`;

type Record = EtcdClusterStatus['refusedChange'];
interface More {
  readonly replicas?: number;
  readonly leader?: number;
  readonly refusedMs?: number;
  readonly record?: Record;
}

/** A cluster whose voters have refused to add a member for a while. */
function refused(members: readonly Is[], { refusedMs = MINUTE, record, ...more }: More = {}): Gathered {
  const o = world(members, {
    replicas: members.length + 1,
    ...more,
    ...(record && { status: { refusedChange: record } }),
  });
  const podded = o.members.map((m, i) => changedPod(m, { uid: `pod-${i + 1}` }));
  return {
    ...o,
    members: podded,
    ...remembering('etcd refuses: unhealthy cluster', { is: 'later', call: 'addLearner' }),
    refusedSince: o.now - refusedMs,
  };
}
/** The last step succeeded: etcd refuses nothing now. */
function unrefused(o: Gathered): Gathered {
  const { refusedSince: _, ...rest } = o;
  return { ...rest, memory: NO_MEMORY };
}
const changedPod = (m: MemberView, change: object): MemberView =>
  m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ...change } } : m;
const changed = (o: Gathered, n: number, change: (m: MemberView) => MemberView): Gathered => ({
  ...o,
  members: o.members.map((m, i) => (i === n - 1 ? change(m) : m)),
});
/** Out of the client Service for long enough. */
const drained = (o: Gathered, n: number): Gathered =>
  changed(o, n, (m) => changedPod(m, { drainingSince: o.now - 5_000 }));
const restart = (n: number, secondsAgo: number, pod = 'earlier') => ({
  member: name(n),
  pod,
  at: at(secondsAgo * 1000),
});
/** The restart of this member was recorded just now, for the wanted change. */
const pending = (n: number, change = ADD): Record => ({ change, restarts: [restart(n, 5, `pod-${n}`)] });
const done = (...members: readonly number[]): Record => ({
  change: ADD,
  restarts: members.map((n) => restart(n, 7_200)),
});
const memory: Is = { spec: { storage: { size: '1Gi', medium: 'Memory' } } };
const outOfService = (n: number): string => `out of the Service: ${name(n)}`;
const acts = (o: Gathered): readonly string[] =>
  stepsOf(o).map((step) => {
    const [, member, role] = /patch (\S+) .*role":(null|"voter")/.exec(step) ?? [];
    if (role === undefined) return step;
    return `${role === 'null' ? 'out of' : 'back into'} the Service: ${member}`;
  });

const unreadable = (o: Gathered): Gathered => ({
  ...o,
  certificates: {
    ...o.certificates,
    unreadable: { secrets: ['tls'], message: '500', password: false, judged: true, retryAt: o.now },
  },
});
const adds = [`addLearner ${name(10)}`];

describe('the member that is restarted', () => {
  test.each<[string, Gathered, readonly string[]]>([
    ['is a follower, taken out of the client Service first', refused([up, up, up]), [outOfService(2)]],
    [
      'is one for a member that an earlier operator has created, which is not added again and again meanwhile',
      refused([up, up, up, { as: 'unlisted', fresh: true, spec: { initialCluster: '' } }], { replicas: 4 }),
      [outOfService(2)],
    ],
    ['is none before a minute', refused([up, up, up], { refusedMs: MINUTE - 1 }), adds],
    ['is none when nothing is refused', unrefused(refused([up, up, up])), adds],
    ['loses its Pod after the drain', drained(refused([up, up, up], { record: pending(2) }), 2), [`delete ${name(2)}`]],
    [
      'loses its Pod even if the refusal is no longer known',
      unrefused(drained(refused([up, up, up], { record: pending(2) }), 2)),
      [`delete ${name(2)}`],
    ],
    [
      'is none a minute after it was recorded: the change is retried first',
      unrefused(refused([up, up, up], { record: { change: ADD, restarts: [restart(2, 60, 'pod-2')] } })),
      adds,
    ],
    [
      'is none for another change than the recorded one',
      unrefused(refused([up, up, up], { record: pending(2, `add ${name(9)}`) })),
      adds,
    ],
    [
      'is another one when the first restart did not help',
      refused([up, up, up], { record: done(2) }),
      [outOfService(3)],
    ],
    [
      'is the leader last, after a leadership transfer',
      refused([up, up, up], { record: done(2, 3) }),
      [`moveLeader ${name(2)}`],
    ],
    [
      'is the previous leader as a follower',
      unrefused(drained(refused([up, up, up], { leader: 2, record: pending(1) }), 1)),
      [`delete ${name(1)}`],
    ],
    ['is none a second time, however long ago the first was', refused([up, up, up], { record: done(1, 2, 3) }), adds],
    [
      'is none a second time within an hour, whatever was refused then',
      refused([up, up, up], { record: { change: `add ${name(9)}`, restarts: [restart(2, 3_000), restart(3, 3_700)] } }),
      [outOfService(3)],
    ],
    [
      'is again the one that was recorded and not restarted',
      refused([up, up, up], { record: { change: ADD, restarts: [restart(2, 90, 'pod-2')] } }),
      [outOfService(2)],
    ],
    ['is one of two: otherwise the cluster could never grow', refused([up, up]), [outOfService(2)]],
    ['is never the only voter: etcd does not refuse changes for lack of active peers', refused([up]), adds],
    ['is none while a voter is down', refused([up, up, down]), []],
    ['is none while a voter lags', refused([up, up, { lag: 6_000 }]), []],
    ['is none while a voter has no leader', refused([up, up, { leaderless: true }]), []],
    ['is none while a learner joins', refused([up, up, learner], { replicas: 4 }), [`promote ${name(3)}`]],
    [
      'is none while an etcd responds with another id',
      changed(refused([up, up, up]), 3, (m) => ({ ...m, ...(m.self && { self: { ...m.self, id: 'f00' } }) })),
      [],
    ],
    ['is none while Secrets cannot be read', unreadable(refused([up, up, up])), adds],
    [
      'is none while voters do not agree on a leader',
      changed(refused([up, up, up]), 3, (m) => ({ ...m, ...(m.self && { self: { ...m.self, leader: 'f00' } }) })),
      adds,
    ],
    [
      'is none while a Pod is not ready',
      changed(refused([up, up, up]), 3, (m) => changedPod(m, { ready: false })),
      adds,
    ],
    [
      'is none while a Pod is being deleted',
      changed(refused([up, up, up]), 3, (m) => changedPod(m, { terminating: true })),
      adds,
    ],
    ['is never one with its data in memory', refused([memory, memory, memory]), adds],
    [
      'is not one whose PVC is being deleted, but another',
      changed(refused([up, up, up]), 2, (m) => ({ ...m, pvc: 'terminating' })),
      [outOfService(3)],
    ],
    [
      'is not one whose PVC is missing from the cache',
      changed(refused([up, up, up]), 2, ({ object, pod, self }) => ({ object, pod, self })),
      [outOfService(3)],
    ],
    [
      'is not one whose image is no longer allowed',
      changed(refused([up, up, up]), 2, (m) => ({
        ...m,
        object: { ...m.object, spec: { ...m.object.spec, image: { repository: 'evil.example.com/etcd' } } },
      })),
      [outOfService(3)],
    ],
    [
      'is the same while the spec is blocked: new Pods do not depend on it',
      blocked(refused([up, up, up])),
      [outOfService(2)],
    ],
    ['is none while the cluster is being deleted', deleted(refused([up, up, up])), []],
    [
      'is none while the cluster is paused',
      refused([up, up, { leaving: true }], { replicas: 0 }),
      [1, 2, 3].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    [
      'is the member to be removed, even while another joins: promotion comes after the removal',
      refused([up, up, { leaving: true }, learner], { replicas: 3 }),
      [outOfService(3)],
    ],
    [
      'is none when no change is wanted any more',
      unrefused(refused([up, up, up], { replicas: 3, record: pending(2) })),
      [],
    ],
    [
      'is the member to be removed: while it restarts it counts as down, and etcd accepts its removal',
      refused([up, up, { leaving: true }], { replicas: 2 }),
      [outOfService(3)],
    ],
    [
      'is one of several that are all being deleted',
      refused([leaving(), leaving()], { replicas: 2 }),
      [outOfService(2)],
    ],
  ])('%s', (_, o, expected) => {
    expect(acts(o)).toEqual(expected);
  });

  test('is none while its Pod could not mount a certificate', () => {
    const finding = { is: 'caBundleLost', secret: 'x' } as const;
    const bundles = [{ secret: 'x', part: 'peer', findings: [finding] } as const];
    const o = { ...refused([up, up, up]), certificates: { ...NO_CERTIFICATES, bundles } };
    expect(decide(o).rule).not.toBe('restartRefusing');
    expect(
      decide({ ...refused([up, up, { leaving: true }], { replicas: 2 }), certificates: o.certificates }).rule,
    ).toBe('removeLeaving');
  });

  test('is recorded with the uid of its Pod before anything else', () => {
    const o = refused([up, up, up], {
      record: { change: `add ${name(9)}`, restarts: [restart(3, 3_000), restart(1, 3_700)] },
    });
    const { rule, latch } = decide(o);
    const restarts = [restart(3, 3_000), { member: name(2), pod: 'pod-2', at: iso(o.now) }];
    expect([rule, latch]).toEqual(['restartRefusing', { refusedChange: { change: ADD, restarts } }]);
    const then = decide(drained(refused([up, up, up], { record: pending(2) }), 2));
    expect(then.latch).toBeUndefined();
    expect(then.steps).toEqual([{ do: 'delete', what: { kind: 'Pod', namespace: 'ns', name: name(2), uid: 'pod-2' } }]);
    expect(then.events[0]).toMatchObject({ type: 'Normal', reason: 'RestartingMember' });
  });

  test('is recorded once more if it was not restarted within a minute', () => {
    const o = refused([up, up, up], { record: { change: ADD, restarts: [restart(2, 90, 'pod-2')] } });
    expect(decide(o).latch?.refusedChange?.restarts).toEqual([{ member: name(2), pod: 'pod-2', at: iso(o.now) }]);
  });

  test('is put back into the client Service if it is not restarted after all', () => {
    const o = unrefused(drained(refused([up, up, up], { replicas: 3, record: pending(2) }), 2));
    expect(acts(o)).toEqual([`back into the Service: ${name(2)}`]);
    const other = drained(unrefused(refused([up, up, up], { record: pending(2) })), 3);
    const back = `back into the Service: ${name(3)}`;
    expect(acts(other)).toEqual([outOfService(2), back]);
    expect(acts(drained(other, 2))).toEqual([`delete ${name(2)}`, back]);
  });
});

describe('the conditions', () => {
  const conditionOf = (o: Gathered, type: string): string => {
    const found = findCondition(decide(o).status.conditions, type);
    return `${found?.status} ${found?.reason}: ${found?.message}`;
  };
  const since = at(MINUTE).replace('.000Z', 'Z');

  test.each<[string, Gathered, string]>([
    ['name the member that is restarted', refused([up, up, up]), `. Restarting ${name(2)}`],
    [
      'report why it is not restarted now',
      refused([memory, memory, memory]),
      `${name(2)} cannot be restarted now: ${name(2)} has its data in memory only`,
    ],
    [
      'report that each member was restarted',
      refused([up, up, up], { record: done(1, 2, 3) }),
      `has restarted each of them once (${name(1)}, ${name(2)}, ${name(3)}) and restarts no more`,
    ],
  ])('%s', (_, o, sentence) => {
    expect(conditionOf(o, 'Degraded')).toMatch(/^True MembershipChangeRefused: /);
    expect(conditionOf(o, 'Degraded')).toContain(`etcd has refused to ${ADD} since ${since}: every voter responds`);
    expect(conditionOf(o, 'Degraded')).toContain(sentence);
  });

  test('Progressing is False only when the operator restarts no more', () => {
    expect(conditionOf(refused([up, up, up]), 'Progressing')).toMatch(/^True Scaling/);
    expect(conditionOf(refused([up, up, up], { record: done(1, 2, 3) }), 'Progressing')).toMatch(
      /^False MembershipChangeRefused: .*delete the Pod of a follower/,
    );
  });

  test('report nothing in the first minute, nor after the change succeeded', () => {
    expect(conditionOf(refused([up, up, up], { refusedMs: MINUTE - 1 }), 'Degraded')).toMatch(/^False/);
    expect(conditionOf(unrefused(refused([up, up, up], { record: done(2) })), 'Degraded')).toMatch(/^False/);
  });
});

function leaving(): Is {
  return { leaving: true, voted: true };
}
function blocked(o: Gathered): Gathered {
  const image = { repository: 'evil.example.com/etcd' };
  return { ...o, cluster: { ...o.cluster, spec: { ...o.cluster.spec, image } } };
}
function deleted(o: Gathered): Gathered {
  return { ...o, cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, deletionTimestamp: at(0) } } };
}
