/** A member that restarts for another reason than an edit: its version waits for the checks before a change of the version. */
import { describe, expect, test } from 'vitest';
import { at, type Is, name, unreachable, world } from '../../../../test/support/builders/members.ts';
import { remembering } from '../../../../test/support/builders/plan.ts';
import {
  BOTH,
  draining,
  memory,
  OLD,
  rotating,
  started,
  widening,
} from '../../../../test/support/builders/rotating.ts';
import { targetOf } from '../../../api/defaults.ts';
import type { EtcdClusterSpec } from '../../../api/etcd-cluster.ts';
import type { EtcdMemberSpec } from '../../../api/etcd-member.ts';
import { decide, restartedBy } from '../decide.ts';
import type { Gathered } from '../observed.ts';

const ROLLOUT = { since: at(60_000) };
const CLOSED = { maintenanceWindows: [{ schedule: '0 2 * * *', duration: '1h' }] };
const runs = (version: string, more: Partial<EtcdMemberSpec> = {}): Is => ({
  runs: version,
  ...(!version.startsWith('3.5') && { storageVersion: `${version.slice(0, 3)}.0` }),
  readyForMs: 60_000,
  spec: { version, ...more },
});

interface Case {
  readonly has?: Is;
  readonly spec: Partial<EtcdClusterSpec>;
  readonly more?: Partial<Gathered>;
}
const same = (hash: string, at = '7') => [1, 2, 3].map((n) => ({ member: name(n), hash, at }));
/** Nothing is wrong: the hashes of the data agree. */
const checked = { hashes: same('a') };

/** Two members are to be restarted with another CA bundle. */
const rotation = ({ has = runs('3.6.16'), spec, more = {} }: Case): Gathered => ({
  ...draining(
    rotating([started(OLD, has), started(OLD, has), started(BOTH, has)], widening, { spec, rollout: ROLLOUT }),
    1,
  ),
  ...checked,
  ...more,
});

/** Every voter refuses to add a member. */
const refusal = ({ has = runs('3.6.16'), spec, more = {} }: Case): Gathered => {
  const o = world([has, has, has], { replicas: 4, spec, status: { rollout: ROLLOUT } });
  const members = o.members.map((m) =>
    m.pod.is === 'present' ? { ...m, pod: { ...m.pod, uid: 'pod', preStopMs: 2_000 } } : m,
  );
  const failing = remembering('etcd refuses: unhealthy cluster', { is: 'later', call: 'addLearner' });
  return { ...o, members, ...failing, refusedSince: o.now - 60_000, ...checked, ...more };
};

const HELD: readonly (readonly [string, Case])[] = [
  ['etcd cannot go there', { has: runs('3.5.35'), spec: { version: '3.7.3' } }],
  ['the members run a release that cannot be upgraded', { has: runs('3.6.1'), spec: { version: '3.7.3' } }],
  ['a flag is unknown to the target', { spec: { version: '3.7.3', extraArgs: ['--experimental-foo'] } }],
  [
    'the data differs',
    { spec: { version: '3.7.3' }, more: { hashes: [...same('a').slice(1), ...same('b').slice(0, 1)] } },
  ],
  ['no maintenance window is open', { spec: { version: '3.7.3', updateStrategy: CLOSED } }],
  ['the downgrade is not enabled', { has: runs('3.7.3'), spec: { version: '3.6.16' } }],
];
const FREE: readonly (readonly [string, Case])[] = [
  ['nothing is wrong', { spec: { version: '3.7.3' } }],
  ['another patch release needs no checks', { spec: { version: '3.6.17' } }],
  [
    'the downgrade is enabled',
    { has: { ...runs('3.7.3'), storageVersion: '3.6.0', downgradeTo: '3.6.0' }, spec: { version: '3.6.16' } },
  ],
];

const steps = (o: Gathered): readonly string[] =>
  decide(o).steps.map((step) => {
    if (step.do === 'patch') return `patch ${step.to.kind} ${JSON.stringify(step.fields)}`;
    return step.do === 'delete' ? `delete ${step.what.kind}` : step.do;
  });

describe.each<[string, (given: Case) => Gathered]>([
  ['a CA rotation', rotation],
  ['a restart for a refused change of the membership', refusal],
])('%s', (_, given) => {
  test.each(HELD)('restarts the member as it is: %s', (_what, row) => {
    const o = given({ ...row, spec: { ...row.spec, priorityClassName: 'high' } });
    expect(steps(o)).toEqual(['delete Pod']);
    expect(decide(o).latch?.progressDeadline).toBeUndefined();
    const { member, successor } = restartedBy(o) ?? {};
    expect(successor).toBe(member?.object);
  });

  test.each(FREE)('applies the edit with the restart: %s', (_what, row) => {
    const o = given(row);
    const version = JSON.stringify({ spec: { version: row.spec.version } });
    expect(steps(o).filter((step) => !step.startsWith('patch Pod'))).toEqual([`patch EtcdMember ${version}`]);
    expect(decide(o).latch?.progressDeadline).toBeDefined();
  });
});

