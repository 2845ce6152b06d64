/** A seed that is rebuilt gets another name: the Pod and the PVC of the previous one may be stuck on a dead node. */
import { describe, expect, test } from 'vitest';
import { CLUSTER_ID } from '../../../test/support/builders/builders.ts';
import { down, entry, type Is, name, stepsOf, unreachable, up, world } from '../../../test/support/builders/members.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

/** A cluster without an ID, and its seed; `membersNamed` is the recorded number. */
function unformed(seed: Is | undefined, membersNamed = 1, etcd: Gathered['etcd'] = unreachable): Gathered {
  const o = world(seed ? [seed] : [], { replicas: 3, etcd });
  const { clusterID: _, ...status } = o.cluster.status ?? {};
  return { ...o, cluster: { ...o.cluster, status: { ...status, membersNamed } } };
}
const answers = { is: 'answers', clusterID: CLUSTER_ID, members: [entry(1, up)], alarms: [] } as const;
const fresh: Is = { ...down, fresh: true, voted: false, ageMs: 1_000 };
const pending = (spec: Is['spec'] = {}): Is => ({
  ...fresh,
  pod: { is: 'absent' },
  spec: { initialCluster: '', ...spec },
});
const outdated: Is = { ...fresh, spec: { version: '3.6.99' } };
/** Another object has the name of its Pod. */
const conflicting = (ageMs: number): Is => ({ ...fresh, evidence: 'NameConflict', ageMs, pod: { is: 'absent' } });
const silent: Is = {
  ...fresh,
  ageMs: 61_000,
  pod: { is: 'present', ready: false, ip: '10.0.0.1', runningSince: 0, maxLearners: 8 },
};

describe('the rule that decides', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    [
      'the previous seed is deleted: the next one has another name',
      unformed(undefined, 2),
      'bootstrap',
      [`create ${name(2)}`],
    ],
    [
      'a crash before the seed was created: it has the recorded name',
      unformed(undefined, 1),
      'bootstrap',
      [`create ${name(1)}`],
    ],
    [
      'the deletion of the previous seed was refused: it is deleted before another one is created',
      unformed(fresh, 2),
      'rebuildSeed',
      [`delete ${name(1)}`],
    ],
    [
      'the previous seed responds after all: it is not taken for the cluster',
      unformed(fresh, 2, answers),
      'rebuildSeed',
      [`delete ${name(1)}`],
    ],
    [
      'the name of its Pod has been taken for a minute: it is rebuilt',
      unformed(conflicting(61_000)),
      'rebuildSeed',
      [`delete ${name(1)}`],
    ],
    ['the name of its Pod has just been taken', unformed(conflicting(59_000)), 'waitForSeed', []],
    [
      'the earlier operator was stopped before it wrote the initialCluster',
      unformed(pending()),
      'completeSeed',
      [`patch ${name(1)} {"spec":{"initialCluster":"${name(1)}=http://${name(1)}.db.ns.svc:2380"}}`],
    ],
    [
      'the same, with self-signed certificates of peers',
      unformed(pending({ tls: { peerAutoTLS: true } })),
      'completeSeed',
      [`patch ${name(1)} {"spec":{"initialCluster":"${name(1)}=https://${name(1)}.db.ns.svc:2380"}}`],
    ],
    [
      'the same, and the spec has changed since: it is recreated',
      unformed(pending({ version: '3.6.99' })),
      'rebuildSeed',
      [`delete ${name(1)}`],
    ],
    ['the same, and it is being deleted', unformed({ ...pending(), leaving: true }), 'waitForSeed', []],
  ])('%s', (_what, o, rule, steps) => {
    expect([decide(o).rule, stepsOf(o)]).toEqual([rule, steps]);
  });
});

test.each<[number, string]>([
  [59_000, 'waitForSeed'],
  [60_000, 'rebuildSeed'],
])('the clock of the operator is a day ahead: a seed that it has observed for %i ms', (seedObservedMs, rule) => {
  const o: Gathered = { ...unformed(silent), seedObservedMs };
  expect(decide({ ...o, now: o.now + 24 * 60 * 60_000 }).rule).toBe(rule);
  expect(decide(o).rule).toBe(rule);
});

test.each<[string, Gathered, number | undefined]>([
  ['has an outdated spec', unformed(outdated), 2],
  ['never responded', unformed(silent), 2],
  ['was deleted by a user', unformed({ ...fresh, leaving: true }), 2],
  ['was deleted, and its successor is recorded', unformed({ ...fresh, leaving: true }, 2), undefined],
  ['responds', unformed(fresh, 1, answers), undefined],
])('a seed that %s: the number of its successor is recorded before it is deleted', (_what, o, number) => {
  expect(decide(o).latch?.membersNamed).toBe(number);
});

test.each<[string, Is['spec'], object | undefined]>([
  ['has the spec', {}, undefined],
  ['has the previous spec: the edit is rolled out then', { version: '3.6.99' }, { since: expect.any(String) }],
])('a seed that responds and %s', (_what, spec, rollout) => {
  const decided = decide(unformed({ ...fresh, spec: spec ?? {} }, 1, answers));
  expect([decided.rule, decided.latch?.rollout]).toEqual(['discover', rollout]);
});
