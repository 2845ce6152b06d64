/** Members with `--peer-auto-tls`, plaintext peers and peers with certificates are never mixed. */
import { describe, expect, test } from 'vitest';
import { awaited, type Is, lost, up, world } from '../../../test/support/builders/members.ts';
import type { EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { PEER_AUTO_TLS_ANNOTATION } from '../../api/names.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const annotated = (o: Gathered): Gathered => {
  const annotations = { [PEER_AUTO_TLS_ANNOTATION]: 'true' };
  return { ...o, cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, annotations } } };
};
const withPeers = (o: Gathered, peer: NonNullable<EtcdClusterSpec['tls']>['peer']): Gathered => ({
  ...o,
  cluster: { ...o.cluster, spec: { ...o.cluster.spec, tls: { ...(peer && { peer }) } } },
});
const peers = (tls: EtcdMember['spec']['tls'], is: Is = up): Is => ({ ...is, spec: { ...(tls && { tls }) } });
const auto = peers({ peerAutoTLS: true });
const own = { secretRef: { name: 'mine' } };
const certified = peers({ peerSecretRef: { name: 'db-peer-mounted' } });

const addedTo = (o: Gathered): readonly string[] =>
  (decide(o).steps ?? []).flatMap((step) =>
    step.do === 'call' && step.call.is === 'etcd' && step.call.name === 'addLearner' ? [step.call.peerURL] : [],
  );
const createdIn = (o: Gathered): readonly EtcdMember[] =>
  (decide(o).steps ?? []).flatMap((step) =>
    step.do === 'create' && step.object.kind === 'EtcdMember' ? [step.object as EtcdMember] : [],
  );
const reported = (o: Gathered, type: string) => findCondition(decide(o).status?.conditions, type);

describe('a member that is added', () => {
  test.each<[string, Gathered, 'https' | 'http', EtcdMember['spec']['tls']]>([
    ['members with peer-auto-tls', annotated(world([auto, auto], { replicas: 3 })), 'https', { peerAutoTLS: true }],
    ['the annotation was removed', world([auto, auto], { replicas: 3 }), 'https', { peerAutoTLS: true }],
    ['plaintext peers, and the annotation was added', annotated(world([up, up], { replicas: 3 })), 'http', undefined],
    [
      'members with certificates, and the annotation was added',
      annotated(withPeers(world([certified, certified], { replicas: 3 }), own)),
      'https',
      { peerSecretRef: { name: 'db-peer-mounted' } },
    ],
    [
      'members with peer-auto-tls that a cluster with tls.peer has adopted',
      withPeers(world([auto, auto], { replicas: 3 }), own),
      'https',
      { peerAutoTLS: true },
    ],
  ])('%s', (_, o, scheme, tls) => {
    expect(addedTo(o)).toEqual([expect.stringMatching(`^${scheme}://`)]);
    const joins = { ...o, ...world([up, up, awaited], { replicas: 3 }), cluster: o.cluster, members: o.members };
    expect(createdIn(joins).map(({ spec }) => spec.tls)).toEqual([tls]);
  });

  test('replaces a lost one like the others', () => {
    const o = annotated(world([auto, auto, { ...lost, ...peers({ peerAutoTLS: true }, lost) }]));
    expect(decide(o).rule).toBe('replaceLost');
    expect(addedTo(world([auto, auto], { replicas: 3 }))).toHaveLength(1);
  });

  test('that the earlier operator has half created gets the peer URL that it listens on', () => {
    const pending = {
      as: 'unlisted',
      fresh: true,
      down: true,
      spec: { initialCluster: '', tls: { peerAutoTLS: true } },
    } as const satisfies Is;
    const o = world([auto, auto, pending], { replicas: 3 });
    expect(addedTo(o).map((url) => url.split(':')[0])).toEqual(['https']);
  });
});

describe('the first member', () => {
  const seedOf = (o: Gathered) => createdIn(o).map(({ spec }) => [spec.tls, spec.initialCluster.split('=')[1]]);
  const empty = (): Gathered => {
    const o = world([], { replicas: 3 });
    const { clusterID: _, ...status } = o.cluster.status ?? {};
    return { ...o, cluster: { ...o.cluster, status: { ...status, membersNamed: 1 } } };
  };

  test('of a new cluster has what the annotation asks for', () => {
    expect(seedOf(annotated(empty()))).toEqual([[{ peerAutoTLS: true }, expect.stringMatching(/^https:/)]]);
    expect(seedOf(empty())).toEqual([[undefined, expect.stringMatching(/^http:/)]]);
  });
});

describe('reports', () => {
  test('peers that no certificate keeps away, with or without the annotation', () => {
    for (const o of [annotated(world([auto, auto, auto])), world([auto, auto, auto])]) {
      expect(reported(o, 'PeersPinned')).toMatchObject({ status: 'False', reason: 'PeerAutoTLS' });
      expect(reported(o, 'FieldsIgnored')).toBeUndefined();
      expect(reported(o, 'Available')).toMatchObject({ status: 'True' });
      expect(reported(o, 'Progressing')).toMatchObject({ reason: 'Reconciled' });
    }
  });

  test.each<[string, Gathered, string]>([
    ['an annotation on plaintext peers', annotated(world([up, up, up])), 'plaintext peers'],
    [
      'an annotation on peers with certificates',
      annotated(withPeers(world([certified, certified, certified]), own)),
      'tls.peer',
    ],
    ['tls.peer over members with peer-auto-tls', withPeers(world([auto, auto, auto]), own), 'tls.peer has no effect'],
  ])('%s as ignored', (_, o, message) => {
    expect(reported(o, 'FieldsIgnored')?.message).toContain(message);
  });
});
