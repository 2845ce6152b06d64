/** What the wish for log-ins means for a cluster: before it exists, while it is open, and while it is guarded. */
import { describe, expect, test } from 'vitest';
import { aCluster } from '../../../../test/support/builders/builders.ts';
import { type Is, stepsOf, up, world } from '../../../../test/support/builders/members.ts';
import type { PasswordView } from '../../../access/evaluate/view.ts';
import { findCondition } from '../../../api/conditions.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { decide } from '../decide.ts';
import type { EtcdView, Observed } from '../observed.ts';

const auth = { enabled: true, rootCredentialsSecretRef: { name: 'mine' } };
const problem = { reason: 'AuthCredentialsMissing', message: 'Secret mine is not there' };
const missing: PasswordView = { kept: 'same', problem };
const never: PasswordView = { kept: 'nothing', problem };
const good: PasswordView = { kept: 'same' };

type Auth = (EtcdView & { readonly is: 'answers' })['auth'];

/** Members of a cluster that asks for log-ins. */
function running(
  is: readonly Is[],
  password: PasswordView | undefined,
  on: Auth,
  status: EtcdClusterStatus = {},
  replicas = is.length,
): Observed {
  const o = world(is, { spec: { auth: password ? auth : {} }, status, replicas });
  return { ...o, password, etcd: on === undefined || o.etcd.is !== 'answers' ? o.etcd : { ...o.etcd, auth: on } };
}
const fresh = (password: PasswordView): Observed => ({
  ...world([]),
  cluster: aCluster({ spec: { auth } }),
  etcd: { is: 'notAsked' },
  password,
});
const silent = (o: Observed, login?: 'demanded' | 'rejected'): Observed => ({
  ...o,
  etcd: { is: 'silent', why: 'etcdserver: some words', ...(login && { login }) },
});
/** The first member runs, and its id is not known yet. */
const seed = (o: Observed): Observed => {
  const { clusterID: _id, ...status } = o.cluster.status ?? {};
  return { ...o, cluster: { ...o.cluster, status } };
};
const saidBy = (o: Observed, type: string) => {
  const said = findCondition(decide(o).status.conditions, type);
  return said && [said.status, said.reason, said.message];
};

const ENABLING = [
  'intendPassword db-root-applied',
  'makeRoot root',
  'enableAuth root',
  'provePassword db-root-applied',
];
const CHANGING = ['intendPassword db-root-applied', 'changePassword root', 'provePassword db-root-applied'];

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['no password: nothing is begun', fresh(never), 'waitForPassword', []],
    ['the seed is guarded before others join', running([up], { kept: 'nothing' }, 'off'), 'enableAuthOnSeed', ENABLING],
    [
      'also when three are wanted: nobody joins before that',
      running([up], good, 'off', {}, 3),
      'enableAuthOnSeed',
      ENABLING,
    ],
    ['three that were never guarded', running([up, up, up], good, 'off'), 'enableAuth', ENABLING],
    [
      'what was begun is finished without the Secret',
      running([up], { kept: 'intended', problem }, 'off'),
      'enableAuthOnSeed',
      ENABLING,
    ],
    ['without a password nobody is locked out', running([up, up, up], never, 'off'), 'steady', []],
    ['somebody is down: it would not hear of it', running([up, up, { down: true }], good, 'off'), 'waitForMembers', []],
    ['nobody is to log in', running([up, up, up], undefined, 'off'), 'steady', []],
    ['it was not asked', running([up, up, up], good, undefined), 'steady', []],
    [
      'the password is kept that lets the operator in',
      running([up, up, up], { kept: 'nothing' }, 'on'),
      'enableAuth',
      ['provePassword db-root-applied'],
    ],
    ['another one is given', running([up, up, up], { kept: 'another' }, 'on'), 'enableAuth', CHANGING],
    ['a change was begun', running([up, up, up], { kept: 'intended' }, 'on'), 'enableAuth', CHANGING],
    [
      'a change was begun, and the Secret is gone',
      running([up, up, up], { kept: 'intended', problem }, 'on'),
      'enableAuth',
      CHANGING,
    ],
    ['another was kept than can be used', running([up, up, up], { kept: 'another', problem }, 'on'), 'steady', []],
    ['all is as it should be', running([up, up, up], good, 'on'), 'steady', []],
    ['the operator is not in', running([up, up, up], { kept: 'another' }, 'demanded'), 'steady', []],
    ['the Secret is gone', running([up, up, up], missing, 'on'), 'steady', []],
  ])('%s', (_name, o, rule, steps) => {
    expect([decide(o).rule, stepsOf(o)]).toEqual([rule, steps]);
  });

  test('a change of the password waits for members that are lost', () => {
    const o = running([up, up, { down: true, evidence: 'DataLost' }], { kept: 'another' }, 'on');
    expect(decide(o).rule).not.toBe('enableAuth');
  });

  test('log-ins are not turned on while somebody learns, or is on the way out', () => {
    for (const other of [{ as: 'learner' }, { leaving: true }] as const)
      expect(decide(running([up, up, up, other], good, 'off')).rule).not.toBe('enableAuth');
  });

  test('what a plan says about root names whom to ask, and no password', () => {
    const [step] = decide(running([up], { kept: 'nothing' }, 'off')).steps;
    expect(step).toMatchObject({ call: { endpoints: ['http://10.0.0.1:2379'], clusterID: expect.any(String) } });
  });
});

