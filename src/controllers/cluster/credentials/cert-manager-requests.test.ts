/** The Certificates that are requested from cert-manager, and the conditions while they are not issued. */
import { describe, expect, test } from 'vitest';
import { aCluster, CLUSTER_UID, FORMED, NOW } from '../../../../test/support/builders/builders.ts';
import { stepsOf, up, world } from '../../../../test/support/builders/members.ts';
import { type CertificatesView, NO_CERTIFICATES } from '../../../access/evaluate/view.ts';
import type { Tls } from '../../../api/tls.ts';
import type { Certificate, CertificateRequest, TheirCondition } from '../../../domain/cert-manager.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { holding } from '../../../domain/ownership.ts';
import type { Finding } from '../../../pki/findings.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';
import { certificateFor, correctionOf, requestedNeeds } from './cert-manager-requests.ts';
import type { CertificateHolding, Issuance } from './observed.ts';

const issuer = { name: 'i' };
const tls: Tls = {
  client: { certManager: { serverIssuerRef: issuer, operatorClientIssuerRef: { name: 'c', kind: 'ClusterIssuer' } } },
  peer: { certManager: { issuerRef: issuer } },
};
const onlyPeer: Tls = { peer: { certManager: { issuerRef: issuer } } };
const built = (of: Tls = tls, cluster = aCluster({ spec: { tls: of } })): readonly Certificate[] =>
  requestedNeeds(cluster).map((need) => certificateFor(cluster, need, 'cluster.local'));
const [peer] = built(onlyPeer) as [Certificate];

const at = (secondsAgo: number): string => new Date(NOW - secondsAgo * 1000).toISOString();
const condition = (type: string, status: 'True' | 'False', reason: string, message = ''): TheirCondition => ({
  type,
  status,
  reason,
  message,
});
/** The Certificate of the peers, with these conditions of cert-manager. */
const issuing = (conditions: readonly TheirCondition[], ageS = 5): Certificate => ({
  ...peer,
  metadata: { ...peer.metadata, uid: 'u', generation: 1, creationTimestamp: at(ageS) },
  status: { conditions },
});
const request = (conditions: readonly TheirCondition[], ageS = 5): CertificateRequest => ({
  apiVersion: 'cert-manager.io/v1',
  kind: 'CertificateRequest',
  metadata: { name: 'db-peer-1', creationTimestamp: at(ageS) },
  status: { conditions },
});
const there = (object: Certificate | undefined, more: Partial<CertificateHolding> = {}): Issuance => ({
  is: 'there',
  certificates: [{ wanted: peer, holding: holding(object, CLUSTER_UID), ...more }],
});

const need = requestedNeeds(aCluster({ spec: { tls: onlyPeer } }))[0];
const view = (usable: boolean, ...findings: readonly Finding[]): CertificatesView => ({
  ...NO_CERTIFICATES,
  certificates: need ? [{ need, findings, usable, notAfter: NOW + 1 }] : [],
});
const missing: Finding = { is: 'secretMissing', secret: 'db-peer-tls' };
const fresh = (issuance: Issuance, certificates = view(false, missing)): Gathered => ({
  ...world([]),
  cluster: aCluster({ spec: { tls: onlyPeer } }),
  etcd: { is: 'notAsked' },
  certificates,
  issuance,
});
const running = (issuance: Issuance, certificates = view(true), members = [up, up, up]): Gathered => ({
  ...world(members, { replicas: 3, spec: { tls: onlyPeer } }),
  certificates,
  issuance,
});
const conditionOf = (o: Gathered, type = 'CertificatesValid') => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && [found.status, found.reason, found.message];
};
const READY = condition('Ready', 'True', 'Ready', 'Certificate is up to date and has not expired');
const NOT_YET = condition('Ready', 'False', 'DoesNotExist', 'Issuing certificate as Secret does not exist');

