/** What the administrator lets tenants refer to. */
import { describe, expect, test } from 'vitest';
import { aCluster } from '../../test/support/builders/builders.ts';
import type { EtcdClusterSpec } from '../api/etcd-cluster.ts';
import type { SnapshotLocation } from '../api/snapshot-location.ts';
import {
  clusterReferences,
  issuerNotPermitted,
  OPEN,
  storeNotPermitted,
  storeReferences,
  type Tenancy,
  withoutDenied,
} from './tenancy.ts';

const credentialsSecretRef = { name: 'keys' };
const s3 = { endpoint: 'https://s3.example.com', bucket: 'b', credentialsSecretRef };

describe('S4: a store', () => {
  const listed = { allowedStoreEndpoints: ['s3.example.com', '*.amazonaws.com', 'minio.local:9000'] };
  test.each<[string, SnapshotLocation, Partial<Tenancy>, string?]>([
    ['with a Secret', { s3 }, {}],
    ['on a PVC', { pvc: { claimName: 'c' } }, listed],
    ['without a Secret', { s3: { endpoint: 'https://s3.example.com', bucket: 'b' } }, {}, 'credentialsSecretRef'],
    ['of Google without a Secret', { gcs: { bucket: 'b' } }, {}, 'tenancy.allowAmbientCredentials'],
    ['of Azure without a Secret', { azure: { container: 'c', account: 'a' } }, {}, 'tenancy.allowAmbientCredentials'],
    [
      'with an account whose cloud identity could be used',
      { s3: { endpoint: 'https://s3.example.com', bucket: 'b', serviceAccountName: 'admin' } },
      {},
      'credentialsSecretRef',
    ],
    [
      'with a Secret and such an account, which the Pod would have in any case',
      { s3: { ...s3, serviceAccountName: 'admin' } },
      {},
      'no serviceAccountName',
    ],
    ['without a Secret, where that is allowed', { gcs: { bucket: 'b' } }, { allowAmbientCredentials: true }],
    ['on the list', { s3 }, listed],
    ['on the list, without a scheme', { s3: { ...s3, endpoint: 's3.example.com' } }, listed],
    ['on the list with its port', { s3: { ...s3, endpoint: 'http://minio.local:9000' } }, listed],
    [
      'on the list with another port',
      { s3: { ...s3, endpoint: 'http://minio.local:2379' } },
      listed,
      'minio.local:2379',
    ],
    ['below a domain on the list', { s3: { ...s3, endpoint: 'https://s3.eu-west-1.amazonaws.com' } }, listed],
    ['elsewhere', { s3: { ...s3, endpoint: 'https://evil.example.com' } }, listed, 'tenancy.allowedStoreEndpoints'],
    [
      'that ends like one on the list',
      { s3: { ...s3, endpoint: 'https://evilamazonaws.com' } },
      listed,
      'evilamazonaws',
    ],
    ['of Google, which is not on the list', { gcs: { bucket: 'b', credentialsSecretRef } }, listed, 'googleapis'],
    [
      'of Azure whose host is in the Secret: the agent compares it',
      { azure: { container: 'c', credentialsSecretRef } },
      listed,
    ],
    [
      'of Azure, which is not on the list',
      { azure: { container: 'c', account: 'a', credentialsSecretRef } },
      listed,
      'a.blob',
    ],
    [
      'of Azure, which is on the list',
      { azure: { container: 'c', account: 'a', credentialsSecretRef } },
      { allowedStoreEndpoints: ['*.blob.core.windows.net'] },
    ],
  ])('%s', (_name, location, tenancy, refused) => {
    const message = storeNotPermitted(location, { ...OPEN, ...tenancy });
    if (refused === undefined) expect(message).toBeUndefined();
    else expect(message).toContain(refused);
  });
});

describe('S11: an issuer', () => {
  const peer = (name: string, kind: 'Issuer' | 'ClusterIssuer') => ({
    peer: { certManager: { issuerRef: { name, kind } } },
  });
  const listed = ['tenants'];
  test.each<[string, EtcdClusterSpec['tls'], readonly string[], boolean]>([
    ['of the cluster on the list', peer('tenants', 'ClusterIssuer'), listed, true],
    ['of the cluster that is not', peer('corporate-root', 'ClusterIssuer'), listed, false],
    ['of the namespace', peer('corporate-root', 'Issuer'), listed, true],
    ['of the cluster, without a list', peer('corporate-root', 'ClusterIssuer'), [], true],
    [
      'for clients that is not on the list',
      {
        client: {
          certManager: {
            serverIssuerRef: { name: 'mine' },
            operatorClientIssuerRef: { name: 'corporate-root', kind: 'ClusterIssuer' },
          },
        },
      },
      listed,
      false,
    ],
  ])('%s', (_name, tls, allowedClusterIssuers, allowed) => {
    const spec = aCluster({ spec: tls ? { tls } : {} }).spec;
    expect(issuerNotPermitted(spec, { ...OPEN, allowedClusterIssuers }) === undefined).toBe(allowed);
  });
});

test('S2: every Secret and PVC that a spec names is found, and pull Secrets are left to the kubelet', () => {
  const source = { s3: { ...s3, caSecretRef: { name: 'ca' } } };
  const spec: Partial<EtcdClusterSpec> = {
    tls: {
      client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'operator' } },
      peer: { secretRef: { name: 'peer' } },
    },
    auth: { enabled: true, rootCredentialsSecretRef: { name: 'root' } },
    bootstrap: { restore: { source, encryption: { keySecretRef: { name: 'key' } } } },
    imagePullSecrets: [{ name: 'pull' }],
  };
  const secrets = ['server', 'operator', 'peer', 'root', 'keys', 'ca', 'key'];
  expect(clusterReferences(aCluster({ spec }))).toEqual({ secrets, claims: [] });
  expect(storeReferences({ pvc: { claimName: 'c' } }, undefined)).toEqual({ secrets: [], claims: ['c'] });
  const copy = { gcs: { bucket: 'b', credentialsSecretRef: { name: 'second' } } };
  expect(storeReferences({ pvc: { claimName: 'c' }, copy }, undefined)).toEqual({ secrets: ['second'], claims: ['c'] });
  const elsewhere = { ...OPEN, allowedStoreEndpoints: ['s3.example.com'] };
  expect(storeNotPermitted({ pvc: { claimName: 'c' }, copy }, elsewhere)).toContain('storage.googleapis.com');
});

describe('keys of additionalMetadata', () => {
  const additionalMetadata = {
    labels: { team: 'a', 'sidecar.istio.io/inject': 'true' },
    annotations: { 'external-dns.alpha.kubernetes.io/hostname': 'x', note: 'n' },
  };
  const cluster = aCluster({ spec: { additionalMetadata } });
  test('are all kept by default', () => {
    expect(withoutDenied(cluster, OPEN)).toEqual({ object: cluster, denied: [] });
  });
  test('that the administrator denies are left out and named', () => {
    const tenancy = { ...OPEN, deniedMetadata: ['external-dns.alpha.kubernetes.io/*', '*.istio.io/*'] };
    const { object, denied } = withoutDenied(cluster, tenancy);
    expect(object.spec.additionalMetadata).toEqual({ labels: { team: 'a' }, annotations: { note: 'n' } });
    expect(denied).toEqual(['sidecar.istio.io/inject', 'external-dns.alpha.kubernetes.io/hostname']);
  });
  test('are compared whole, and a dot is a dot', () => {
    for (const deniedMetadata of [['note.'], ['te'], ['n.te']])
      expect(withoutDenied(cluster, { ...OPEN, deniedMetadata }).denied).toEqual([]);
  });
});