describe('what is said', () => {
  test.each<[string, Observed, string, readonly [string, string]]>([
    ['nothing is begun: why', fresh(never), 'Available', ['False', 'AuthCredentialsMissing']],
    ['nothing is begun: not degraded', fresh(never), 'Degraded', ['False', 'AuthCredentialsMissing']],
    ['nothing is begun: nobody is asked', fresh(never), 'AuthEnabled', ['False', 'AuthCredentialsMissing']],
    ['it will be asked for', fresh({ kept: 'nothing' }), 'AuthEnabled', ['False', 'EnablingAuth']],
    ['open', running([up], { kept: 'nothing' }, 'off'), 'AuthEnabled', ['False', 'EnablingAuth']],
    [
      'open: the spec is not reached',
      running([up], { kept: 'nothing' }, 'off'),
      'Progressing',
      ['True', 'EnablingAuth'],
    ],
    [
      'open, and late',
      running([up], { kept: 'nothing' }, 'off', { progressDeadline: '2026-01-01T00:00:00Z' }),
      'Progressing',
      ['False', 'DeadlineExceeded'],
    ],
    ['open, and it serves', running([up], { kept: 'nothing' }, 'off'), 'Available', ['True', 'QuorumHealthy']],
    [
      'open, and a password is missing',
      running([up], never, 'off'),
      'Progressing',
      ['False', 'AuthCredentialsMissing'],
    ],
    ['open, and not known in this pass', running([up], good, undefined), 'Progressing', ['True', 'EnablingAuth']],
    ['guarded', running([up], good, 'on'), 'AuthEnabled', ['True', 'Enabled']],
    ['guarded: the spec is reached', running([up], good, 'on'), 'Progressing', ['False', 'Reconciled']],
    [
      'guarded, and not known now',
      running([up], good, undefined, { authEnabled: true }),
      'Progressing',
      ['False', 'Reconciled'],
    ],
    ['another password', running([up], { kept: 'another' }, 'on'), 'Progressing', ['True', 'ChangingPassword']],
    [
      'another password: still guarded',
      running([up], { kept: 'another' }, 'on'),
      'AuthEnabled',
      ['True', 'ChangingPassword'],
    ],
    ['the Secret is gone', running([up], missing, 'on'), 'AuthEnabled', ['True', 'AuthCredentialsMissing']],
    ['the Secret is gone: nothing else is wrong', running([up], missing, 'on'), 'Degraded', ['False', 'QuorumHealthy']],
    ['the Secret is gone: nothing is awaited', running([up], missing, 'on'), 'Progressing', ['False', 'Reconciled']],
    ['rejected', silent(running([up], good, 'on'), 'rejected'), 'Degraded', ['True', 'AuthCredentialsRejected']],
    [
      'rejected: clients are served',
      silent(running([up], good, 'on'), 'rejected'),
      'Available',
      ['True', 'QuorumHealthy'],
    ],
    [
      'rejected: it is on',
      silent(running([up], good, 'on'), 'rejected'),
      'AuthEnabled',
      ['True', 'AuthCredentialsRejected'],
    ],
    [
      'rejected before it is known',
      seed(silent(running([up], good, 'on'), 'rejected')),
      'Available',
      ['False', 'AuthCredentialsRejected'],
    ],
    [
      'rejected before it is known: degraded',
      seed(silent(running([up], good, 'on'), 'rejected')),
      'Degraded',
      ['True', 'AuthCredentialsRejected'],
    ],
    [
      'wanted, and nobody said so',
      silent(running([up], undefined, 'on'), 'demanded'),
      'Degraded',
      ['True', 'AuthRequiredNotConfigured'],
    ],
    [
      'wanted, and members can be seen',
      running([up], undefined, 'demanded'),
      'Degraded',
      ['True', 'AuthRequiredNotConfigured'],
    ],
    [
      'wanted before it is known',
      seed(silent(running([up], undefined, 'on'), 'demanded')),
      'Available',
      ['False', 'AuthRequiredNotConfigured'],
    ],
    [
      'wanted before it is known: degraded',
      seed(silent(running([up], undefined, 'on'), 'demanded')),
      'Degraded',
      ['True', 'AuthRequiredNotConfigured'],
    ],
    [
      'wanted, and the password is gone',
      silent(running([up], never, 'on'), 'demanded'),
      'Degraded',
      ['True', 'AuthCredentialsMissing'],
    ],
    [
      'silent for another reason',
      silent(running([up], good, 'on', { authEnabled: true })),
      'Degraded',
      ['True', 'MembersUnhealthy'],
    ],
  ])('%s', (_name, o, type, said) => {
    expect(saidBy(o, type)?.slice(0, 2)).toEqual(said);
  });

  test('what was said stands while etcd does not say anything', () => {
    const said = decide(running([up], good, 'on')).status;
    const o = silent(running([up], good, 'on', said));
    expect(saidBy(o, 'AuthEnabled')?.slice(0, 2)).toEqual(['True', 'Enabled']);
    expect(
      findCondition(decide(running([up], undefined, undefined, said)).status.conditions, 'AuthEnabled'),
    ).toBeUndefined();
  });

  test('a cluster that is parked waits for no log-in', () => {
    const o = { ...fresh(good), cluster: aCluster({ spec: { auth, replicas: 0 } }) };
    expect(saidBy(o, 'Progressing')?.slice(0, 2)).toEqual(['False', 'Paused']);
  });

  test('each says what to do', () => {
    expect(saidBy(silent(running([up], good, 'on'), 'rejected'), 'Degraded')?.[2]).toContain(
      'put the one that it knows into Secret mine',
    );
    expect(saidBy(running([up], undefined, 'demanded'), 'Degraded')?.[2]).toContain('etcdctl auth disable');
    expect(saidBy(running([up], never, 'off'), 'AuthEnabled')?.[2]).toBe(
      'clients are not asked to log in yet: Secret mine is not there',
    );
  });
});

test('that log-ins are on is recorded when etcd has let the operator in, and not before', () => {
  const recorded = (o: Observed) => decide(o).status.authEnabled;
  expect(recorded(running([up], good, 'on'))).toBe(true);
  for (const on of ['off', 'demanded', undefined] as const) expect(recorded(running([up], good, on))).toBeUndefined();
  expect(recorded(running([up], undefined, 'on'))).toBeUndefined();
  expect(recorded(silent(running([up], good, 'on', { authEnabled: true })))).toBe(true);
});

test('what is missing, wrong or locked is looked at again soon', () => {
  const wake = (o: Observed) => decide(o).requeueAfterMs;
  expect(wake(running([up], good, 'on'))).toBe(300_000);
  expect(wake(running([up], missing, 'on'))).toBe(10_000);
  expect(wake(running([up], undefined, 'demanded'))).toBe(10_000);
  expect(wake(fresh(never))).toBe(10_000);
});