describe('the requested Certificates', () => {
  test('the Certificates that manifests of the earlier operator lead to, and one for applications', () => {
    expect(built().map(({ metadata, spec }) => [metadata.name, spec.secretName, spec.usages, spec.issuerRef])).toEqual([
      [
        'db-server',
        'db-server-tls',
        ['server auth', 'client auth', 'digital signature', 'key encipherment'],
        { group: 'cert-manager.io', kind: 'Issuer', name: 'i' },
      ],
      [
        'db-operator-client',
        'db-operator-client-tls',
        ['client auth', 'digital signature', 'key encipherment'],
        { group: 'cert-manager.io', kind: 'ClusterIssuer', name: 'c' },
      ],
      [
        'db-client',
        'db-client-tls',
        ['client auth', 'digital signature', 'key encipherment'],
        { group: 'cert-manager.io', kind: 'ClusterIssuer', name: 'c' },
      ],
      [
        'db-peer',
        'db-peer-tls',
        ['server auth', 'client auth', 'digital signature', 'key encipherment'],
        { group: 'cert-manager.io', kind: 'Issuer', name: 'i' },
      ],
    ]);
    const [server, operator, , ofPeer] = built();
    expect(server?.spec).toMatchObject({
      commonName: 'db-server',
      privateKey: { algorithm: 'RSA', size: 2048 },
      dnsNames: [
        '*.db.ns.svc',
        '*.db.ns.svc.cluster.local',
        'db.ns.svc',
        'db.ns.svc.cluster.local',
        'db-client.ns.svc',
        'db-client.ns.svc.cluster.local',
        'localhost',
      ],
      ipAddresses: ['127.0.0.1'],
    });
    expect(operator?.spec).not.toHaveProperty('dnsNames');
    expect(ofPeer?.spec.dnsNames).toEqual(['*.db.ns.svc', '*.db.ns.svc.cluster.local']);
    expect(server?.metadata).toMatchObject({
      labels: { 'etcd-operator.cozystack.io/cluster': 'db', 'app.kubernetes.io/managed-by': 'etcd-operator' },
      ownerReferences: [{ kind: 'EtcdCluster', uid: CLUSTER_UID, controller: true }],
    });
  });

  test('none for clients without mTLS, and none without cert-manager', () => {
    const names = (of: Tls) => built(of).map(({ metadata }) => metadata.name);
    expect(names({ client: { certManager: { serverIssuerRef: issuer } } })).toEqual(['db-server']);
    expect(names({ client: { managed: {} }, peer: { secretRef: { name: 'x' } } })).toEqual([]);
  });

  test('a common name that is too long for X.509 is cut', () => {
    const long = aCluster({ spec: { tls } });
    const cluster = { ...long, metadata: { ...long.metadata, name: 'x'.repeat(56) } };
    expect(built(tls, cluster).map(({ spec }) => spec.commonName?.length)).toEqual([63, 64, 63, 61]);
  });

  test.each<[string, Partial<Certificate['spec']>, object | undefined]>([
    ['as it is', {}, undefined],
    [
      'names in another order, and more of them',
      { dnsNames: ['me', ...(peer.spec.dnsNames ?? [])].reverse() },
      undefined,
    ],
    ['a duration of the user', { duration: '24h' } as object, undefined],
    [
      'more about the key',
      { privateKey: { algorithm: 'RSA', size: 2048, rotationPolicy: 'Never' } as object },
      undefined,
    ],
    ['another issuer', { issuerRef: { ...peer.spec.issuerRef, name: 'z' } }, { issuerRef: peer.spec.issuerRef }],
    ['a removed name', { dnsNames: ['me'] }, { dnsNames: ['me', ...(peer.spec.dnsNames ?? [])] }],
    ['another Secret', { secretName: 'z' }, { secretName: 'db-peer-tls' }],
  ])('the correction of a changed Certificate: %s', (_, change, spec) => {
    const is = { ...peer, spec: { ...peer.spec, ...change } };
    expect(correctionOf(is, peer)).toEqual(spec && { metadata: { labels: {} }, spec });
  });

  test('a Certificate of an earlier operator gets the labels of the watch', () => {
    const { labels, ...metadata } = peer.metadata;
    expect(correctionOf({ ...peer, metadata }, peer)).toEqual({ metadata: { labels }, spec: {} });
  });
});

