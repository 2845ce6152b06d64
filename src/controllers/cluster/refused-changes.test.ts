/** Every voter refuses a membership change although all are healthy: who is restarted for it, how often, and what is said. */
import { describe, expect, test } from 'vitest';
import { at, down, type Is, learner, name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { NO_CERTIFICATES } from '../../access/evaluate/view.ts';
import { findCondition } from '../../api/conditions.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { iso } from '../../lib/time.ts';
import { decide } from './decide.ts';
import type { MemberView, Observed } from './observed.ts';

const MINUTE = 60_000;
const ADD = `add ${name(10)}`;

type Record = EtcdClusterStatus['refusedChange'];
interface More {
  readonly replicas?: number;
  readonly leader?: number;
  readonly refusedMs?: number;
  readonly record?: Record;
}

/** Members that were refused another one for a while. */
function refused(members: readonly Is[], { refusedMs = MINUTE, record, ...more }: More = {}): Observed {
  const o = world(members, {
    replicas: members.length + 1,
    ...more,
    ...(record && { status: { refusedChange: record } }),
  });
  const podded = o.members.map((m, i) => changedPod(m, { uid: `pod-${i + 1}` }));
  return { ...o, members: podded, refusal: 'etcd refuses: unhealthy cluster', refusedSince: o.now - refusedMs };
}
/** The last step went well: nothing is refused at this moment. */
function unrefused(o: Observed): Observed {
  const { refusedSince: _, ...rest } = o;
  return { ...rest, refusal: undefined };
}
const changedPod = (m: MemberView, change: object): MemberView =>
  m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ...change } } : m;
const changed = (o: Observed, n: number, change: (m: MemberView) => MemberView): Observed => ({
  ...o,
  members: o.members.map((m, i) => (i === n - 1 ? change(m) : m)),
});
/** Out of the client Service for long enough. */
const drained = (o: Observed, n: number): Observed =>
  changed(o, n, (m) => changedPod(m, { drainingSince: o.now - 5_000 }));
const restart = (n: number, secondsAgo: number, pod = 'earlier') => ({
  member: name(n),
  pod,
  at: at(secondsAgo * 1000),
});
/** The restart of this member was recorded a moment ago, for the change that is wanted. */
const pending = (n: number, change = ADD): Record => ({ change, restarts: [restart(n, 5, `pod-${n}`)] });
const done = (...members: readonly number[]): Record => ({
  change: ADD,
  restarts: members.map((n) => restart(n, 7_200)),
});
const memory: Is = { spec: { storage: { size: '1Gi', medium: 'Memory' } } };
const outOfService = (n: number): string => `out of the Service: ${name(n)}`;
const acts = (o: Observed): readonly string[] =>
  stepsOf(o).map((step) => {
    const [, member, role] = /^patch (\S+) .*role":(null|"voter")/.exec(step) ?? [];
    if (role === undefined) return step;
    return `${role === 'null' ? 'out of' : 'back into'} the Service: ${member}`;
  });

const unreadable = (o: Observed): Observed => ({
  ...o,
  certificates: {
    ...o.certificates,
    unreadable: { secrets: ['tls'], why: '500', password: false, judged: true, retryAt: o.now },
  },
});
const adds = [`addLearner ${name(10)}`];

