/** A member that is being deleted: when its finalizer is released, and what runs or is deleted until then. */
import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  aVolume,
  FORMED,
  LATCHED,
  MEMBER_ID,
  SEED_NAME,
} from '../../../test/support/builders/builders.ts';
import {
  absent,
  ended,
  joined,
  leaving,
  ours,
  ownedVolume,
  replacedVolume,
  retain,
  stepsOf,
  terminatingVolume,
} from '../../../test/support/builders/member.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import type { EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const removed: Observed['peers'] = { is: 'answer', members: [{ id: '1', name: 'other', peerURLs: [] }] };
const retained = aMember({ status: joined, deleting: true, spec: retain });
const paused = aMember({ status: joined, deleting: true, spec: { dormant: true } });

/** The cluster controller has recorded that it replaces this member. */
const replacing = (spec: Partial<EtcdClusterSpec> = {}) => {
  const recent = [{ member: SEED_NAME, at: '2026-01-01T11:59:00Z' }];
  return aCluster({
    spec,
    status: { ...FORMED, repair: { count: 1, last: '2026-01-01T11:59:00Z', generation: 1, recent } },
  });
};
const refusedPvc = (times: number) =>
  remembering('no', { row: 'release', target: `PersistentVolumeClaim ${aVolume().metadata.name}`, times });

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    [
      'it is deleted with its cluster',
      leaving({ cluster: undefined }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'its cluster was deleted while no operator ran: whether it said Retain is unknown, so the PVC is kept for a day',
      leaving({ cluster: undefined, policy: undefined }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'its cluster is deleted, and the event that has the deletionPolicy is still to come',
      leaving({ cluster: undefined, policy: 'pending' }),
      'release',
      [],
    ],
    [
      'its cluster says Delete, and its own copy still Retain: the cluster decides',
      leaving({ member: retained, peers: removed }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'its cluster says Retain, and its own copy still Delete: the cluster decides',
      leaving({ peers: removed, policy: 'Retain' }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it was replaced on failure evidence: its PVC is kept, also with deletionPolicy Delete',
      leaving({ peers: removed, volume: replacedVolume(1) }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it is replaced on failure evidence and loses its Pod before etcd has removed it: its PVC stays quarantined',
      leaving({
        peers: { is: 'answer', members: [{ id: MEMBER_ID, name: '', peerURLs: [] }] },
        pod: absent,
        etcd: { is: 'notAsked' },
        volume: replacedVolume(61_000),
      }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    [
      'it was replaced on failure evidence, and a webhook has refused or removed the label: its PVC is kept all the same',
      leaving({ peers: removed, cluster: replacing() }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it was replaced on failure evidence, and the user has turned quarantine off',
      leaving({ peers: removed, cluster: replacing({ volumeQuarantine: { enabled: false } }) }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'a policy of the administrator forbids the deletion of its PVC: the PVC is kept, and no new member waits for this one',
      leaving({ peers: removed, ...refusedPvc(5) }),
      'release',
      ['patch EtcdMember'],
    ],
    [
      'its PVC could not be deleted for a moment: it is tried again',
      leaving({ peers: removed, ...refusedPvc(4) }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'its PVC of an earlier operator cannot be patched: without the patch, the garbage collector would delete it',
      leaving({ peers: removed, policy: 'Retain', volume: ours(ownedVolume), ...refusedPvc(5) }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'etcd has removed it, and a user deletes its PVC too',
      leaving({ peers: removed, volume: terminatingVolume }),
      'release',
      ['patch EtcdMember'],
    ],
    [
      'its cluster is being deleted',
      leaving({ cluster: aCluster({ status: FORMED, deleting: true }) }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    ['it is deleted and is the only one: its data is kept until another member has it', leaving(), 'release', []],
    [
      'it is deleted, is the only one, and loses its Pod: it must run until a replacement voter has joined',
      leaving({ pod: absent }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    [
      'it is deleted, was the only one, and its data is lost',
      leaving({ pod: absent, volume: absent }),
      'release',
      ['patch EtcdMember'],
    ],
    [
      'it is deleted, was the only one, and its volume is lost',
      leaving({ pod: absent, volume: ours({ ...aVolume(), status: { phase: 'Lost' } }) }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it is deleted, and its cluster was never bootstrapped: there is nothing to keep',
      leaving({ member: aMember({ deleting: true }), cluster: aCluster({ status: LATCHED }) }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it is deleted while its cluster is paused: its Pod is deleted',
      leaving({ member: paused, peers: { is: 'unreachable', message: 'timeout' } }),
      'pause',
      ['delete Pod'],
    ],
    [
      'it is deleted while its cluster is paused, and another one still runs: its Pod is deleted',
      leaving({ member: paused, peers: { is: 'answer', members: [{ id: MEMBER_ID, name: '', peerURLs: [] }] } }),
      'pause',
      ['delete Pod'],
    ],
    [
      'it is the only one, and is deleted from a paused cluster: its Pod is deleted',
      leaving({ member: paused }),
      'pause',
      ['delete Pod'],
    ],
    [
      'it is deleted while its cluster is paused, and has no Pod any more',
      leaving({ member: paused, peers: { is: 'unreachable', message: 'timeout' }, pod: absent }),
      'pause',
      [],
    ],
    [
      'it is deleted and etcd has removed it',
      leaving({ peers: removed }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it is deleted and etcd still lists it',
      leaving({ peers: { is: 'answer', members: [{ id: MEMBER_ID, name: '', peerURLs: [] }] } }),
      'release',
      [],
    ],
    [
      'it is deleted before it ever started, and etcd still lists it',
      leaving({
        member: aMember({ deleting: true }),
        peers: { is: 'answer', members: [{ id: '7', name: '', peerURLs: [`http://${SEED_NAME}.db.ns.svc:2380`] }] },
      }),
      'release',
      [],
    ],
    [
      'it is deleted, and its PVC is retained',
      leaving({
        member: retained,
        policy: 'Retain',
        peers: removed,
      }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it is deleted with its cluster, and its PVC, which is retained, is lost',
      leaving({ member: retained, cluster: undefined, policy: 'Retain', volume: absent }),
      'release',
      ['patch EtcdMember'],
    ],
    [
      'its cluster is deleted: its PVC is retained',
      leaving({ member: retained, cluster: undefined, policy: 'Retain' }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'etcd has removed it, and its Pod is lost: no Pod is created',
      leaving({ peers: removed, pod: absent }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it has not joined, its Pod is lost, and no peer is reachable: no Pod is created',
      leaving({
        member: aMember({ deleting: true, spec: { bootstrap: false } }),
        pod: absent,
        peers: { is: 'unreachable', message: 'timeout' },
      }),
      'release',
      [],
    ],
    [
      'it has not joined, and there is no other member: it has no data',
      leaving({ member: aMember({ deleting: true, spec: { bootstrap: false } }) }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it is deleted and no peer is reachable',
      leaving({ peers: { is: 'unreachable', message: 'timeout' } }),
      'release',
      [],
    ],
    [
      'it is deleted and never joined: its volume has no data to keep',
      leaving({
        member: aMember({ deleting: true, spec: retain }),
        cluster: aCluster({ status: LATCHED }),
      }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it is deleted, etcd still lists it, and it loses its Pod: its vote may be needed',
      leaving({ peers: { is: 'answer', members: [{ id: MEMBER_ID, name: '', peerURLs: [] }] }, pod: absent }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    [
      'it is deleted, no peer is reachable, and its Pod has terminated: without it there may be no quorum',
      leaving({ peers: { is: 'unreachable', message: 'timeout' }, pod: ended }),
      'removeEndedPod',
      ['delete Pod'],
    ],
    [
      'it is deleted and has lost its volume, too: nothing is created',
      leaving({ peers: { is: 'unreachable', message: 'timeout' }, pod: absent, volume: absent }),
      'release',
      [],
    ],
    [
      'it is deleted and has finalizers of other controllers',
      leaving({ member: aMember({ deleting: true, finalizers: ['x/y'] }) }),
      'release',
      [],
    ],
    [
      'it is deleted before its id was recorded, and etcd still lists its name',
      leaving({
        member: aMember({ deleting: true }),
        peers: { is: 'answer', members: [{ id: '7', name: SEED_NAME, peerURLs: [] }] },
      }),
      'release',
      [],
    ],
    [
      'its cluster is being deleted, and no peer is reachable any more',
      leaving({
        cluster: aCluster({ status: FORMED, deleting: true }),
        peers: { is: 'unreachable', message: 'timeout' },
      }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
    ],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});