describe('before there is a cluster', () => {
  test('Certificates are requested first', () => {
    const o = fresh(there(undefined));
    expect([decide(o).rule, stepsOf(o)]).toEqual(['waitForCredentials', ['requestCertificates: create db-peer']]);
    expect(conditionOf(o)).toEqual([
      'False',
      'Issuing',
      expect.stringContaining('Secret db-peer-tls does not exist yet'),
    ]);
  });

  test.each<[string, Issuance, string, string]>([
    ['it is not installed', { is: 'missing' }, 'CertManagerNotInstalled', 'Install cert-manager'],
    ['the cache has not synced yet', { is: 'unknown' }, 'Issuing', 'has not listed the Certificates yet'],
    ['it has no condition yet', there(issuing([])), 'Issuing', 'Certificate db-peer: cert-manager has not processed'],
    [
      'it has no condition for too long',
      there(issuing([], 31)),
      'CertificateNotReady',
      'Certificate db-peer is not ready: cert-manager has not processed it yet: check that its controller is running',
    ],
    [
      'it is being issued',
      there(issuing([NOT_YET]), { request: request([]) }),
      'Issuing',
      'Certificate db-peer: Issuing certificate as Secret does not exist',
    ],
    [
      'its issuer is missing',
      there(issuing([NOT_YET]), {
        request: request([condition('Ready', 'False', 'Pending', 'Referenced "Issuer" not found')]),
      }),
      'CertificateNotReady',
      'Certificate db-peer is not ready: CertificateRequest db-peer-1: Referenced "Issuer" not found',
    ],
    [
      'it is not approved',
      there(issuing([NOT_YET]), { request: request([], 16) }),
      'CertificateNotReady',
      'CertificateRequest db-peer-1 is waiting for approval',
    ],
    [
      'it is approved, and takes time',
      there(issuing([NOT_YET]), { request: request([condition('Approved', 'True', 'x')], 16) }),
      'Issuing',
      'Certificate db-peer: Issuing certificate as Secret does not exist',
    ],
    [
      'a policy refuses it',
      there(issuing([NOT_YET]), { request: request([condition('Denied', 'True', 'policy', 'no wildcards here')]) }),
      'CertificateNotReady',
      'CertificateRequest db-peer-1 was refused: no wildcards here',
    ],
    [
      'the issuer has failed',
      there(issuing([NOT_YET, condition('Issuing', 'False', 'Failed', 'the vault is sealed')])),
      'CertificateNotReady',
      'Certificate db-peer is not ready: the vault is sealed',
    ],
    [
      'a foreign Certificate has the name',
      there({ ...peer, metadata: { name: 'db-peer' } }),
      'NameConflict',
      'Certificate db-peer exists and belongs to no controller: this operator did not create it: delete or rename it',
    ],
  ])(
    '%s: the condition reports it, the cluster is not bootstrapped, and it is requeued',
    (_, issuance, reason, message) => {
      const o = fresh(issuance);
      expect([decide(o).rule, decide(o).steps, decide(o).requeueAfterMs]).toEqual(['waitForCredentials', [], 10_000]);
      expect(conditionOf(o)).toEqual(['False', reason, expect.stringContaining(message)]);
      expect(conditionOf(o)?.[2]).not.toContain('create it, or correct the reference');
    },
  );

  test('a pending Certificate is not a failure; one that needs a user is', () => {
    const awaited = fresh(there(issuing([NOT_YET])));
    expect(conditionOf(awaited, 'Available')?.slice(0, 2)).toEqual(['False', 'WaitingForSeed']);
    expect(decide(awaited).events.map(({ type }) => type)).not.toContain('Warning');
    expect(conditionOf(fresh({ is: 'missing' }), 'Available')?.slice(0, 2)).toEqual([
      'False',
      'CertManagerNotInstalled',
    ]);
    const foreign = fresh(there({ ...peer, metadata: { name: 'db-peer' } }));
    expect(conditionOf(foreign, 'Available')?.slice(0, 2)).toEqual(['False', 'CertificatesInvalid']);
  });

  test('no Certificate is created that would overwrite a foreign Secret', () => {
    const taken: Finding = { is: 'secretForeign', secret: 'db-peer-tls', owner: 'no controller' };
    const o = fresh(there(undefined), view(false, taken));
    expect([decide(o).rule, decide(o).steps]).toEqual(['waitForCredentials', []]);
    expect(conditionOf(o)?.slice(0, 2)).toEqual(['False', 'NameConflict']);
  });

  test('the message of an issuer is cut: the API server rejects a condition that is too long', () => {
    const endless = condition('Issuing', 'False', 'Failed', 'x'.repeat(100_000));
    expect(conditionOf(fresh(there(issuing([NOT_YET, endless]))))?.[2]?.length).toBeLessThan(1_000);
  });

  test('with all Secrets issued, the cluster is bootstrapped; not with one that was issued for an earlier spec', () => {
    expect(decide(fresh(there(issuing([READY])), view(true))).rule).toBe('bootstrap');
    const edited = issuing([{ ...READY, observedGeneration: 1 }], 60);
    const o = fresh(there({ ...edited, metadata: { ...edited.metadata, generation: 2 } }), view(true));
    expect(decide(o).rule).toBe('waitForCredentials');
    expect(conditionOf(o)).toEqual(['False', 'Issuing', expect.stringContaining('has not processed it yet')]);
  });

  test('a seed that was created still forms the cluster', () => {
    const { clusterID: _, ...latched } = FORMED;
    const seed = world([up], { spec: { tls: onlyPeer } }).members;
    const o = fresh(there(issuing([NOT_YET])));
    const bootstrapped = { ...o, cluster: aCluster({ spec: { tls: onlyPeer }, status: latched }), members: seed };
    expect(decide(bootstrapped).rule).not.toBe('waitForCredentials');
  });
});

