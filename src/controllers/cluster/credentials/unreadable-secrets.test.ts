/** What a Secret, a Service, a PodDisruptionBudget or a Certificate that cannot be read means for a cluster. */

import { describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_ID, NOW } from '../../../../test/support/builders/builders.ts';
import { down, type Is, stepsOf, up, world } from '../../../../test/support/builders/members.ts';
import { rowsOf } from '../../../../test/support/builders/plan.ts';
import {
  type CertificatesView,
  NO_CERTIFICATES,
  type PasswordView,
  type Unreadable,
} from '../../../access/evaluate/view.ts';
import { trustName } from '../../../api/names.ts';
import type { Tls } from '../../../api/tls.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';
import { certificateFor, requestedNeeds } from './cert-manager-requests.ts';
import type { Issuance } from './observed.ts';

const tls: Tls = { client: { managed: {} }, peer: { managed: {} } };
const auth = { enabled: true, rootCredentialsSecretRef: { name: 'mine' } };
const unreadable: Unreadable = {
  secrets: ['db-peer-ca', 'db-client-ca'],
  message: '500 no KMS provider',
  password: false,
  judged: true,
  retryAt: NOW + 64_000,
};
const never: Unreadable = { ...unreadable, judged: false };
const trust = { part: 'peer', loadedAtStart: true, trusted: true, notReissued: [] } as const;
const [OLD, NEW] = ['old', 'new'].map((text) => text.padEnd(64, '0')) as [string, string];

function running(view: Partial<CertificatesView>, members: readonly Is[] = [up, up, up], more: Partial<Gathered> = {}) {
  const o = world(members, { replicas: 3, spec: { tls, auth }, status: { trust: { peer: OLD } } });
  return { ...o, certificates: { ...NO_CERTIFICATES, ...view }, ...more } as Gathered;
}
const fresh = (view: Partial<CertificatesView>, more: Partial<Gathered> = {}): Gathered => ({
  ...world([]),
  cluster: aCluster({ spec: { tls } }),
  etcd: { is: 'notAsked' },
  certificates: { ...NO_CERTIFICATES, ...view },
  ...more,
});
const conditionOf = (o: Gathered, type: string) => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && `${found.status} ${found.reason}`;
};
const messageOf = (o: Gathered, type: string) => findCondition(decide(o).status.conditions, type)?.message ?? '';
const answering = (o: Gathered, on: 'off' | 'on'): Gathered => ({ ...o, auth: on });
const unreachable = (o: Gathered, is: 'unreachable' | 'authRejected' = 'unreachable'): Gathered => ({
  ...o,
  etcd: { is, message: 'no' },
  members: o.members.map(({ object, pod }) => ({ object, pod })),
});

