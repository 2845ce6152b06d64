/** A new member: its PVC, its Pod and its --initial-cluster, and when no Pod is created. */
import { describe, expect, test } from 'vitest';
import { aCluster, aMember, aPod, aVolume, LATCHED } from '../../../test/support/builders/builders.ts';
import {
  absent,
  ended,
  foreign,
  fresh,
  inMemory,
  joined,
  ours,
  stepsOf,
  world,
} from '../../../test/support/builders/member.ts';
import { INITIAL_CLUSTER_ANNOTATION, INITIAL_STATE_ANNOTATION } from '../../api/names.ts';
import { TASK_VARIABLE } from '../../domain/agent-task.ts';
import type { Pod } from '../../gen/kube.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const EVIL = { image: { repository: 'evil/etcd' } };
const agents = { repository: 'quay.io/coreos/etcd', allowed: [], operator: 'example.com/operator:1' };
const restore = { source: { pvc: { claimName: 'c', subPath: 'x' } } };
const restored = (status = LATCHED) => aCluster({ spec: { bootstrap: { restore } }, status });
const mayBegin = { ...aPod(), metadata: { ...aPod().metadata, annotations: { [INITIAL_STATE_ANNOTATION]: 'new' } } };
const annotatedPod = {
  ...aPod(),
  metadata: { ...aPod().metadata, annotations: { [INITIAL_CLUSTER_ANNOTATION]: 'a=http://a:2380' } },
};
const command = ['etcd', `--initial-cluster=${aMember().spec.initialCluster}`];
const joiningMember = aMember({ spec: { bootstrap: false, initialCluster: 'a=http://a:2380' } });
const joiningPod: Pod = { ...aPod(), spec: { containers: [{ name: 'etcd', image: 'i', command }] } };

