/** A member that goes: when it is let go, and what is kept running or is taken away until then. */
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
  retain,
  stepsOf,
  untied,
} from '../../../test/support/builders/member.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const forgotten: Observed['peers'] = { is: 'answer', members: [{ id: '1', name: 'other', peerURLs: [] }] };
const asleep = aMember({ status: joined, deleting: true, spec: { dormant: true } });

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['it goes with its cluster', leaving({ cluster: undefined }), 'release', ['patch EtcdMember']],
    [
      'its cluster is being deleted',
      leaving({ cluster: aCluster({ status: FORMED, deleting: true }) }),
      'release',
      ['patch EtcdMember'],
    ],
    ['it goes and is the only one: its data stays until another one has it', leaving(), 'release', []],
    [
      'it goes and is the only one, and loses its Pod: it has to run for another one to take over',
      leaving({ pod: absent }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    [
      'it goes, was the only one, and its data is gone before',
      leaving({ pod: absent, volume: absent }),
      'release',
      ['patch EtcdMember'],
    ],
    [
      'it goes, was the only one, and its volume is lost',
      leaving({ pod: absent, volume: ours({ ...aVolume(), status: { phase: 'Lost' } }) }),
      'release',
      ['patch EtcdMember'],
    ],
    [
      'it goes, and its cluster was never begun: there is nothing to keep',
      leaving({ member: aMember({ deleting: true }), cluster: aCluster({ status: LATCHED }) }),
      'release',
      ['patch EtcdMember'],
    ],
    [
      'it goes while its cluster is parked: its Pod goes',
      leaving({ member: asleep, peers: { is: 'silent', why: 'timeout' } }),
      'pause',
      ['delete Pod'],
    ],
    [
      'it goes while its cluster is parked, and another one still runs: its Pod goes',
      leaving({ member: asleep, peers: { is: 'answer', members: [{ id: MEMBER_ID, name: '', peerURLs: [] }] } }),
      'pause',
      ['delete Pod'],
    ],
    [
      'it is the only one, and goes from a parked cluster: its Pod goes',
      leaving({ member: asleep }),
      'pause',
      ['delete Pod'],
    ],
    [
      'it goes while its cluster is parked, and has no Pod any more',
      leaving({ member: asleep, peers: { is: 'silent', why: 'timeout' }, pod: absent }),
      'pause',
      [],
    ],
    ['it goes and etcd has forgotten it', leaving({ peers: forgotten }), 'release', ['patch EtcdMember']],
    [
      'it goes and etcd still counts it',
      leaving({ peers: { is: 'answer', members: [{ id: MEMBER_ID, name: '', peerURLs: [] }] } }),
      'release',
      [],
    ],
    [
      'it goes before it ever started, and etcd still counts it',
      leaving({
        member: aMember({ deleting: true }),
        peers: { is: 'answer', members: [{ id: '7', name: '', peerURLs: [`http://${SEED_NAME}.db.ns.svc:2380`] }] },
      }),
      'release',
      [],
    ],
    [
      'it goes, and its volume is to stay',
      leaving({
        member: aMember({ status: joined, deleting: true, spec: retain }),
        volume: ours(untied),
        peers: forgotten,
      }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    ['it goes and nobody can say', leaving({ peers: { is: 'silent', why: 'timeout' } }), 'release', []],
    [
      'it goes and never joined: there is nothing on its volume to keep',
      leaving({
        member: aMember({ deleting: true, spec: retain }),
        cluster: aCluster({ status: LATCHED }),
      }),
      'release',
      ['patch PersistentVolumeClaim', 'patch EtcdMember'],
    ],
    [
      'it goes, etcd still counts it, and it loses its Pod: its vote may be needed',
      leaving({ peers: { is: 'answer', members: [{ id: MEMBER_ID, name: '', peerURLs: [] }] }, pod: absent }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    [
      'it goes, nobody can say, and its Pod has ended: without it there may be no quorum',
      leaving({ peers: { is: 'silent', why: 'timeout' }, pod: ended }),
      'removeEndedPod',
      ['delete Pod'],
    ],
    [
      'it goes and has lost its volume, too: nothing is made',
      leaving({ peers: { is: 'silent', why: 'timeout' }, pod: absent, volume: absent }),
      'release',
      [],
    ],
    [
      'it goes and others hold on to it',
      leaving({ member: aMember({ deleting: true, finalizers: ['x/y'] }) }),
      'release',
      [],
    ],
    [
      'it goes before its id was recorded, and etcd still counts its name',
      leaving({
        member: aMember({ deleting: true }),
        peers: { is: 'answer', members: [{ id: '7', name: SEED_NAME, peerURLs: [] }] },
      }),
      'release',
      [],
    ],
    [
      'its cluster is being deleted, and nobody can say anything any more',
      leaving({ cluster: aCluster({ status: FORMED, deleting: true }), peers: { is: 'silent', why: 'timeout' } }),
      'release',
      ['patch EtcdMember'],
    ],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});
