/** What a member begins with: its volume, its Pod, and the list of whom it joins; and what it is not begun with. */
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
  readyPod,
  stepsOf,
  world,
} from '../../../test/support/builders/member.ts';
import { INITIAL_STATE_ANNOTATION } from '../../api/names.ts';
import { TASK_VARIABLE } from '../../domain/agent-task.ts';
import type { Pod } from '../../gen/kube.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const withTls = { tls: { peerAutoTLS: true } };
const agents = { repository: 'quay.io/coreos/etcd', allowed: [], operator: 'example.com/operator:1' };
const restore = { source: { pvc: { claimName: 'c', subPath: 'x' } } };
const mayBegin = { ...aPod(), metadata: { ...aPod().metadata, annotations: { [INITIAL_STATE_ANNOTATION]: 'new' } } };
const command = ['etcd', `--initial-cluster=${aMember().spec.initialCluster}`];
const joiningPod: Pod = { ...aPod(), spec: { containers: [{ name: 'etcd', image: 'i', command }] } };

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['a new member', fresh(), 'makeVolumeAndPod', ['create PersistentVolumeClaim', 'create Pod']],
    ['a crash after the volume', fresh({ volume: ours(aVolume()) }), 'makeVolumeAndPod', ['create Pod']],
    ['a new member in memory', fresh({ member: aMember({ spec: inMemory }) }), 'makeVolumeAndPod', ['create Pod']],
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
    ['the volume is somebody else’s', fresh({ volume: foreign }), 'nameTaken', []],
    ['the Pod is somebody else’s', fresh({ pod: foreign }), 'nameTaken', []],
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