describe('the rule that decides', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['a new member', fresh(), 'makeVolumeAndPod', ['create PersistentVolumeClaim', 'create Pod']],
    ['a crash after the volume', fresh({ volume: ours(aVolume()) }), 'makeVolumeAndPod', ['create Pod']],
    ['a new member in memory', fresh({ member: aMember({ spec: inMemory }) }), 'makeVolumeAndPod', ['create Pod']],
    [
      'a new member with a restore, and no operator image: no Pod, and none that bootstraps an empty cluster',
      fresh({ member: aMember({ spec: { restore } }), cluster: restored() }),
      'cannotRun',
      [],
    ],
    [
      'a new member with a restore',
      fresh({ member: aMember({ spec: { restore } }), cluster: restored(), images: agents }),
      'makeVolumeAndPod',
      ['create PersistentVolumeClaim', 'create Pod'],
    ],
    [
      'a restored member that has lost its Pod',
      world({ member: aMember({ status: joined, spec: { restore } }), pod: absent, etcd: { is: 'notAsked' } }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    ['an image that is not allowed', fresh({ member: aMember({ spec: EVIL }) }), 'cannotRun', []],
    [
      'a running member whose image is not allowed any more is left alone',
      world({ member: aMember({ status: joined, spec: EVIL }) }),
      'steady',
      [],
    ],
    [
      'a member that joined with an image which is not allowed any more gets its Pod back',
      world({ member: aMember({ status: { ...joined, image: 'evil/etcd:v3.6.16' }, spec: EVIL }), pod: absent }),
      'makeVolumeAndPod',
      ['create Pod'],
    ],
    [
      'and its ended Pod is recreated',
      world({ member: aMember({ status: { ...joined, image: 'evil/etcd:v3.6.16' }, spec: EVIL }), pod: ended }),
      'removeEndedPod',
      ['delete Pod'],
    ],
    [
      'a forbidden image that was edited into a member after it joined',
      world({ member: aMember({ status: { ...joined, image: 'fine/etcd:v3.6.16' }, spec: EVIL }), pod: absent }),
      'cannotRun',
      [],
    ],
    [
      'another version of a forbidden image, edited into a member after it joined',
      world({ member: aMember({ status: { ...joined, image: 'evil/etcd:v3.6.15' }, spec: EVIL }), pod: absent }),
      'cannotRun',
      [],
    ],
    [
      'a flag that the operator sets, written into its EtcdMember: no Pod',
      fresh({ member: aMember({ spec: { extraArgs: ['--force-new-cluster'] } }) }),
      'cannotRun',
      [],
    ],
    [
      'a Secret that its cluster does not use, written into its EtcdMember: no Pod mounts it',
      fresh({ member: aMember({ spec: { tls: { clientServerSecretRef: { name: 'of-another-application' } } } }) }),
      'cannotRun',
      [],
    ],
    [
      'a restore that its cluster does not ask for: no Pod mounts the PVC',
      fresh({ member: aMember({ spec: { restore } }), images: agents }),
      'cannotRun',
      [],
    ],
    ['the PVC is foreign', fresh({ volume: foreign }), 'nameTaken', []],
    ['the Pod is foreign', fresh({ pod: foreign }), 'nameTaken', []],
    [
      'the earlier operator has not set initialCluster yet',
      fresh({ member: aMember({ spec: { bootstrap: false, initialCluster: '' } }) }),
      'waitForJoinList',
      [],
    ],
    [
      'initialCluster has changed before it has joined',
      fresh({ member: joiningMember, pod: ours(aPod({ ready: true })), volume: ours(aVolume()) }),
      'remakeJoiningPod',
      ['delete Pod'],
    ],
    [
      'initialCluster has changed while it joined: its memory may hold the data of a voter',
      world({ member: joiningMember, pod: ours(aPod({ ready: true })) }),
      'steady',
      [],
    ],
    [
      'initialCluster has changed since it joined, and its id was never recorded: a voter is not restarted',
      world({ member: aMember({ status: { isVoter: true }, spec: { bootstrap: false, initialCluster: 'a=b' } }) }),
      'steady',
      [],
    ],
    [
      'its PVC is deleted before it has joined, and its Pod still runs: the PVC is created again',
      fresh({ pod: ours(aPod()) }),
      'makeVolumeAndPod',
      ['create PersistentVolumeClaim'],
    ],
    [
      'its Pod reads the current initialCluster from its annotation: it is kept',
      fresh({ member: joiningMember, pod: ours(annotatedPod), volume: ours(aVolume()) }),
      'steady',
      [],
    ],
    [
      'it has joined, and initialCluster has changed since: its Pod is kept',
      world({ member: aMember({ status: joined, spec: { bootstrap: false } }) }),
      'steady',
      [],
    ],
    [
      'it joins with the current initialCluster: its Pod is kept',
      fresh({ member: aMember({ spec: { bootstrap: false } }), pod: ours(joiningPod), volume: ours(aVolume()) }),
      'steady',
      [],
    ],
    [
      'a seed that has not bootstrapped yet may still do so',
      fresh({ pod: ours(mayBegin), volume: ours(aVolume()) }),
      'steady',
      [],
    ],
    [
      'its Pod has terminated, and initialCluster has changed: the message is about the Pod that has terminated',
      fresh({ member: joiningMember, pod: ended, volume: ours(aVolume()) }),
      'removeEndedPod',
      ['delete Pod'],
    ],
    [
      'initialCluster has changed, and its PVC was deleted: no PVC is created for a Pod that cannot join',
      fresh({ member: joiningMember, pod: ours(aPod({ ready: true })) }),
      'remakeJoiningPod',
      ['delete Pod'],
    ],
    [
      'its cluster is deleted, and a foreign Pod has its name',
      fresh({ cluster: undefined, pod: foreign }),
      'clusterBeingDeleted',
      [],
    ],
    ['its cluster is deleted and it is not yet', fresh({ cluster: undefined }), 'clusterBeingDeleted', []],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

test.each([
  [true, true],
  [false, false],
])('the task of the agent states whether auth is enabled: %s', (enabled, auth) => {
  const cluster = aCluster({
    spec: { auth: { enabled, rootCredentialsSecretRef: { name: 'root' } }, bootstrap: { restore } },
    status: LATCHED,
  });
  const { steps } = decide(fresh({ member: aMember({ spec: { restore } }), cluster, images: agents }));
  const made = steps.flatMap((step) =>
    step.do === 'create' && step.object.kind === 'Pod' ? [step.object as Pod] : [],
  );
  const task = made[0]?.spec?.initContainers?.[1]?.env?.find(({ name }) => name === TASK_VARIABLE)?.value;
  expect(JSON.parse(task ?? '{}')).toMatchObject({ task: 'restore', auth });
});
