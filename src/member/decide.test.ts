import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  aPod,
  aVolume,
  FORMED,
  LATCHED,
  MEMBER_ID,
  POD_UID,
  SEED_NAME,
} from '../../test/support/builders.ts';
import {
  absent,
  foreign,
  fresh,
  inMemory,
  joined,
  leaving,
  ours,
  readyPod,
  stepsOf,
  world,
} from '../../test/support/member-world.ts';
import { TASK_VARIABLE } from '../api/agent-task.ts';
import { ASIDE_ANNOTATION, INITIAL_STATE_ANNOTATION } from '../api/names.ts';
import type { Pod } from '../gen/kube.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const withTls = { tls: { peerAutoTLS: true } };
const retain = { deletionPolicy: 'Retain' } as const;
const retained = aMember({ status: joined, spec: retain });
const { ownerReferences: _o, ...unowned } = aVolume().metadata;
const untied = { ...aVolume(), metadata: unowned };
const agents = { repository: 'quay.io/coreos/etcd', allowed: [], operator: 'example.com/operator:1' };
const restore = { source: { pvc: { claimName: 'c', subPath: 'x' } } };
const standingAside = {
  ...aPod({ ready: true }),
  metadata: { ...aPod().metadata, annotations: { [ASIDE_ANNOTATION]: '2026-01-01T12:00:00Z' } },
};
const mayBegin = { ...aPod(), metadata: { ...aPod().metadata, annotations: { [INITIAL_STATE_ANNOTATION]: 'new' } } };
const command = ['etcd', `--initial-cluster=${aMember().spec.initialCluster}`];
const joiningPod: Pod = { ...aPod(), spec: { containers: [{ name: 'etcd', image: 'i', command }] } };
const forgotten: Observed['peers'] = { is: 'answer', members: [{ id: '1', name: 'other', peerURLs: [] }] };
const asleep = aMember({ status: joined, deleting: true, spec: { dormant: true } });
const ended = ours(aPod({ status: { phase: 'Failed', reason: 'Evicted' } }));

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['a new member', fresh(), 'makeVolumeAndPod', ['create PersistentVolumeClaim', 'create Pod']],
    ['a crash after the volume', fresh({ volume: ours(aVolume()) }), 'makeVolumeAndPod', ['create Pod']],
    ['a new member in memory', fresh({ member: aMember({ spec: inMemory }) }), 'makeVolumeAndPod', ['create Pod']],
    ['all is well', world(), 'steady', []],
    ['the Pod is gone', world({ pod: absent, etcd: { is: 'notAsked' } }), 'makeVolumeAndPod', ['create Pod']],
    ['the Pod has ended', world({ pod: ended }), 'removeEndedPod', ['delete Pod']],
    [
      'a new member with TLS that is not built: no Pod, and surely none in plain text',
      fresh({ member: aMember({ spec: withTls }) }),
      'cannotRun',
      [],
    ],
    [
      'a new member from a snapshot, and no image to restore it with: no Pod, and surely none that begins with nothing',
      fresh({ member: aMember({ spec: { restore } }) }),
      'cannotRun',
      [],
    ],
    [
      'a new member from a snapshot',
      fresh({ member: aMember({ spec: { restore } }), images: agents }),
      'makeVolumeAndPod',
      ['create PersistentVolumeClaim', 'create Pod'],
    ],
    [
      'a member that came from a snapshot and has lost its Pod',
      world({ member: aMember({ status: joined, spec: { restore } }), pod: absent, etcd: { is: 'notAsked' } }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    [
      'a parked member',
      world({ member: aMember({ status: joined, spec: { dormant: true } }), pod: absent }),
      'park',
      [],
    ],
    [
      'a member with TLS whose Pod has ended: it is not taken away',
      world({ member: aMember({ status: joined, spec: withTls }), pod: ended }),
      'cannotRun',
      [],
    ],
    [
      'a member with TLS that runs is left running',
      world({ member: aMember({ status: joined, spec: withTls }) }),
      'steady',
      [],
    ],
    [
      'an image that is not allowed',
      fresh({ member: aMember({ spec: { image: { repository: 'evil/etcd' } } }) }),
      'cannotRun',
      [],
    ],
    [
      'a member whose image is not allowed any more is left running',
      world({ member: aMember({ status: joined, spec: { image: { repository: 'evil/etcd' } } }) }),
      'steady',
      [],
    ],
    ['the volume is gone: no empty one takes its place', world({ pod: absent, volume: absent }), 'stopOnDataLoss', []],
    [
      'the volume of a seed is gone after the cluster formed, though its id was never recorded',
      world({ member: aMember(), pod: absent, volume: absent }),
      'stopOnDataLoss',
      [],
    ],
    [
      'a Pod with data in memory is gone',
      world({ member: aMember({ status: joined, spec: inMemory }), pod: absent, volume: absent }),
      'stopOnDataLoss',
      [],
    ],
    [
      'a Pod with data in memory has ended',
      world({ member: aMember({ status: joined, spec: inMemory }), pod: ended, volume: absent }),
      'stopOnDataLoss',
      [],
    ],
    [
      'a Pod with data in memory is gone before there was a cluster: nothing is lost',
      fresh({ member: aMember({ spec: inMemory, status: { podUID: POD_UID } }) }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    ['the volume is somebody else’s', fresh({ volume: foreign }), 'nameTaken', []],
    ['the Pod is somebody else’s', fresh({ pod: foreign }), 'nameTaken', []],
    [
      'the volume is on its way out',
      world({
        pod: absent,
        volume: ours({ ...aVolume(), metadata: { ...aVolume().metadata, deletionTimestamp: 'now' } }),
      }),
      'makeVolumeAndPod',
      [],
    ],
    [
      'the finalizer was taken off',
      world({ member: aMember({ status: joined, finalizers: ['x/y'] }) }),
      'addFinalizer',
      ['patch EtcdMember'],
    ],
    [
      'it votes, and clients are led to others, because it is about to be started again',
      world({ pod: ours(standingAside) }),
      'steady',
      [],
    ],
    ['it votes and clients cannot reach it', world({ pod: ours(aPod({ ready: true })) }), 'markPod', ['patch Pod']],
    [
      'it does not vote and clients can reach it',
      world({ member: aMember({ status: { ...joined, isVoter: false } }) }),
      'markPod',
      ['patch Pod'],
    ],
    [
      'it votes, but no cluster id is recorded yet',
      fresh({ member: aMember({ status: { isVoter: true } }), pod: ours(aPod()), volume: ours(aVolume()) }),
      'steady',
      [],
    ],
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
      'park',
      ['delete Pod'],
    ],
    [
      'it goes while its cluster is parked, and another one still runs: its Pod goes',
      leaving({ member: asleep, peers: { is: 'answer', members: [{ id: MEMBER_ID, name: '', peerURLs: [] }] } }),
      'park',
      ['delete Pod'],
    ],
    [
      'it is the only one, and goes from a parked cluster: its Pod goes',
      leaving({ member: asleep }),
      'park',
      ['delete Pod'],
    ],
    [
      'parked in memory, and its Pod has ended: the Pod goes',
      world({ member: aMember({ status: joined, spec: { ...inMemory, dormant: true } }), pod: ended }),
      'park',
      ['delete Pod'],
    ],
    [
      'it goes while its cluster is parked, and has no Pod any more',
      leaving({ member: asleep, peers: { is: 'silent', why: 'timeout' }, pod: absent }),
      'park',
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
    [
      'its volume is to stay: it must have no owner',
      world({ member: retained }),
      'tieVolume',
      ['patch PersistentVolumeClaim'],
    ],
    ['its volume has none', world({ member: retained, volume: ours(untied) }), 'steady', []],
    [
      'its volume is to go with it again',
      world({ volume: ours(untied) }),
      'tieVolume',
      ['patch PersistentVolumeClaim'],
    ],
    [
      'parked: the Pod goes',
      world({ member: aMember({ status: joined, spec: { dormant: true } }) }),
      'park',
      ['delete Pod'],
    ],
    [
      'the earlier operator has not said whom to join',
      fresh({ member: aMember({ spec: { bootstrap: false, initialCluster: '' } }) }),
      'waitForJoinList',
      [],
    ],
    [
      'its list has changed before it has joined',
      fresh({
        member: aMember({ spec: { bootstrap: false, initialCluster: 'a=http://a:2380' } }),
        pod: readyPod,
        volume: ours(aVolume()),
      }),
      'remakeJoiningPod',
      ['delete Pod'],
    ],
    [
      'its list has changed since it joined, and its id was never recorded: nobody restarts a voter',
      world({ member: aMember({ status: { isVoter: true }, spec: { bootstrap: false, initialCluster: 'a=b' } }) }),
      'steady',
      [],
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
    [
      'its volume is to stay, and somebody deletes it',
      world({
        member: retained,
        volume: ours({ ...aVolume(), metadata: { ...aVolume().metadata, deletionTimestamp: 'now' } }),
      }),
      'steady',
      [],
    ],
    [
      'it has joined, and the list has changed since: its Pod stays',
      world({ member: aMember({ status: joined, spec: { bootstrap: false } }) }),
      'steady',
      [],
    ],
    [
      'it joins with the right list: its Pod stays',
      fresh({ member: aMember({ spec: { bootstrap: false } }), pod: ours(joiningPod), volume: ours(aVolume()) }),
      'steady',
      [],
    ],
    [
      'a seed that has not begun yet may still begin',
      fresh({ pod: ours(mayBegin), volume: ours(aVolume()) }),
      'steady',
      [],
    ],
    [
      'parked, and the Pod is on its way',
      world({
        member: aMember({ status: joined, spec: { dormant: true } }),
        pod: ours({ ...aPod(), metadata: { ...aPod().metadata, deletionTimestamp: 'now' } }),
      }),
      'park',
      [],
    ],
    ['its cluster is gone and it is not deleted yet', fresh({ cluster: undefined }), 'clusterGoing', []],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

test.each([
  [true, true],
  [false, false],
])('the agent is told whether clients log in: %s', (enabled, auth) => {
  const cluster = aCluster({
    spec: { auth: { enabled, rootCredentialsSecretRef: { name: 'root' } } },
    status: LATCHED,
  });
  const { steps } = decide(fresh({ member: aMember({ spec: { restore } }), cluster, images: agents }));
  const made = steps.flatMap((step) =>
    step.do === 'create' && step.object.kind === 'Pod' ? [step.object as Pod] : [],
  );
  const told = made[0]?.spec?.initContainers?.[1]?.env?.find(({ name }) => name === TASK_VARIABLE)?.value;
  expect(JSON.parse(told ?? '{}')).toMatchObject({ task: 'restore', auth });
});
