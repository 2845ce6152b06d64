/** Decisions about spec.auth: before the cluster is bootstrapped, while auth is disabled, and while it is enabled. */

import { describe, expect, test } from 'vitest';
import { aCluster } from '../../../../test/support/builders/builders.ts';
import { type Is, stepsOf, up, world } from '../../../../test/support/builders/members.ts';
import { rowsOf } from '../../../../test/support/builders/plan.ts';
import type { PasswordView } from '../../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';

const auth = { enabled: true, rootCredentialsSecretRef: { name: 'mine' } };
const problem = { reason: 'AuthCredentialsMissing', message: 'Secret mine does not exist' };
const missing: PasswordView = { kept: 'same', problem };
const never: PasswordView = { kept: 'nothing', problem };
const good: PasswordView = { kept: 'same' };

type Auth = Gathered['auth'];

/** Members of a cluster with spec.auth. */
function running(
  is: readonly Is[],
  password: PasswordView | undefined,
  on: Auth,
  status: EtcdClusterStatus = {},
  replicas = is.length,
): Gathered {
  const o = world(is, { spec: { auth: password ? auth : {} }, status, replicas });
  return { ...o, password, auth: on };
}
const fresh = (password: PasswordView): Gathered => ({
  ...world([]),
  cluster: aCluster({ spec: { auth } }),
  etcd: { is: 'notAsked' },
  password,
});
const unreachable = (o: Gathered, is: 'unreachable' | 'authRequired' | 'authRejected' = 'unreachable'): Gathered => ({
  ...o,
  etcd: { is, message: 'etcdserver: some words' },
});
/** The first member runs, and the cluster ID is not known yet. */
const seed = (o: Gathered): Gathered => {
  const { clusterID: _id, ...status } = o.cluster.status ?? {};
  return { ...o, cluster: { ...o.cluster, status } };
};
const conditionOf = (o: Gathered, type: string) => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && [found.status, found.reason, found.message];
};

const ENABLING = [
  'enableAuth: intendPassword db-root-applied',
  'enableAuth: makeRoot root',
  'enableAuth: enableAuth root',
  'enableAuth: provePassword db-root-applied',
];
const CHANGING = [
  'changeRootPassword: intendPassword db-root-applied',
  'changeRootPassword: changePassword root',
  'changeRootPassword: provePassword db-root-applied',
];

describe('the deciding rule', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    ['without a password the cluster is not bootstrapped', fresh(never), 'waitForCredentials', []],
    [
      'auth is enabled on the seed before other members join',
      running([up], { kept: 'nothing' }, 'off'),
      'waitForAuth',
      ENABLING,
    ],
    [
      'also with three replicas: no member joins before that',
      running([up], good, 'off', {}, 3),
      'waitForAuth',
      ENABLING,
    ],
    ['three members without auth', running([up, up, up], good, 'off'), 'steady', ENABLING],
    [
      'a started password change is finished without the Secret',
      running([up], { kept: 'intended', problem }, 'off'),
      'waitForAuth',
      ENABLING,
    ],
    [
      'without a password auth is not enabled: clients would be locked out',
      running([up, up, up], never, 'off'),
      'steady',
      [],
    ],
    [
      'not while a member is down: it would miss the change',
      running([up, up, { down: true }], good, 'off'),
      'waitForMembers',
      [],
    ],
    ['spec.auth is not set', running([up, up, up], undefined, 'off'), 'steady', []],
    ['the auth status is not known', running([up, up, up], good, undefined), 'steady', []],
    [
      'the password that etcd accepts is stored',
      running([up, up, up], { kept: 'nothing' }, 'on'),
      'steady',
      ['changeRootPassword: provePassword db-root-applied'],
    ],
    ['the user gives another password', running([up, up, up], { kept: 'another' }, 'on'), 'steady', CHANGING],
    ['a password change was started', running([up, up, up], { kept: 'intended' }, 'on'), 'steady', CHANGING],
    [
      'a password change was started, and the Secret was deleted',
      running([up, up, up], { kept: 'intended', problem }, 'on'),
      'steady',
      CHANGING,
    ],
    [
      'the stored password differs, and the given one is invalid',
      running([up, up, up], { kept: 'another', problem }, 'on'),
      'steady',
      [],
    ],
    ['the stored password is the given one', running([up, up, up], good, 'on'), 'steady', []],
    ['etcd does not authenticate the operator', running([up, up, up], { kept: 'another' }, 'required'), 'steady', []],
    ['the Secret was deleted', running([up, up, up], missing, 'on'), 'steady', []],
  ])('%s', (_name, o, rule, steps) => {
    expect([decide(o).rule, stepsOf(o)]).toEqual([rule, steps]);
  });

  test('the password that etcd accepts is stored although a member is down: it could be lost with the next edit', () => {
    const o = running([up, up, { down: true }], { kept: 'nothing' }, 'on');
    expect(rowsOf(decide(o))).toContain('changeRootPassword');
    expect(rowsOf(decide({ ...o, etcd: { ...o.etcd, clusterID: 'abc' } as Gathered['etcd'] }))).toEqual([
      'clusterIdMismatch',
    ]);
  });

  test('auth does not wait for a member that has never started: it serves no client', () => {
    const rows = (fresh: boolean) =>
      rowsOf(decide(running([up, up, up, { as: 'learner', fresh, down: true }], good, 'off')));
    expect(rows(true)).toContain('enableAuth');
    expect(rows(false)).not.toContain('enableAuth');
  });

  test('auth is not enabled in another cluster that responds at the address of a member', () => {
    const o = running([up], good, 'off');
    const other = { ...o, etcd: { ...o.etcd, clusterID: 'abc' } } as Gathered;
    expect(rowsOf(decide(other))).toEqual(['clusterIdMismatch']);
  });

  test('a root password call names the endpoints, and no password', () => {
    const [step] = decide(running([up], { kept: 'nothing' }, 'off')).upkeep?.[0]?.steps ?? [];
    expect(step).toMatchObject({ call: { endpoints: ['http://10.0.0.1:2379'], clusterID: expect.any(String) } });
  });
});

