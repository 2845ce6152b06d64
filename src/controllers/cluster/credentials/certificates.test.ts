/** Decisions about missing and invalid certificates: before the cluster is bootstrapped, and while it runs. */

import { describe, expect, test } from 'vitest';
import { aCluster, FORMED } from '../../../../test/support/builders/builders.ts';
import { stepsOf, up, world } from '../../../../test/support/builders/members.ts';
import { rowsOf } from '../../../../test/support/builders/plan.ts';
import {
  type CertificatesView,
  type CertificateView,
  NO_CERTIFICATES,
  type PortTrustView,
} from '../../../access/evaluate/view.ts';
import { ROTATE_CA_ANNOTATION } from '../../../api/names.ts';
import type { Tls } from '../../../api/tls.ts';
import type { CertificateRequirement } from '../../../domain/certificate-requirements.ts';
import { findCondition } from '../../../domain/conditions.ts';
import type { Finding } from '../../../pki/findings.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';

const own: Tls = { peer: { secretRef: { name: 'mine' } } };
const need: CertificateRequirement = { role: 'peer', from: 'user', secret: 'mine', mount: 'db-peer-mounted' };
const END = Date.parse('2026-03-01T00:00:00Z');

const view = (change: Partial<CertificateView> = {}): CertificatesView => ({
  ...NO_CERTIFICATES,
  certificates: [{ need, findings: [], notAfter: END, usable: true, ...change }],
});
const wrong = (finding: Partial<Finding> = {}, usable = false): CertificatesView =>
  view({ findings: [{ is: 'keyMissing', secret: 'mine', key: 'tls.key', ...finding } as Finding], usable });

/** Not bootstrapped yet. */
const fresh = (certificates: CertificatesView): Gathered => ({
  ...world([]),
  cluster: aCluster({ spec: { tls: own } }),
  etcd: { is: 'notAsked' },
  certificates,
});
const running = (certificates: CertificatesView): Gathered => {
  const o = world([up, up, up], { spec: { tls: own } });
  return { ...o, certificates };
};
const conditionOf = (o: Gathered, type: string) => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && [found.status, found.reason, found.message];
};

describe('the CA bundle of the first member', () => {
  const trust = (digest: string): PortTrustView => ({
    part: 'peer',
    loadedAtStart: true,
    target: digest,
    next: { step: 'begin', digest },
    trusted: false,
    notReissued: [],
  });

  test('is recorded before the member is created, together with an earlier rotation request', () => {
    const o = fresh({ ...view(), trusts: [trust('abc')] });
    const annotations = { [ROTATE_CA_ANNOTATION]: 'now' };
    const asked = { ...o, cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, annotations } } };
    expect([decide(o).rule, decide(o).latch?.trust]).toEqual(['bootstrap', { peer: 'abc' }]);
    expect(decide(asked).latch?.trust).toEqual({ peer: 'abc', commanded: { peer: 'now' } });
    expect(decide(fresh(view())).latch).not.toHaveProperty('trust');
  });

  test('is recorded again when its Secret was changed before there is a Pod', () => {
    const seed = world([up], { spec: { tls: own } });
    const { clusterID: _, ...latched } = FORMED;
    const seeded = (recorded: string): Gathered => ({
      ...fresh({ ...view(), trusts: [trust('abc')] }),
      cluster: aCluster({ spec: { tls: own }, status: { ...latched, trust: { peer: recorded } } }),
      members: seed.members.map((m) => ({ object: m.object, pod: { is: 'absent' } })),
    });
    expect(decide(seeded('old')).latch?.trust).toEqual({ peer: 'abc', kept: ['db-peer-trust-old'] });
    expect(decide(seeded('abc')).latch).toBeUndefined();
  });
});