describe('a CA rotation', () => {
  test('is not said to apply an edit that waits', () => {
    const { message } = decide(rotation({ has: runs('3.5.35'), spec: { version: '3.7.3' } }));
    expect(message).toBe(`${name(2)} is restarted to load the recorded CA bundle`);
  });

  test('goes on past members that have the CA bundle, and whose edit waits', () => {
    const has = runs('3.5.35');
    const o = rotating([started(BOTH, has), started(BOTH, has), started(OLD, has)], widening, {
      leader: 3,
      spec: { version: '3.7.3' },
      rollout: ROLLOUT,
    });
    expect(decide(o).message).toContain(`${name(3)} is restarted to load the recorded CA bundle`);
  });
});

describe('a member in memory that is replaced', () => {
  const has = (version: string): Is => ({ ...runs(version), spec: { version, ...memory().spec } });
  const spec: Partial<EtcdClusterSpec> = { storage: { size: '1Gi', medium: 'Memory' } };

  test.each<[string, Case, string | undefined]>([
    ['for a CA rotation, while a check fails', { has: has('3.5.35'), spec: { ...spec, version: '3.7.3' } }, undefined],
    [
      'for a CA rotation, with checks that have passed',
      { has: has('3.6.16'), spec: { ...spec, version: '3.7.3' } },
      '3.7',
    ],
    ['for another patch release', { has: has('3.6.16'), spec: { ...spec, version: '3.6.17' } }, undefined],
  ])('%s: records that they have passed, or not', (_, row, recorded) => {
    const o = rotation(row);
    expect(steps(o)).toEqual(['delete EtcdMember']);
    expect(decide(o).latch?.rollout?.checked).toBe(recorded);
  });

  test('waits until the edit is recorded: one plan records one rollout', () => {
    const o = rotation({ has: has('3.6.16'), spec: { ...spec, version: '3.7.3' } });
    const { status } = o.cluster;
    const observed = { ...status?.observed, version: '3.6.16' } as NonNullable<typeof status>['observed'];
    const editing = {
      ...o,
      cluster: { ...o.cluster, status: { ...status, members: [], rollout: {}, observed } },
    } as Gathered;
    expect([steps(editing), decide(editing).latch?.rollout?.checked]).toEqual([[], undefined]);
  });

  test('checks that have passed are forgotten when no member was replaced', () => {
    const o = rotation({ has: has('3.5.35'), spec: { ...spec, version: '3.7.3' } });
    const rollout = { ...ROLLOUT, checked: '3.7' };
    const recorded = { ...o, cluster: { ...o.cluster, status: { ...o.cluster.status, rollout } } };
    expect(decide(recorded).status.rollout).toEqual(ROLLOUT);
  });
});

test('a broken member goes forward again without a leader, which would have to cancel the downgrade first', () => {
  const broken: Is = { down: true, spec: { version: '3.6.16' } };
  const left: Is = { ...runs('3.7.3'), storageVersion: '3.6.0', downgradeTo: '3.6.0' };
  const pod = { is: 'present', ready: false, maxLearners: 8, runningSince: 0 } as const;
  const given = (members: readonly Is[], etcd?: Gathered['etcd']) => {
    const o = world(members, { spec: { version: '3.7.3' }, ...(etcd && { etcd }) });
    const { replicas: _, ...previous } = targetOf(o.cluster.spec, o.cluster.status);
    const cluster = { ...o.cluster, status: { ...o.cluster.status, rollout: { ...ROLLOUT, previous } } };
    return decide({ ...o, cluster, members: o.members.map((m) => (m.self?.leader ? m : { ...m, pod })) }).rule;
  };
  expect(given([left, broken, left])).toBe('cancelDowngrade');
  expect(given([{ ...left, leaderless: true }, broken, { ...left, down: true }], unreachable)).toBe('updateBroken');
});

test('a broken member is not downgraded before it has rewritten its data', () => {
  const rewritten: Is = { ...runs('3.7.3'), storageVersion: '3.6.0', downgradeTo: '3.6.0' };
  const broken: Is = { down: true, spec: { version: '3.7.3' } };
  const o = world([rewritten, broken, rewritten], {
    leader: 3,
    spec: { version: '3.6.16' },
    status: { rollout: ROLLOUT },
  });
  const members = o.members.map((m) => ({
    ...m,
    object: { ...m.object, status: { ...m.object.status, version: '3.7.3' } },
  }));
  expect(decide({ ...o, members }).rule).not.toBe('updateBroken');
});
