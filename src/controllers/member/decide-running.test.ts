/** A member that has joined: it runs, is paused, loses its Pod or its data, and keeps its PVC. */

import { describe, expect, test } from 'vitest';
import { aMember, aPod, aVolume, POD_UID } from '../../../test/support/builders/builders.ts';
import {
  absent,
  ended,
  foreign,
  fresh,
  inMemory,
  joined,
  ours,
  ownedVolume,
  replacedVolume,
  retain,
  stepsOf,
  terminatingVolume,
  voter,
  world,
} from '../../../test/support/builders/member.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import { DRAINING_ANNOTATION } from '../../api/names.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const retained = aMember({ status: joined, spec: retain });
const draining = {
  ...aPod({ ready: true }),
  metadata: { ...aPod().metadata, annotations: { [DRAINING_ANNOTATION]: '2026-01-01T12:00:00Z' } },
};

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['all is well', world(), 'steady', []],
    ['the Pod is deleted', world({ pod: absent, etcd: { is: 'notAsked' } }), 'makeVolumeAndPod', ['create Pod']],
    ['the Pod has terminated', world({ pod: ended }), 'removeEndedPod', ['delete Pod']],
    [
      'a paused member',
      world({ member: aMember({ status: joined, spec: { dormant: true } }), pod: absent }),
      'pause',
      [],
    ],
    ['the PVC is deleted: no empty one replaces it', world({ pod: absent, volume: absent }), 'stopOnDataLoss', []],
    [
      'the PVC of a seed is deleted after the cluster formed, though its id was never recorded',
      world({ member: aMember(), pod: absent, volume: absent }),
      'stopOnDataLoss',
      [],
    ],
    [
      'a Pod with in-memory data is deleted',
      world({ member: aMember({ status: joined, spec: inMemory }), pod: absent, volume: absent }),
      'stopOnDataLoss',
      [],
    ],
    [
      'a Pod with in-memory data has terminated',
      world({ member: aMember({ status: joined, spec: inMemory }), pod: ended, volume: absent }),
      'stopOnDataLoss',
      [],
    ],
    [
      'a Pod with in-memory data is deleted before the cluster formed: nothing is lost',
      fresh({ member: aMember({ spec: inMemory, status: { podUID: POD_UID } }) }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    [
      'the PVC is being deleted: no Pod can mount it',
      world({ pod: absent, volume: terminatingVolume }),
      'stopOnDataLoss',
      [],
    ],
    [
      'the PVC is being deleted, and the Pod has terminated: the Pod may keep it',
      world({ pod: ended, volume: terminatingVolume }),
      'stopOnDataLoss',
      [],
    ],
    [
      'the same while the cluster is being paused',
      world({
        member: aMember({ status: joined, spec: { dormant: true } }),
        pod: ended,
        volume: terminatingVolume,
      }),
      'stopOnDataLoss',
      [],
    ],
    [
      'the PVC of a member that never joined is being deleted: a new one is created once it is gone',
      fresh({ volume: terminatingVolume }),
      'makeVolumeAndPod',
      [],
    ],
    [
      'paused while the PVC is being deleted: the Pod that keeps it is not deleted',
      world({ member: aMember({ status: joined, spec: { dormant: true } }), volume: terminatingVolume }),
      'pause',
      [],
    ],
    [
      'the finalizer was removed',
      world({ member: aMember({ status: joined, finalizers: ['x/y'] }) }),
      'steady',
      ['addFinalizer: patch EtcdMember'],
    ],
    [
      'it votes, and is out of the client Service, because it is about to be restarted',
      world({ pod: ours(draining) }),
      'steady',
      [],
    ],
    [
      'it votes and is not in the client Service',
      world({ pod: ours(aPod({ ready: true })) }),
      'steady',
      ['markPod: patch Pod'],
    ],
    [
      'it does not vote and is in the client Service',
      world({ member: aMember({ status: { ...joined, isVoter: false } }) }),
      'steady',
      ['markPod: patch Pod'],
    ],
    [
      'a user has stripped a label of its Pod, by which the cluster and the Services find it',
      world({ pod: ours(aPod({ ready: true, labels: { ...voter, 'app.kubernetes.io/managed-by': 'a user' } })) }),
      'steady',
      ['markPod: patch Pod'],
    ],
    [
      'it votes, but no cluster id is recorded yet',
      fresh({ member: aMember({ status: { isVoter: true } }), pod: ours(aPod()), volume: ours(aVolume()) }),
      'steady',
      [],
    ],
    [
      'paused with in-memory data, and its Pod has terminated: the Pod is deleted',
      world({ member: aMember({ status: joined, spec: { ...inMemory, dormant: true } }), pod: ended }),
      'pause',
      ['delete Pod'],
    ],
    [
      'its PVC has an owner reference of an earlier operator: the garbage collector must not delete it',
      world({ volume: ours(ownedVolume) }),
      'steady',
      ['correctVolume: patch PersistentVolumeClaim'],
    ],
    [
      'its PVC is quarantined, and it has recovered: it was not replaced after all',
      world({ volume: replacedVolume(61_000) }),
      'steady',
      ['endQuarantine: patch PersistentVolumeClaim'],
    ],
    [
      'its PVC has just been quarantined: its EtcdMember is about to be deleted',
      world({ volume: replacedVolume(59_000) }),
      'steady',
      [],
    ],
    ['its PVC has no owner, also with deletionPolicy Retain', world({ member: retained }), 'steady', []],
    [
      'its PVC has lost its labels: it would not be in the cache any more',
      world({ volume: ours({ ...aVolume(), metadata: { ...aVolume().metadata, labels: {} } }) }),
      'steady',
      ['correctVolume: patch PersistentVolumeClaim'],
    ],
    [
      'its Pod is lost while an admission webhook refuses the patch of its PVC: the Pod is created',
      world({
        pod: absent,
        volume: ours(ownedVolume),
        ...remembering('the API server refuses: no', {
          row: 'correctVolume',
          target: `PersistentVolumeClaim ${ownedVolume.metadata.name}`,
          retryInMs: 1,
        }),
      }),
      'makeVolumeAndPod',
      ['create Pod', '(correctVolume: patch PersistentVolumeClaim)'],
    ],
    [
      'its Pod and its finalizer are lost: no Pod is created before the finalizer is back',
      world({ member: aMember({ status: joined, finalizers: [] }), pod: absent }),
      'makeVolumeAndPod',
      ['addFinalizer: patch EtcdMember'],
    ],
    [
      'paused: the Pod is deleted',
      world({ member: aMember({ status: joined, spec: { dormant: true } }) }),
      'pause',
      ['delete Pod'],
    ],
    [
      'its PVC is retained, and a user deletes it',
      world({
        member: retained,
        volume: ours({ ...aVolume(), metadata: { ...aVolume().metadata, deletionTimestamp: 'now' } }),
      }),
      'steady',
      [],
    ],
    [
      'paused, and its PVC is deleted: the loss is reported',
      world({ member: aMember({ status: joined, spec: { dormant: true } }), pod: absent, volume: absent }),
      'stopOnDataLoss',
      [],
    ],
    // where two rules apply
    [
      'a foreign Pod has its name, and its PVC is deleted: the conflict is reported, which a user can resolve',
      world({ pod: foreign, volume: absent }),
      'nameTaken',
      [],
    ],
    [
      'paused before the earlier operator has set initialCluster',
      world({ member: aMember({ spec: { bootstrap: false, initialCluster: '', dormant: true } }), pod: absent }),
      'waitForJoinList',
      [],
    ],
    [
      'paused with an image that is not allowed any more: no Pod is wanted, so nothing is wrong',
      world({
        member: aMember({ status: joined, spec: { dormant: true, image: { repository: 'evil/etcd' } } }),
        pod: absent,
      }),
      'pause',
      [],
    ],
    [
      'paused, and the Pod is being deleted',
      world({
        member: aMember({ status: joined, spec: { dormant: true } }),
        pod: ours({ ...aPod(), metadata: { ...aPod().metadata, deletionTimestamp: 'now' } }),
      }),
      'pause',
      [],
    ],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});