describe('the conditions', () => {
  test.each<[string, Gathered, string, readonly [string, string]]>([
    ['not bootstrapped: the reason', fresh(never), 'Available', ['False', 'AuthCredentialsMissing']],
    ['not bootstrapped: not degraded', fresh(never), 'Degraded', ['False', 'AuthCredentialsMissing']],
    ['not bootstrapped: auth is not enabled', fresh(never), 'AuthEnabled', ['False', 'AuthCredentialsMissing']],
    ['auth will be enabled', fresh({ kept: 'nothing' }), 'AuthEnabled', ['False', 'EnablingAuth']],
    ['auth is off', running([up], { kept: 'nothing' }, 'off'), 'AuthEnabled', ['False', 'EnablingAuth']],
    ['auth is off: progressing', running([up], { kept: 'nothing' }, 'off'), 'Progressing', ['True', 'EnablingAuth']],
    [
      'auth is off, and the deadline is exceeded',
      running([up], { kept: 'nothing' }, 'off', { progressDeadline: '2026-01-01T00:00:00Z' }),
      'Progressing',
      ['False', 'DeadlineExceeded'],
    ],
    [
      'auth is off, and members serve',
      running([up], { kept: 'nothing' }, 'off'),
      'Available',
      ['True', 'QuorumHealthy'],
    ],
    [
      'auth is off, and the password is missing',
      running([up], never, 'off'),
      'Progressing',
      ['False', 'AuthCredentialsMissing'],
    ],
    [
      'auth is off, and its status is not known in this reconcile',
      running([up], good, undefined),
      'Progressing',
      ['True', 'EnablingAuth'],
    ],
    ['auth is on', running([up], good, 'on'), 'AuthEnabled', ['True', 'Enabled']],
    ['auth is on: reconciled', running([up], good, 'on'), 'Progressing', ['False', 'Reconciled']],
    [
      'auth is on, and its status is not known now',
      running([up], good, undefined, { authEnabled: true }),
      'Progressing',
      ['False', 'Reconciled'],
    ],
    ['another password', running([up], { kept: 'another' }, 'on'), 'Progressing', ['True', 'ChangingPassword']],
    [
      'another password: auth stays on',
      running([up], { kept: 'another' }, 'on'),
      'AuthEnabled',
      ['True', 'ChangingPassword'],
    ],
    ['the Secret was deleted', running([up], missing, 'on'), 'AuthEnabled', ['True', 'AuthCredentialsMissing']],
    ['the Secret was deleted: not degraded', running([up], missing, 'on'), 'Degraded', ['False', 'QuorumHealthy']],
    ['the Secret was deleted: not progressing', running([up], missing, 'on'), 'Progressing', ['False', 'Reconciled']],
    [
      'rejected',
      unreachable(running([up], good, 'on'), 'authRejected'),
      'Degraded',
      ['True', 'AuthCredentialsRejected'],
    ],
    [
      'rejected: clients are served',
      unreachable(running([up], good, 'on'), 'authRejected'),
      'Available',
      ['True', 'QuorumHealthy'],
    ],
    [
      'rejected: auth is on',
      unreachable(running([up], good, 'on'), 'authRejected'),
      'AuthEnabled',
      ['True', 'AuthCredentialsRejected'],
    ],
    [
      'rejected before the cluster ID is known',
      seed(unreachable(running([up], good, 'on'), 'authRejected')),
      'Available',
      ['False', 'AuthCredentialsRejected'],
    ],
    [
      'rejected before the cluster ID is known: degraded',
      seed(unreachable(running([up], good, 'on'), 'authRejected')),
      'Degraded',
      ['True', 'AuthCredentialsRejected'],
    ],
    [
      'auth is on, and spec.auth is not set',
      unreachable(running([up], undefined, 'on'), 'authRequired'),
      'Degraded',
      ['True', 'AuthRequiredNotConfigured'],
    ],
    [
      'auth is on, spec.auth is not set, and members can be listed',
      running([up], undefined, 'required'),
      'Degraded',
      ['True', 'AuthRequiredNotConfigured'],
    ],
    [
      'auth is on before the cluster ID is known',
      seed(unreachable(running([up], undefined, 'on'), 'authRequired')),
      'Available',
      ['False', 'AuthRequiredNotConfigured'],
    ],
    [
      'auth is on before the cluster ID is known: degraded',
      seed(unreachable(running([up], undefined, 'on'), 'authRequired')),
      'Degraded',
      ['True', 'AuthRequiredNotConfigured'],
    ],
    [
      'auth is on, and the password was deleted',
      unreachable(running([up], never, 'on'), 'authRequired'),
      'Degraded',
      ['True', 'AuthCredentialsMissing'],
    ],
    [
      'unreachable for another reason',
      unreachable(running([up], good, 'on', { authEnabled: true })),
      'Degraded',
      ['True', 'MembersUnhealthy'],
    ],
  ])('%s', (_name, o, type, expected) => {
    expect(conditionOf(o, type)?.slice(0, 2)).toEqual(expected);
  });

  test('the condition is left as it is while etcd does not respond', () => {
    const { status } = decide(running([up], good, 'on'));
    const o = unreachable(running([up], good, 'on', status));
    expect(conditionOf(o, 'AuthEnabled')?.slice(0, 2)).toEqual(['True', 'Enabled']);
    expect(
      findCondition(decide(running([up], undefined, undefined, status)).status.conditions, 'AuthEnabled'),
    ).toBeUndefined();
  });

  test('a paused cluster does not wait for auth', () => {
    const o = { ...fresh(good), cluster: aCluster({ spec: { auth, replicas: 0 } }) };
    expect(conditionOf(o, 'Progressing')?.slice(0, 2)).toEqual(['False', 'Paused']);
  });

  test('the messages say what to do', () => {
    expect(conditionOf(unreachable(running([up], good, 'on'), 'authRejected'), 'Degraded')?.[2]).toContain(
      'put the password that etcd has into Secret mine',
    );
    expect(conditionOf(running([up], undefined, 'required'), 'Degraded')?.[2]).toContain('etcdctl auth disable');
    expect(conditionOf(running([up], never, 'off'), 'AuthEnabled')?.[2]).toBe(
      'auth is not enabled yet: Secret mine does not exist',
    );
  });
});

test('authEnabled is recorded once etcd has authenticated the operator, and not before', () => {
  const recorded = (o: Gathered) => decide(o).status.authEnabled;
  expect(recorded(running([up], good, 'on'))).toBe(true);
  for (const on of ['off', 'required', undefined] as const) expect(recorded(running([up], good, on))).toBeUndefined();
  expect(recorded(running([up], undefined, 'on'))).toBeUndefined();
  expect(recorded(unreachable(running([up], good, 'on', { authEnabled: true })))).toBe(true);
});

test('a cluster without a valid root password is requeued soon', () => {
  const requeueOf = (o: Gathered) => decide(o).requeueAfterMs;
  expect(requeueOf(running([up], good, 'on'))).toBe(300_000);
  expect(requeueOf(running([up], missing, 'on'))).toBe(10_000);
  expect(requeueOf(running([up], undefined, 'required'))).toBe(10_000);
  expect(requeueOf(fresh(never))).toBe(10_000);
});
