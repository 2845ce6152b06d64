/** A member that has begun: it runs, is parked, loses its Pod or its data, and keeps its volume. */
import { describe, expect, test } from 'vitest';
import { aMember, aPod, aVolume, POD_UID } from '../../../test/support/builders/builders.ts';
import {
  absent,
  ended,
  fresh,
  inMemory,
  joined,
  ours,
  retain,
  stepsOf,
  untied,
  world,
} from '../../../test/support/builders/member.ts';
import { DRAINING_ANNOTATION } from '../../api/names.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const retained = aMember({ status: joined, spec: retain });
const standingAside = {
  ...aPod({ ready: true }),
  metadata: { ...aPod().metadata, annotations: { [DRAINING_ANNOTATION]: '2026-01-01T12:00:00Z' } },
};

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['all is well', world(), 'steady', []],
    ['the Pod is gone', world({ pod: absent, etcd: { is: 'notAsked' } }), 'makeVolumeAndPod', ['create Pod']],
    ['the Pod has ended', world({ pod: ended }), 'removeEndedPod', ['delete Pod']],
    [
      'a parked member',
      world({ member: aMember({ status: joined, spec: { dormant: true } }), pod: absent }),
      'pause',
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
    [
      'parked in memory, and its Pod has ended: the Pod goes',
      world({ member: aMember({ status: joined, spec: { ...inMemory, dormant: true } }), pod: ended }),
      'pause',
      ['delete Pod'],
    ],
    [
      'its volume is to stay: it must have no owner',
      world({ member: retained }),
      'ownVolume',
      ['patch PersistentVolumeClaim'],
    ],
    ['its volume has none', world({ member: retained, volume: ours(untied) }), 'steady', []],
    [
      'its volume is to go with it again',
      world({ volume: ours(untied) }),
      'ownVolume',
      ['patch PersistentVolumeClaim'],
    ],
    [
      'parked: the Pod goes',
      world({ member: aMember({ status: joined, spec: { dormant: true } }) }),
      'pause',
      ['delete Pod'],
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
      'parked, and the Pod is on its way',
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