describe('while a Secret cannot be read', () => {
  const pods = (bundle: string): Partial<Gathered> => {
    const { members } = world([up, up, up], { replicas: 3 });
    const mount = { leaf: 'db-peer-mounted', bundle: trustName('db', 'peer', bundle) };
    return {
      members: members.map((m, i) =>
        m.pod.is === 'present' ? { ...m, pod: { ...m.pod, uid: `pod-${i}`, tls: { peer: mount } } } : m,
      ),
    };
  };
  const draining = (o: Gathered): Gathered => ({
    ...o,
    members: o.members.map((m, i) =>
      i === 1 && m.pod.is === 'present' ? { ...m, pod: { ...m.pod, drainingSince: NOW - 10_000 } } : m,
    ),
  });
  const password: PasswordView = { kept: 'another' };
  const issuing: Tls = { peer: { certManager: { issuerRef: { name: 'i' } } } };
  const requested = aCluster({ spec: { tls: issuing } });
  const [wanted] = requestedNeeds(requested).map((need) => certificateFor(requested, need, 'cluster.local'));
  const issuance: Issuance = { is: 'there', certificates: wanted ? [{ wanted, holding: { is: 'absent' } }] : [] };
  const unformed = (o: Gathered): Gathered => {
    const { clusterID: _, ...status } = o.cluster.status ?? {};
    return { ...o, cluster: { ...o.cluster, status: { ...status, membersNamed: 1 } } };
  };
  const keeping = (o: Gathered): Gathered => {
    const status = {
      ...o.cluster.status,
      trust: { ...o.cluster.status?.trust, kept: o.certificates.kept as string[] },
    };
    return { ...o, cluster: { ...o.cluster, status } };
  };
  const others: Partial<Gathered> = { members: world([up, up], { replicas: 3 }).members.slice(1) };
  const ca = { secret: 'db-peer-ca', part: 'peer', findings: [], todo: 'createCA' } as const;

  test.each<[string, Gathered, string]>([
    ['no CA or certificate is written', running({ cas: [ca] }), 'writeSecrets'],
    [
      'no Certificate is requested for a new cluster',
      fresh({}, { cluster: requested, issuance }),
      'requestCertificates',
    ],
    [
      'no CA bundle is recorded',
      running({ trusts: [{ ...trust, next: { step: 'widen', digest: NEW } }] }),
      'recordCABundle',
    ],
    [
      'no member is restarted for the CA bundle',
      draining(running({ trusts: [{ ...trust, recorded: OLD, target: OLD }] }, [up, up, up], pods(NEW))),
      'restart',
    ],
    ['no earlier CA bundle is deleted', keeping(running({ kept: ['db-trust-x'] })), 'discardCABundles'],
    ['auth is not enabled', answering(running({}, [up, up, up], { password }), 'off'), 'enableAuth'],
    ['no password is changed', answering(running({}, [up, up, up], { password }), 'on'), 'changeRootPassword'],
    ['no cluster is bootstrapped', fresh({}), 'bootstrap'],
    ['no seed is created again', unreachable(unformed(running({}, [down], { now: NOW + 3_600_000 }))), 'rebuildSeed'],
    [
      'no CA of a seed is recorded again',
      unreachable(unformed(running({ trusts: [{ ...trust, next: { step: 'begin', digest: NEW } }] }, [up]))),
      'recordCABundle',
    ],
  ])('%s', (_what, o, rule) => {
    expect(rowsOf(decide(o))).toContain(rule);
    const blind = { ...o, certificates: { ...o.certificates, unreadable } };
    expect(rowsOf(decide(blind))).not.toContain(rule);
    expect(decide(blind).steps.filter((step) => step.do !== 'patch')).toEqual([]);
  });

  test('no seed is created next to what is left of an earlier attempt', () => {
    const o = unreachable(unformed(running({}, [up], others)));
    expect([decide(o).rule, stepsOf(o).length]).toEqual(['bootstrap', 1]);
    expect(stepsOf({ ...o, certificates: { ...o.certificates, unreadable: unreadable } })).toEqual([]);
  });

  test('members are replaced and added with what was read before', () => {
    const members: readonly Is[] = [up, up, { ...down, evidence: 'VolumeLost' }];
    expect(decide(running({ unreadable: unreadable }, [up, up])).rule).toBe('addLearner');
    expect(decide(running({ unreadable: unreadable }, members)).rule).toBe('replaceLost');
  });

  test('the status reports it, and nothing about certificates or the end of a rotation', () => {
    const o = running({ unreadable: unreadable });
    expect(conditionOf(o, 'CertificatesValid')).toBe('Unknown SecretUnreadable');
    expect(conditionOf(o, 'Progressing')).toBe('False SecretUnreadable');
    expect(conditionOf(o, 'Available')).toBe('True QuorumHealthy');
    expect(conditionOf(o, 'Degraded')).toBe('False QuorumHealthy');
    const message = messageOf(o, 'CertificatesValid');
    expect(message).toContain('Secret db-peer-ca, db-client-ca cannot be read: 500 no KMS provider');
    expect(message).toContain('Members are reached with what was read before');
    expect(decide(o).events).toContainEqual({ type: 'Warning', reason: 'SecretUnreadable', note: message });
  });

  test('without an earlier read the operator cannot reach the members: the status gives that as the reason', () => {
    const o = unreachable(running({ unreadable: never }));
    expect(conditionOf(o, 'Degraded')).toBe('True SecretUnreadable');
    expect(messageOf(o, 'CertificatesValid')).toContain('The operator cannot reach the members');
    expect(conditionOf(unreachable(running({ unreadable: unreadable })), 'Degraded')).toBe('True MembersUnhealthy');
  });

  test('a new cluster waits for it, and reports that', () => {
    const o = fresh({ unreadable: never });
    expect([decide(o).rule, stepsOf(o)]).toEqual(['waitForCredentials', []]);
    for (const type of ['Available', 'Progressing']) expect(conditionOf(o, type)).toBe('False SecretUnreadable');
  });

  test('the cluster is requeued for the next read of the Secret, not earlier', () => {
    const todo = { cas: [ca], unreadable };
    const password: PasswordView = { kept: 'intended' };
    const o = answering(running(todo, [up, up, up], { password }), 'on');
    expect(decide(o).requeueAfterMs).toBe(64_000);
    expect(decide({ ...o, now: NOW + 65_000 }).requeueAfterMs).toBe(0);
  });
});

