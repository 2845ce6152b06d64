/** What the Go operator needs of a cluster that this operator has managed. With a real API server: test/integration/hand-back.test.ts. */
import { describe, expect, test } from 'vitest';
import { aCluster, aMember, aPod, aVolume } from '../../../test/support/builders/builders.ts';
import type { EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import type { EtcdMemberSpec } from '../../api/etcd-member.ts';
import { etcdMembers, MEMBER_UID_ANNOTATION, QUARANTINE_LABEL } from '../../api/names.ts';
import { ownedBy } from '../../domain/ownership.ts';
import type { ObjectMeta, PersistentVolumeClaim, Pod } from '../../gen/kube.ts';
import { assessHandBack, type HandedBack } from './hand-back.ts';

const NAME = 'db-aaaa1';
const object = (spec: Partial<EtcdMemberSpec> = {}) => {
  const member = aMember({ spec });
  return { ...member, metadata: { ...member.metadata, name: NAME, uid: 'uid-1', resourceVersion: '7' } };
};
const volume = (metadata: Partial<ObjectMeta> = {}): PersistentVolumeClaim => ({
  ...aVolume(),
  metadata: {
    name: `data-${NAME}`,
    resourceVersion: '8',
    annotations: { [MEMBER_UID_ANNOTATION]: 'uid-1' },
    ...metadata,
  },
});
const facts = (spec: Partial<EtcdClusterSpec> = {}, more: Partial<HandedBack> = {}): HandedBack => ({
  cluster: aCluster({ spec }),
  members: [{ object: object() }],
  volumes: [volume()],
  schedules: 0,
  ...more,
});
const copies = { clientServerSecretRef: { name: 'db-server-mounted' }, peerSecretRef: { name: 'db-peer-mounted' } };
const issuer = { name: 'ca' };

describe('the owner reference of a PVC', () => {
  test('is put back, beside those of others, and only if nothing has changed since', () => {
    const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
    const found = assessHandBack(facts({}, { volumes: [volume({ ownerReferences: [other] })] }));
    expect(found).toEqual({
      changes: [
        {
          kind: 'PersistentVolumeClaim',
          name: `data-${NAME}`,
          fields: { metadata: { resourceVersion: '8', ownerReferences: [other, ...ownedBy(etcdMembers, object())] } },
        },
      ],
      obstacles: [],
      notes: [],
    });
  });

  test.each<[string, Partial<HandedBack>]>([
    ['it has one', { volumes: [volume({ ownerReferences: ownedBy(etcdMembers, object()) })] }],
    ['there is no PVC', { volumes: [] }],
    ['the data is in memory', { members: [{ object: object({ storage: { size: '1Gi', medium: 'Memory' } }) }] }],
  ])('needs nothing when %s', (_, more) => {
    expect(assessHandBack(facts({}, more))).toEqual({ changes: [], obstacles: [], notes: [] });
  });

  test.each<[string, Partial<ObjectMeta>, string]>([
    ['of an earlier member', { annotations: { [MEMBER_UID_ANNOTATION]: 'uid-0' } }, 'belongs to an earlier EtcdMember'],
    [
      'of another controller',
      { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 's', uid: 's', controller: true }] },
      'belongs to StatefulSet s',
    ],
    ['in quarantine', { labels: { [QUARANTINE_LABEL]: 'member-replaced' } }, 'is in quarantine'],
  ])('is not given to a PVC %s', (_, metadata, sentence) => {
    const { changes, obstacles } = assessHandBack(facts({}, { volumes: [volume(metadata)] }));
    expect([changes, obstacles]).toEqual([[], [expect.stringContaining(sentence)]]);
  });
});

describe('the Secrets of a member', () => {
  test.each<[string, NonNullable<EtcdClusterSpec['tls']>, object]>([
    [
      'are those of the user',
      { client: { serverSecretRef: { name: 'server' } }, peer: { secretRef: { name: 'peer' } } },
      { clientServerSecretRef: { name: 'server' }, peerSecretRef: { name: 'peer' } },
    ],
    [
      'are those of cert-manager',
      { client: { certManager: { serverIssuerRef: issuer } }, peer: { certManager: { issuerRef: issuer } } },
      { clientServerSecretRef: { name: 'db-server-tls' }, peerSecretRef: { name: 'db-peer-tls' } },
    ],
  ])('%s again', (_, tls, expected) => {
    const { changes } = assessHandBack(facts({ tls }, { members: [{ object: object({ tls: copies }) }], volumes: [] }));
    expect(changes).toEqual([
      { kind: 'EtcdMember', name: NAME, fields: { metadata: { resourceVersion: '7' }, spec: { tls: expected } } },
    ]);
  });

  test('that the Go operator has written stay', () => {
    const tls = { client: { serverSecretRef: { name: 'server' } } };
    const native = { clientServerSecretRef: { name: 'server' }, clientMTLS: true };
    const members = [{ object: object({ tls: native }) }];
    expect(assessHandBack(facts({ tls }, { members, volumes: [] })).changes).toEqual([]);
  });
});

describe('what is reported', () => {
  test.each<[string, HandedBack, string]>([
    [
      'certificates of this operator',
      facts({ tls: { client: { managed: {} } } }),
      'tls.client.managed: the Go operator',
    ],
    [
      'members that this operator has created with --max-learners',
      facts({}, { members: [{ object: object({ maxLearners: 8 }) }], volumes: [] }),
      `${NAME} run with --max-learners, which the Go operator does not pass`,
    ],
    [
      'members that would stay paused',
      facts(
        { replicas: 1 },
        { members: ['a', 'b', 'c'].map(() => ({ object: object({ dormant: true }) })), volumes: [] },
      ),
      'Set replicas to 3',
    ],
  ])('%s are in the way', (_, found, sentence) => {
    expect(assessHandBack(found).obstacles).toEqual([expect.stringContaining(sentence)]);
  });

  test('a cluster that is paused as a whole is resumed by the Go operator as it was', () => {
    const members = ['a', 'b', 'c'].map(() => ({ object: object({ dormant: true }) }));
    for (const replicas of [0, 3]) expect(assessHandBack(facts({ replicas }, { members })).obstacles).toEqual([]);
  });

  test('fields, schedules and PVCs that it does not know', () => {
    const kept = volume({ name: 'data-db-gone', labels: { [QUARANTINE_LABEL]: 'member-replaced' } });
    const spec = {
      suspend: true,
      options: { quotaBackendBytes: 1, heartbeatInterval: '1s' },
    } as Partial<EtcdClusterSpec>;
    expect(assessHandBack(facts(spec, { volumes: [kept], schedules: 2 })).notes).toEqual([
      'without effect under the Go operator: suspend, options.heartbeatInterval',
      'no snapshot is taken by its 2 EtcdSnapshotSchedules any more',
      'PVCs in quarantine are kept until you delete them: data-db-gone',
    ]);
  });

  test('Pods that mount copies, which are renewed no more', () => {
    const leaf = { secret: { name: 'db-server-mounted' } };
    const withCopies: Pod = {
      ...aPod(),
      spec: { containers: [], volumes: [{ name: 'tls-client', projected: { sources: [leaf] } }] },
    };
    const native: Pod = {
      ...aPod(),
      spec: { containers: [], volumes: [{ name: 'tls-client', secret: { secretName: 'server' } }] },
    };
    const noted = (pod: Pod) => assessHandBack(facts({}, { members: [{ object: object(), pod }] })).notes;
    expect(noted(withCopies)).toEqual([expect.stringContaining(`Pods ${NAME} mount copies of its Secrets`)]);
    expect(noted(native)).toEqual([]);
  });
});