describe('before there is a cluster', () => {
  test('the cluster is not bootstrapped with an invalid Secret, and is requeued soon', () => {
    const o = fresh(wrong());
    const sentence = 'Secret mine has no tls.key: add it';
    expect([decide(o).rule, decide(o).steps, decide(o).requeueAfterMs]).toEqual(['waitForCredentials', [], 10_000]);
    expect(conditionOf(o, 'CertificatesValid')).toEqual(['False', 'KeyMissing', sentence]);
    expect(conditionOf(o, 'Available')).toEqual(['False', 'CertificatesInvalid', sentence]);
    expect(conditionOf(o, 'Progressing')).toEqual(['False', 'CertificatesInvalid', sentence]);
    const [event] = decide(o).events.filter(({ reason }) => reason === 'KeyMissing');
    expect(event).toEqual({ type: 'Warning', reason: 'KeyMissing', note: sentence });
  });

  test('a warning is reported, and does not block the bootstrap', () => {
    const o = fresh(
      view({ findings: [{ is: 'expiresSoon', secret: 'mine', key: 'tls.crt', at: '2026-01-09T00:00:00Z' }] }),
    );
    expect(decide(o).rule).toBe('bootstrap');
    expect(conditionOf(o, 'CertificatesValid')?.slice(0, 2)).toEqual(['True', 'ExpiresSoon']);
  });

  test('a valid Secret is copied first, and then the cluster is bootstrapped, with TLS from the start', () => {
    const before = fresh(view({ todo: 'copySecret' }));
    expect([decide(before).rule, stepsOf(before)]).toEqual([
      'waitForCredentials',
      ['writeSecrets: copySecret db-peer-mounted'],
    ]);
    const after = fresh(view());
    const seed = decide(after)
      .steps.flatMap((s) => (s.do === 'create' ? [s.object] : []))
      .at(-1);
    expect(decide(after).rule).toBe('bootstrap');
    expect(seed).toMatchObject({
      kind: 'EtcdMember',
      spec: {
        tls: { peerSecretRef: { name: 'db-peer-mounted' } },
        initialCluster: expect.stringContaining('=https://'),
      },
    });
    expect(conditionOf(after, 'CertificatesValid')).toEqual([
      'True',
      'Valid',
      'the first certificate to expire is in Secret mine, on 2026-03-01T00:00:00Z',
    ]);
  });

  test('a CA is created before the certificates that it signs, in one reconcile; no key is part of the plan', () => {
    const signed = { from: 'operator', caSecret: 'db-peer-ca', durationMs: 1, renewBeforeMs: 1 } as const;
    const o = fresh({
      ...NO_CERTIFICATES,
      cas: [{ secret: 'db-peer-ca', part: 'peer', findings: [], todo: 'createCA' }],
      certificates: [
        {
          need: { role: 'peer', secret: 'db-peer-mounted', ...signed },
          findings: [],
          todo: 'issueCertificate',
          usable: false,
        },
      ],
    });
    expect(stepsOf(o)).toEqual(['writeSecrets: createCA db-peer-ca', 'writeSecrets: issueCertificate db-peer-mounted']);
    expect(JSON.stringify(decide(o).upkeep)).not.toMatch(/tls\.key|PRIVATE/);
    expect(conditionOf(o, 'CertificatesValid')?.slice(0, 2)).toEqual(['False', 'Issuing']);
  });

  test('a seed that was created still forms the cluster', () => {
    const seed = world([up], { spec: { tls: own } }).members;
    const { clusterID: _, ...latched } = FORMED;
    const o = { ...fresh(wrong()), cluster: aCluster({ spec: { tls: own }, status: latched }), members: seed };
    expect(decide(o).rule).not.toBe('waitForCredentials');
  });

  test('nothing is created for a cluster with zero replicas', () => {
    const o = fresh(view({ todo: 'copySecret' }));
    expect(decide({ ...o, cluster: aCluster({ spec: { tls: own, replicas: 0 } }) }).rule).toBe('pausedBeforeBootstrap');
  });
});

describe('a cluster that runs', () => {
  test('keeps running with an invalid Secret, and reports it', () => {
    const o = running(wrong({ is: 'expired', key: 'tls.crt', at: '2026-01-01T00:00:00Z' }));
    expect([decide(o).rule, decide(o).steps, decide(o).requeueAfterMs]).toEqual(['steady', [], 10_000]);
    expect(conditionOf(o, 'CertificatesValid')?.slice(0, 2)).toEqual(['False', 'Expired']);
    expect(conditionOf(o, 'Available')?.slice(0, 2)).toEqual(['True', 'QuorumHealthy']);
    expect(conditionOf(o, 'Progressing')?.slice(0, 2)).toEqual(['False', 'Reconciled']);
  });

  test('is repaired with the copied Secrets; no member is added that could not start', () => {
    const o = world([up, up], { replicas: 3, spec: { tls: own } });
    const copied = wrong({}, true);
    expect(stepsOf({ ...o, certificates: wrong() })).toEqual([]);
    expect(stepsOf({ ...o, certificates: copied })[0]).toMatch(/^addLearner /);
    const [call] = decide({ ...o, certificates: copied }).steps.flatMap((s) => (s.do === 'call' ? [s.call] : []));
    expect(call).toMatchObject({ peerURL: expect.stringMatching(/^https:/) });
  });

  test('gets a renewed certificate beside a repair', () => {
    const due = view({ todo: 'copyCertificate' });
    expect(stepsOf(running(due))).toEqual(['writeSecrets: copyCertificate db-peer-mounted']);
    expect(conditionOf(running(due), 'CertificatesValid')?.slice(0, 2)).toEqual(['True', 'Renewing']);
    const o = { ...world([up, up], { replicas: 3, spec: { tls: own } }), certificates: due };
    expect(rowsOf(decide(o))).toEqual(['addLearner', 'writeSecrets']);
  });

  test('is requeued for the time when a certificate is due for renewal', () => {
    const o = running(view());
    expect(decide({ ...o, certificates: view({ renewAt: o.now + 60_000 }) }).requeueAfterMs).toBe(60_000);
  });

  test('reports which members do not serve a renewed certificate yet, and is requeued soon', () => {
    const o = running({ ...view(), stale: ['db-abcde.db.ns.svc'] });
    expect([decide(o).rule, decide(o).requeueAfterMs]).toEqual(['steady', 10_000]);
    expect(conditionOf(o, 'CertificatesValid')).toMatchObject([
      'True',
      'Renewing',
      expect.stringContaining('db-abcde.db.ns.svc'),
    ]);
    expect(conditionOf(running({ ...view(), stale: [] }), 'CertificatesValid')?.[1]).toBe('Valid');
  });

  test('reports each finding once, the worst first, and no condition without TLS', () => {
    const lost: Finding = { is: 'caLost', secret: 'db-peer-ca' };
    const o = running({
      ...NO_CERTIFICATES,
      cas: [{ secret: 'db-peer-ca', part: 'peer', findings: [lost] }],
      certificates: [
        {
          need,
          findings: [{ is: 'expiresSoon', secret: 'db-peer-mounted', key: 'tls.crt', at: 'x' }, lost],
          usable: true,
        },
      ],
    });
    const [status, reason, message = ''] = conditionOf(o, 'CertificatesValid') ?? [];
    expect([status, reason]).toEqual(['False', 'CALost']);
    expect(message.split('; ').length).toBe(2);
    const conditions = decide(o).status.conditions ?? [];
    const well = { ...world([up], { status: { ...FORMED, conditions } }) };
    expect(conditionOf(well, 'CertificatesValid')).toBeUndefined();
  });
});