describe('while the root password cannot be read', () => {
  const root: Unreadable = { ...unreadable, secrets: ['mine'], password: true };
  test.each<[string, Gathered, string]>([
    ['etcd has auth enabled', answering(running({ unreadable: root }), 'on'), 'True SecretUnreadable'],
    ['etcd has auth disabled', answering(running({ unreadable: root }), 'off'), 'False SecretUnreadable'],
    ['etcd does not respond', unreachable(running({ unreadable: root })), 'Unknown SecretUnreadable'],
    [
      'etcd rejects the previous password',
      unreachable(running({ unreadable: root }), 'authRejected'),
      'True SecretUnreadable',
    ],
    [
      'etcd rejects the password, and it was read',
      unreachable(running({ unreadable: unreadable }), 'authRejected'),
      'True AuthCredentialsRejected',
    ],
    [
      'it is another Secret',
      answering(running({ unreadable: unreadable }, [up, up, up], { password: { kept: 'same' } }), 'on'),
      'True Enabled',
    ],
  ])('%s', (_what, o, expected) => {
    expect(conditionOf(o, 'AuthEnabled')).toBe(expected);
  });

  test('a cluster without auth does not count as secured, nor one with auth as changing its password', () => {
    const open = answering(running({ unreadable: root }), 'off');
    expect(conditionOf(open, 'Progressing')).toBe('False SecretUnreadable');
    expect(messageOf(open, 'Progressing')).toContain('auth is not enabled yet');
    const changing = answering(running({ unreadable: root }, [up, up, up], { password: { kept: 'another' } }), 'on');
    expect(conditionOf(changing, 'Progressing')).toBe('False SecretUnreadable');
  });
});

describe('while a Service, a PodDisruptionBudget or a Certificate cannot be read', () => {
  const unknown = { is: 'unknown', message: '500 no' } as const;
  const lost = { services: { headless: unknown, client: unknown }, pdb: unknown };

  test('it is neither created nor corrected, and members are reconciled', () => {
    const o = running({}, [up, up], lost);
    expect([decide(o).rule, stepsOf(o).length]).toEqual(['addLearner', 1]);
    expect(stepsOf(running({}, [up, up, up], lost))).toEqual([]);
    expect(o.cluster.status?.clusterID).toBe(CLUSTER_ID);
  });

  test('the status names it, and it is read again soon', () => {
    const o = running({}, [up, up, up], lost);
    expect(conditionOf(o, 'Progressing')).toBe('False ReadFailed');
    for (const each of ['Service db ', 'Service db-client', 'PodDisruptionBudget db'])
      expect(messageOf(o, 'Progressing')).toContain(`${each.trim()} cannot be read: 500 no`);
    expect(decide(o).requeueAfterMs).toBe(10_000);
  });

  test('no cluster is bootstrapped: it may belong to another owner', () => {
    const o = fresh({}, lost);
    expect([decide(o).rule, stepsOf(o)]).toEqual(['bootstrap', []]);
    expect(messageOf(o, 'Available')).toContain('Service db cannot be read');
  });

  test('a Certificate is not requested a second time, and a new cluster waits for it', () => {
    const issuing: Tls = { peer: { certManager: { issuerRef: { name: 'i' } } } };
    const cluster = aCluster({ spec: { tls: issuing } });
    const certificates = requestedNeeds(cluster).map((need) => ({
      wanted: certificateFor(cluster, need, 'cluster.local'),
      holding: unknown,
    }));
    const issuance = { is: 'there', certificates } as const;
    const o = fresh({}, { cluster, issuance });
    expect([decide(o).rule, stepsOf(o)]).toEqual(['waitForCredentials', []]);
    expect(decide(o).message).toContain('it cannot be read: 500 no');
    const valid = requestedNeeds(cluster).map((need) => ({ need, findings: [], usable: true, notAfter: NOW + 1 }));
    const formed = running({ certificates: valid }, [up, up, up], { issuance });
    expect(conditionOf(formed, 'CertificatesValid')).toBe('True Valid');
    expect(conditionOf(formed, 'Progressing')).toBe('False ReadFailed');
    expect(messageOf(formed, 'Progressing')).toContain('Certificate db-peer cannot be read');
  });
});