describe('a cluster that runs', () => {
  test('is repaired before Certificates are requested: cert-manager may be down', () => {
    const o = running(there(undefined), view(true), [up, up]);
    expect(decide(o).rule).toBe('addLearner');
    const well = running(there(undefined));
    expect([decide(well).rule, stepsOf(well)]).toEqual(['steady', ['requestCertificates: create db-peer']]);
  });

  test('keeps running without cert-manager, and reports it', () => {
    const o = running({ is: 'missing' });
    expect([decide(o).rule, decide(o).steps]).toEqual(['steady', []]);
    expect(conditionOf(o)?.slice(0, 2)).toEqual(['False', 'CertManagerNotInstalled']);
    expect(conditionOf(o, 'Available')?.slice(0, 2)).toEqual(['True', 'QuorumHealthy']);
  });

  test('reports nothing before the cache has synced', () => {
    expect(conditionOf(running({ is: 'unknown' }))?.slice(0, 2)).toEqual(['True', 'Valid']);
  });

  test('reports a failing renewal while the current certificate is valid', () => {
    const failing = [READY, condition('Issuing', 'False', 'Failed', 'the vault is sealed')];
    const o = running(there(issuing(failing)));
    expect(conditionOf(o)).toEqual([
      'True',
      'RenewalFailing',
      'Certificate db-peer is not renewed: the vault is sealed',
    ]);
    expect(decide(o).requeueAfterMs).toBe(10_000);
    expect(conditionOf(running(there(issuing([READY]))))?.[1]).toBe('Valid');
    const asked = issuing([READY, condition('Issuing', 'True', 'Renewing')]);
    const waiting = [condition('Ready', 'False', 'Pending', 'the queue is long')];
    const after = (seconds: number) => conditionOf(running(there(asked, { request: request(waiting, seconds) })))?.[1];
    expect([after(59), after(61)]).toEqual(['Valid', 'RenewalFailing']);
  });

  test('keeps running with its copies while a deleted Secret is issued again', () => {
    const o = running(there(issuing([NOT_YET])), view(true, missing));
    expect(conditionOf(o)?.slice(0, 2)).toEqual(['True', 'Issuing']);
    expect(decide(o).rule).toBe('steady');
  });

  test('gets a Certificate that a user changed corrected', () => {
    const changed = { ...issuing([READY]), spec: { ...peer.spec, secretName: 'z' } };
    const o = running(there(changed));
    expect([decide(o).rule, stepsOf(o)]).toEqual([
      'steady',
      [expect.stringMatching(/^requestCertificates: patch db-peer .*"secretName":"db-peer-tls"/)],
    ]);
  });
});