describe('who is restarted', () => {
  test.each<[string, Observed, readonly string[]]>([
    ['a follower, out of the Service first', refused([up, up, up]), [outOfService(2)]],
    ['not before a minute', refused([up, up, up], { refusedMs: MINUTE - 1 }), adds],
    ['not when nothing is refused', unrefused(refused([up, up, up])), adds],
    ['then its Pod is deleted', drained(refused([up, up, up], { record: pending(2) }), 2), [`delete ${name(2)}`]],
    [
      'also when the refusal is forgotten by then',
      unrefused(drained(refused([up, up, up], { record: pending(2) }), 2)),
      [`delete ${name(2)}`],
    ],
    [
      'not a minute after it was recorded: the change is tried first',
      unrefused(refused([up, up, up], { record: { change: ADD, restarts: [restart(2, 60, 'pod-2')] } })),
      adds,
    ],
    [
      'not for another change than was recorded',
      unrefused(refused([up, up, up], { record: pending(2, `add ${name(9)}`) })),
      adds,
    ],
    ['another one when that did not help', refused([up, up, up], { record: done(2) }), [outOfService(3)]],
    ['the leader last, which hands over', refused([up, up, up], { record: done(2, 3) }), [`moveLeader ${name(2)}`]],
    [
      'and is restarted as a follower',
      unrefused(drained(refused([up, up, up], { leader: 2, record: pending(1) }), 1)),
      [`delete ${name(1)}`],
    ],
    ['nobody a second time, however long ago the first was', refused([up, up, up], { record: done(1, 2, 3) }), adds],
    [
      'nobody a second time within an hour, whatever was refused then',
      refused([up, up, up], { record: { change: `add ${name(9)}`, restarts: [restart(2, 3_000), restart(3, 3_700)] } }),
      [outOfService(3)],
    ],
    [
      'again the one that was recorded and not restarted',
      refused([up, up, up], { record: { change: ADD, restarts: [restart(2, 90, 'pod-2')] } }),
      [outOfService(2)],
    ],
    ['one of two, which is better than never to grow', refused([up, up]), [outOfService(2)]],
    ['never the only one: etcd cannot refuse it so', refused([up]), adds],
    ['not while a voter is down', refused([up, up, down]), []],
    ['not while a voter lags', refused([up, up, { lag: 6_000 }]), []],
    ['not while a voter follows nobody', refused([up, up, { leaderless: true }]), []],
    ['not while one joins', refused([up, up, learner], { replicas: 4 }), [`promote ${name(3)}`]],
    [
      'not while an etcd answers under another id',
      changed(refused([up, up, up]), 3, (m) => ({ ...m, ...(m.self && { self: { ...m.self, id: 'f00' } }) })),
      [],
    ],
    ['not while Secrets cannot be read', unreadable(refused([up, up, up])), adds],
    [
      'not while they do not agree on a leader',
      changed(refused([up, up, up]), 3, (m) => ({ ...m, ...(m.self && { self: { ...m.self, leader: 'f00' } }) })),
      adds,
    ],
    ['not while a Pod is not ready', changed(refused([up, up, up]), 3, (m) => changedPod(m, { ready: false })), adds],
    [
      'not while a Pod is being deleted',
      changed(refused([up, up, up]), 3, (m) => changedPod(m, { terminating: true })),
      adds,
    ],
    ['never one with its data in memory', refused([memory, memory, memory]), adds],
    [
      'not one whose PVC is being deleted, but another',
      changed(refused([up, up, up]), 2, (m) => ({ ...m, pvc: 'terminating' })),
      [outOfService(3)],
    ],
    [
      'not one whose PVC nobody has seen',
      changed(refused([up, up, up]), 2, ({ object, pod, self }) => ({ object, pod, self })),
      [outOfService(3)],
    ],
    [
      'not one whose image is not allowed any more',
      changed(refused([up, up, up]), 2, (m) => ({
        ...m,
        object: { ...m.object, spec: { ...m.object.spec, image: { repository: 'evil.example.com/etcd' } } },
      })),
      [outOfService(3)],
    ],
    ['nobody while the spec is blocked', blocked(refused([up, up, up])), adds],
    ['nobody while the cluster is being deleted', deleted(refused([up, up, up])), []],
    [
      'nobody while it is paused',
      refused([up, up, { leaving: true }], { replicas: 0 }),
      [1, 2, 3].map((n) => `patch ${name(n)} {"spec":{"dormant":true}}`),
    ],
    [
      'who is to be removed, also while another joins: its promotion comes after the removal',
      refused([up, up, { leaving: true }, learner], { replicas: 3 }),
      [outOfService(3)],
    ],
    [
      'nobody when nothing is wanted any more',
      unrefused(refused([up, up, up], { replicas: 3, record: pending(2) })),
      [],
    ],
    [
      'who is to be removed: while it is away it counts as down, and is let go',
      refused([up, up, { leaving: true }], { replicas: 2 }),
      [outOfService(3)],
    ],
    ['one of several that are all being deleted', refused([gone(), gone()], { replicas: 2 }), [outOfService(2)]],
  ])('%s', (_, o, expected) => {
    expect(acts(o)).toEqual(expected);
  });

  test('nobody while its Pod would find no certificate', () => {
    const finding = { is: 'caBundleLost', secret: 'x' } as const;
    const bundles = [{ secret: 'x', part: 'peer', findings: [finding] } as const];
    const o = { ...refused([up, up, up]), certificates: { ...NO_CERTIFICATES, bundles } };
    expect(decide(o).rule).not.toBe('restartRefusing');
    expect(
      decide({ ...refused([up, up, { leaving: true }], { replicas: 2 }), certificates: o.certificates }).rule,
    ).toBe('removeLeaving');
  });

  test('exactly the Pod that was recorded, and before anything is done to it', () => {
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

  test('what was recorded and not done in a minute is recorded once more', () => {
    const o = refused([up, up, up], { record: { change: ADD, restarts: [restart(2, 90, 'pod-2')] } });
    expect(decide(o).latch?.refusedChange?.restarts).toEqual([{ member: name(2), pod: 'pod-2', at: iso(o.now) }]);
  });

  test('a member that is not restarted after all is put back into the Service', () => {
    const o = unrefused(drained(refused([up, up, up], { replicas: 3, record: pending(2) }), 2));
    expect(acts(o)).toEqual([`back into the Service: ${name(2)}`]);
    const other = drained(unrefused(refused([up, up, up], { record: pending(2) })), 3);
    expect(acts(other)).toEqual([outOfService(2)]);
    expect(acts(drained(other, 2))).toEqual([`delete ${name(2)}`]);
  });
});

describe('what is said', () => {
  const said = (o: Observed, type: string): string => {
    const found = findCondition(decide(o).status.conditions, type);
    return `${found?.status} ${found?.reason}: ${found?.message}`;
  };
  const since = at(MINUTE).replace('.000Z', 'Z');

  test.each<[string, Observed, string]>([
    ['who is restarted', refused([up, up, up]), `. ${name(2)} is restarted`],
    [
      'why it waits',
      refused([memory, memory, memory]),
      `${name(2)} is to be restarted, but not now: ${name(2)} has its data in memory only`,
    ],
    [
      'that a person is needed',
      refused([up, up, up], { record: done(1, 2, 3) }),
      `has restarted each of them once (${name(1)}, ${name(2)}, ${name(3)}), and does not go on`,
    ],
  ])('%s', (_, o, sentence) => {
    expect(said(o, 'Degraded')).toMatch(/^True MembershipChangeRefused: /);
    expect(said(o, 'Degraded')).toContain(`etcd refuses to ${ADD} since ${since}: every voter answers`);
    expect(said(o, 'Degraded')).toContain(sentence);
  });

  test('Progressing is False only when the operator does not go on', () => {
    expect(said(refused([up, up, up]), 'Progressing')).toMatch(/^True Scaling/);
    expect(said(refused([up, up, up], { record: done(1, 2, 3) }), 'Progressing')).toMatch(
      /^False MembershipChangeRefused: .*delete the Pod of a follower/,
    );
  });

  test('nothing in the first minute, nor when the change went through', () => {
    expect(said(refused([up, up, up], { refusedMs: MINUTE - 1 }), 'Degraded')).toMatch(/^False/);
    expect(said(unrefused(refused([up, up, up], { record: done(2) })), 'Degraded')).toMatch(/^False/);
  });
});

function gone(): Is {
  return { leaving: true, voted: true };
}
function blocked(o: Observed): Observed {
  const annotations = { 'etcd-operator.cozystack.io/peer-auto-tls': 'true' };
  return { ...o, cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, annotations } } };
}
function deleted(o: Observed): Observed {
  return { ...o, cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, deletionTimestamp: at(0) } } };
}
