/** What an EtcdMember may name, checked again by the operator: a user may have written it, and no rule of the CRD has checked it. */
import { describe, expect, test } from 'vitest';
import { aCluster, aMember, FORMED, LATCHED, MEMBER_ID, TARGET } from '../../test/support/builders/builders.ts';
import type { EtcdCluster, EtcdClusterSpec } from '../api/etcd-cluster.ts';
import type { EtcdMemberSpec } from '../api/etcd-member.ts';
import { podBlockedBy } from './member-pod.ts';

const images = { repository: 'quay.io/coreos/etcd', allowed: [] };
const restore = { source: { s3: { endpoint: 'https://s3.example.com', bucket: 'b', key: 'k' } } };
const ca = { name: 'ca', kind: 'Issuer' } as const;
const mounts = { clientServerSecretRef: { name: 'db-server-mounted' }, peerSecretRef: { name: 'db-peer-mounted' } };
const managed = { client: { managed: {} }, peer: { managed: {} } };
const byCertManager = { client: { certManager: { serverIssuerRef: ca } }, peer: { certManager: { issuerRef: ca } } };
const own = { client: { serverSecretRef: { name: 'mine' } }, peer: { secretRef: { name: 'mine-peer' } } };

type Row = [string, Partial<EtcdMemberSpec>, Partial<EtcdClusterSpec>];
const reasonOf = (member: Partial<EtcdMemberSpec>, cluster: Partial<EtcdClusterSpec>) =>
  podBlockedBy(aMember({ spec: member }), images, aCluster({ spec: cluster, status: FORMED }))?.reason;

describe('S3: no Pod is created for an EtcdMember', () => {
  test.each<[...Row, string]>([
    ['with a flag that the operator sets', { extraArgs: ['--data-dir=/'] }, {}, 'FlagNotAllowed'],
    ['with an entry that is no flag', { extraArgs: ['--cors=*', 'x'] }, {}, 'FlagNotAllowed'],
    ['with TLS that its cluster does not have', { tls: mounts }, {}, 'ReferenceNotPermitted'],
    [
      'that mounts a Secret of another application at the peer port',
      { tls: { peerSecretRef: { name: 'other' } } },
      { tls: managed },
      'ReferenceNotPermitted',
    ],
    [
      'that mounts the Secret of a CA',
      { tls: { clientServerSecretRef: { name: 'db-client-ca' } } },
      { tls: managed },
      'ReferenceNotPermitted',
    ],
    ['that restores what its cluster does not', { restore }, {}, 'ReferenceNotPermitted'],
    [
      'that restores with credentials which its cluster does not name',
      { restore: { source: { s3: { ...restore.source.s3, credentialsSecretRef: { name: 'other' } } } } },
      { bootstrap: { restore } },
      'ReferenceNotPermitted',
    ],
    [
      'that decrypts with a key which its cluster does not name',
      { restore: { ...restore, encryption: { keySecretRef: { name: 'other' } } } },
      { bootstrap: { restore } },
      'ReferenceNotPermitted',
    ],
  ])('%s', (_name, member, cluster, reason) => {
    expect(reasonOf(member, cluster)).toBe(reason);
  });

  test.each<Row>([
    ['without anything of this', {}, {}],
    ['with other flags', { extraArgs: ['--cors=*', '--max-txn-ops=256'] }, {}],
    [
      'with a flag that an earlier rule accepted for its cluster',
      { extraArgs: ['--name=x'] },
      { extraArgs: ['--name=x'] },
    ],
    ['with the mounts of a managed CA', { tls: mounts }, { tls: managed }],
    ['with the mounts of cert-manager', { tls: mounts }, { tls: byCertManager }],
    [
      'with the Secrets of cert-manager, as the earlier operator wrote them',
      { tls: { clientServerSecretRef: { name: 'db-server-tls' }, peerSecretRef: { name: 'db-peer-tls' } } },
      { tls: byCertManager },
    ],
    [
      "with the user's own Secrets, as the earlier operator wrote them",
      { tls: { clientServerSecretRef: { name: 'mine' }, peerSecretRef: { name: 'mine-peer' } } },
      { tls: own },
    ],
    ['with the restore of its cluster', { restore: { ...restore, bumpRevision: 5 } }, { bootstrap: { restore } }],
  ])('but for one %s', (_name, member, cluster) => {
    expect(reasonOf(member, cluster)).toBeUndefined();
  });

  test.each<Row>([
    ['restores a snapshot', { restore }, { bootstrap: { restore } }],
    ['mounts a Secret', { tls: { peerSecretRef: { name: 'mine-peer' } } }, { tls: own }],
  ])(
    'S2, S4: that %s before the operator has bootstrapped its cluster, which may name what is not permitted',
    (...row) => {
      const [, spec, clusterSpec] = row;
      const reason = (status: EtcdCluster['status']) =>
        podBlockedBy(aMember({ spec }), images, aCluster({ spec: clusterSpec, ...(status && { status }) }))?.reason;
      expect([reason(undefined), reason({}), reason(LATCHED), reason(FORMED)]).toEqual([
        'ReferenceNotPermitted',
        'ReferenceNotPermitted',
        undefined,
        undefined,
      ]);
    },
  );
  test('whose clusterName is that of another cluster, whose Secrets its Pod would mount', () => {
    expect(reasonOf({ clusterName: 'other' }, {})).toBe('ReferenceNotPermitted');
  });

  test('but for one with a flag of the last accepted spec, which the user has removed meanwhile', () => {
    const status = { ...FORMED, observed: { ...TARGET, extraArgs: ['--name=x'] } };
    const member = aMember({ spec: { extraArgs: ['--name=x'] } });
    expect(podBlockedBy(member, images, aCluster({ status }))).toBeUndefined();
  });
  test('but for one that has restored its snapshot long ago', () => {
    const member = aMember({ spec: { restore }, status: { memberID: MEMBER_ID } });
    expect(podBlockedBy(member, images, aCluster({ status: FORMED }))).toBeUndefined();
  });
});
