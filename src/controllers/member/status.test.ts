import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  aPod,
  aVolume,
  condition,
  FORMED,
  LATCHED,
  MEMBER_ID,
  NOW,
  POD_UID,
  READY,
} from '../../../test/support/builders/builders.ts';
import {
  absent,
  answers,
  foreign,
  fresh,
  inMemory,
  joined,
  ours,
  readyPod,
  terminatingVolume,
  world,
} from '../../../test/support/builders/member.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import type { Condition } from '../../api/conditions.ts';
import type { EtcdMemberStatus } from '../../api/etcd-member.ts';
import { findCondition } from '../../domain/conditions.ts';
import type { ContainerStateTerminated } from '../../gen/kube.ts';
import { iso } from '../../lib/time.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';
import { eventsFor, isMinor, needsVersion } from './status.ts';

const EVIL = { image: { repository: 'evil/etcd' } };
const RESTORE = { restore: { source: { pvc: { claimName: 'c', subPath: 'x' } } } };

describe('the status', () => {
  const conditionsOf = (o: Observed) => decide(o).status.conditions?.map((c) => `${c.type}=${c.status}/${c.reason}`);

  test.each<[string, Observed, readonly string[]]>([
    ['ready', world(), ['Ready=True/PodReady', 'VersionDrifted=False/VersionMatched']],
    [
      'another version runs',
      world({ etcd: { ...answers, version: '3.6.1' } }),
      ['Ready=True/PodReady', 'VersionDrifted=True/VersionMismatch'],
    ],
    ['no Pod yet', fresh(), ['Ready=False/PodNotReady']],
    ['a Pod that is not ready', fresh({ pod: ours(aPod()), volume: ours(aVolume()) }), ['Ready=False/PodNotReady']],
    [
      'no id yet',
      fresh({ pod: ours(aPod({ ready: true })), volume: ours(aVolume()), etcd: answers }),
      ['Ready=False/DiscoveringMemberID'],
    ],
    ['lost', world({ pod: absent, volume: absent, etcd: { is: 'notAsked' } }), ['Ready=False/DataLost']],
    [
      'another member responds',
      world({ etcd: { ...answers, memberID: 'f00' } }),
      ['Ready=False/MemberIDMismatch', 'VersionDrifted=False/VersionMatched'],
    ],
    [
      'a member of another cluster responds',
      world({ etcd: { ...answers, clusterID: 'f00' } }),
      ['Ready=False/ClusterIDMismatch'],
    ],
    [
      'a member of another cluster responds that has no quorum, so that its Pod is not ready',
      world({ pod: ours(aPod()), etcd: { ...answers, clusterID: 'f00' } }),
      ['Ready=False/ClusterIDMismatch'],
    ],
    [
      'no operator image for its restore',
      fresh({
        member: aMember({ spec: RESTORE }),
        cluster: aCluster({ spec: { bootstrap: RESTORE }, status: LATCHED }),
      }),
      ['Ready=False/OperatorImageNotConfigured'],
    ],
    [
      'a PVC that is being deleted, while its Pod still keeps it',
      world({ volume: terminatingVolume }),
      ['Ready=True/PVCTerminating', 'VersionDrifted=False/VersionMatched'],
    ],
    [
      'a PVC that is being deleted, and no Pod',
      world({ volume: terminatingVolume, pod: absent, etcd: { is: 'notAsked' } }),
      ['Ready=False/PVCTerminating'],
    ],
    ['a name is taken', fresh({ pod: foreign }), ['Ready=False/NameConflict']],
    [
      'an image that is not allowed, and no Pod yet',
      fresh({ member: aMember({ spec: EVIL }) }),
      ['Ready=False/ImageNotAllowed'],
    ],
    [
      'an image that is not allowed any more, and a Pod that runs',
      world({ member: aMember({ status: joined, spec: EVIL }) }),
      ['Ready=True/PodReady', 'VersionDrifted=False/VersionMatched'],
    ],
    [
      'a restore of a member that runs needs no operator image any more',
      fresh({ member: aMember({ spec: RESTORE }), pod: ours(aPod()), volume: ours(aVolume()) }),
      ['Ready=False/PodNotReady'],
    ],
  ])('%s', (_name, observed, conditions) => {
    expect(conditionsOf(observed)).toEqual(conditions);
  });

  test.each([
    [{ running: {} }, 'pod phase: Pending; init container restore is running'],
    [
      { waiting: { reason: 'CrashLoopBackOff' } },
      'pod phase: Pending; init container restore is waiting: CrashLoopBackOff',
    ],
    [{ terminated: { exitCode: 0 } }, 'pod phase: Pending'],
  ])('of a member that waits for its snapshot names it: %o', (state, message) => {
    const initContainerStatuses = [{ name: 'restore', image: 'i', imageID: '', ready: false, restartCount: 0, state }];
    const pod = ours(aPod({ status: { phase: 'Pending', initContainerStatuses } }));
    const { conditions } = decide(fresh({ pod, volume: ours(aVolume()) })).status;
    expect(conditions?.[0]?.message).toBe(message);
  });

  test('what etcd reports is recorded only with the id of our cluster', () => {
    const o = fresh({ pod: readyPod, volume: ours(aVolume()), cluster: aCluster({ status: FORMED }) });
    expect(decide({ ...o, etcd: answers }).status).toMatchObject({
      memberID: MEMBER_ID,
      version: '3.6.16',
      podUID: POD_UID,
    });
    expect(decide({ ...o, etcd: { ...answers, clusterID: 'f00' } }).status).not.toHaveProperty('memberID');
  });

  test('the Pod that had the in-memory data stays recorded while another one exists, and not while the cluster is paused', () => {
    const lost = aMember({ status: joined, spec: inMemory });
    const another = ours(aPod({ uid: 'another', ready: true }));
    expect(decide(world({ member: lost, pod: another, volume: absent })).status.podUID).toBe(POD_UID);
    const paused = aMember({ status: joined, spec: { dormant: true } });
    expect(decide(world({ member: paused, pod: absent })).status).not.toHaveProperty('podUID');
  });

  test('a member that is being deleted, alone or with its cluster, keeps its status', () => {
    const member = aMember({ status: joined, deleting: true });
    expect(decide(world({ member, pod: absent })).status).toBe(member.status);
    const left = aMember({ status: joined });
    expect(decide(world({ member: left, pod: absent, cluster: undefined })).status).toBe(left.status);
  });

  test('a member whose cluster was deleted with --cascade=orphan does not stay Ready: it is not looked after', () => {
    const made = aMember({ status: { ...joined, conditions: READY } });
    const { ownerReferences: _, ...metadata } = made.metadata;
    const { status } = decide(world({ member: { ...made, metadata }, cluster: undefined }));
    expect(status).toMatchObject({ ...joined, conditions: [{ status: 'Unknown', reason: 'ClusterNotFound' }] });
    expect(decide(world({ member: { ...made, metadata, status }, cluster: undefined })).status).toEqual(status);
  });

  test('the recorded Pod is kept while there is none, unless the cluster is paused', () => {
    expect(decide(world({ pod: absent })).status).toMatchObject({ podUID: POD_UID });
    const paused = aMember({ status: joined, spec: { dormant: true } });
    expect(decide(world({ member: paused })).status).toMatchObject({ podUID: POD_UID });
    expect(decide(world()).status).toMatchObject({ pvcName: aVolume().metadata.name });
  });

  test('it reports why the API server refuses the Pod', () => {
    const { status } = decide(fresh(remembering('the API server refuses: exceeded quota')));
    expect(status.conditions?.[0]?.message).toContain('the API server refuses: exceeded quota');
  });

  test('it names the problem of the Pod', () => {
    const waiting = {
      name: 'etcd',
      ready: false,
      restartCount: 0,
      image: '',
      imageID: '',
      state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } },
    };
    const pod = ours(aPod({ status: { phase: 'Pending', containerStatuses: [waiting] } }));
    const { status } = decide(fresh({ pod, volume: ours(aVolume()) }));
    expect(status.conditions?.[0]?.message).toBe(
      'pod phase: Pending; etcd is waiting: ImagePullBackOff: no such image',
    );
  });

  const restarting = (terminated: ContainerStateTerminated) => ({
    name: 'etcd',
    ready: false,
    restartCount: 3,
    image: '',
    imageID: '',
    state: { waiting: { reason: 'CrashLoopBackOff' } },
    lastState: { terminated: { finishedAt: iso(NOW), ...terminated } },
  });
  const withEnd = (terminated: ContainerStateTerminated): Observed => {
    const resources = { limits: { memory: '64Mi' } };
    const pod = aPod({ status: { phase: 'Running', containerStatuses: [restarting(terminated)] } });
    const spec = { containers: [{ name: 'etcd', resources }] };
    return world({ pod: ours({ ...pod, spec }), etcd: { is: 'unreachable', message: 'connection refused' } });
  };

  test('it names the memory limit of an etcd that was OOM-killed', () => {
    const { status } = decide(withEnd({ exitCode: 137, reason: 'OOMKilled' }));
    expect(findCondition(status.conditions, 'Ready')).toMatchObject({ reason: 'PodNotReady', status: 'False' });
    expect(findCondition(status.conditions, 'Ready')?.message).toContain(
      'etcd was OOM-killed at its memory limit of 64Mi: its data is kept; raise spec.resources.limits.memory',
    );
  });

  test('an OOM kill is reported for a minute of the next run, and not until the next resync', () => {
    const end = { exitCode: 137, reason: 'OOMKilled' };
    const o = withEnd(end);
    if (o.pod.is !== 'ours') throw new Error('there is no Pod');
    const running = { ...restarting(end), state: { running: { startedAt: iso(NOW - 20_000) } } };
    const pod = ours({ ...o.pod.object, status: { phase: 'Running', containerStatuses: [running] } });
    expect(decide({ ...o, pod }).requeueAfterMs).toBe(40_000);
  });

  test('it reports what etcd cannot access, and that nothing is deleted', () => {
    const message = '{"level":"fatal","msg":"failed to open WAL","error":"permission denied"}';
    expect(findCondition(decide(withEnd({ exitCode: 1, message })).status.conditions, 'Ready')).toMatchObject({
      reason: 'StorageError',
      message:
        'etcd cannot access its data directory: failed to open WAL: permission denied. Nothing is deleted: check the volume, its permissions and its node',
    });
  });

  test('it is ready again when etcd can access its data', () => {
    const message = '{"level":"fatal","msg":"failed to open WAL","error":"permission denied"}';
    const o = withEnd({ exitCode: 1, message });
    if (o.pod.is !== 'ours') throw new Error('there is no Pod');
    const containerStatuses = [{ ...restarting({ exitCode: 1, message }), ready: true }];
    const pod = ours({ ...o.pod.object, status: { ...readyPod.object.status, containerStatuses } });
    expect(conditionsOf({ ...o, pod })?.[0]).toBe('Ready=True/PodReady');
  });

  test('an old exit is not reported again', () => {
    const old = { finishedAt: iso(NOW - 3_600_000) };
    const state = { running: { startedAt: iso(NOW - 3_599_000) } };
    const message = '{"level":"fatal","msg":"failed to open WAL","error":"permission denied"}';
    for (const end of [
      { exitCode: 1, message, ...old },
      { exitCode: 137, reason: 'OOMKilled', ...old },
    ]) {
      const o = withEnd(end);
      if (o.pod.is !== 'ours') throw new Error('there is no Pod');
      const pod = ours({
        ...o.pod.object,
        status: { phase: 'Running', containerStatuses: [{ ...restarting(end), restartCount: 4, state }] },
      });
      expect(findCondition(decide({ ...o, pod }).status.conditions, 'Ready')?.message).toBe('pod phase: Running');
    }
  });

  test('an exit of etcd is recorded at once, and removed when it serves', () => {
    const o = withEnd({ exitCode: 1, message: 'x' });
    const { status } = decide(o);
    expect(status.failedStarts).toMatchObject({ count: 1, total: 1 });
    const { failedStarts: _, ...before } = status;
    expect(isMinor(before, status)).toBe(false);
    expect(decide(world({ member: aMember({ status }) })).status).not.toHaveProperty('failedStarts');
  });

  test('another reconcile changes nothing', () => {
    const first = decide(world());
    const again = decide(world({ member: aMember({ status: first.status }) }));
    expect([again.status, again.events]).toEqual([first.status, []]);
  });
});

describe('a change of the status that may wait', () => {
  const ready = (status: 'True' | 'False', reason: string) => ({
    type: 'Ready',
    status,
    reason,
    message: reason,
    lastTransitionTime: '',
  });
  const paused: EtcdMemberStatus = { memberID: '1', podUID: 'u', conditions: [ready('False', 'Paused')] };
  const { podUID: _, ...withoutPod } = paused;

  test.each<[string, EtcdMemberStatus, EtcdMemberStatus, boolean]>([
    ['a message', paused, { ...paused, conditions: [{ ...ready('False', 'Paused'), message: 'other' }] }, true],
    ['the Pod of a new member', {}, { podUID: 'u', conditions: [ready('False', 'PodNotReady')] }, true],
    ['another Pod', paused, { ...paused, podUID: 'v' }, false],
    ['a Pod that was deleted', paused, withoutPod, false],
    ['an id', { ...paused, memberID: '0' }, paused, false],
    ['a vote', paused, { ...paused, isVoter: true }, false],
    ['a version', paused, { ...paused, version: '3.6.1' }, false],
    ['a condition', paused, { ...paused, conditions: [ready('True', 'PodReady')] }, false],
  ])('%s', (_name, before, after, waits) => {
    expect(isMinor(before, after)).toBe(waits);
  });
});

const ready = (reason: string, message?: string) =>
  condition('Ready', reason === 'PodReady' ? 'True' : 'False', reason, message);
const drifted = (reason: string) => condition('VersionDrifted', 'False', reason);

test.each<[string, readonly Condition[] | undefined, readonly Condition[], readonly string[]]>([
  ['a new member that is not ready yet', undefined, [ready('PodNotReady')], []],
  ['a new member whose id is awaited', [], [ready('DiscoveringMemberID')], []],
  ['a new member that has lost its data', undefined, [ready('DataLost')], ['Warning DataLost']],
  ['a member that becomes ready', [ready('PodNotReady')], [ready('PodReady')], ['Normal PodReady']],
  ['a member that is not ready any more', [ready('PodReady')], [ready('PodNotReady')], ['Normal PodNotReady']],
  ['a version that is as specified', undefined, [drifted('VersionMatched')], []],
  [
    'a version that is not',
    [ready('PodReady')],
    [ready('PodReady'), drifted('VersionMismatch')],
    ['Warning VersionMismatch'],
  ],
])('Events for %s', (_what, before, after, expected) => {
  const member = aMember({ status: { ...(before && { conditions: [...before] }) } });
  const events = eventsFor({ member } as Observed, { conditions: [...after] });
  expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual(expected);
});

const found = { memberID: '1', version: '3.6.1', conditions: [ready('PodNotReady')] };

test.each<[string, EtcdMemberStatus, EtcdMemberStatus, boolean]>([
  ['the first condition of a new member', {}, { conditions: [ready('PodNotReady')] }, true],
  ['a new member that has lost its data', {}, { conditions: [ready('DataLost')] }, false],
  ['a member that was ready', { conditions: [ready('PodReady')] }, { conditions: [ready('PodNotReady')] }, false],
  ['another message', { conditions: [ready('PodReady')] }, { conditions: [ready('PodReady', 'x')] }, true],
  ['a Pod that is deleted', { podUID: 'a' }, {}, false],
  ['a Pod that is created', {}, { podUID: 'a', conditions: [ready('PodNotReady')] }, true],
  ['another Pod', { podUID: 'a' }, { podUID: 'b' }, false],
  ['the id of a new member with a volume', {}, { ...found, pvcName: 'data' }, true],
  ['the id of a new member in memory', {}, found, false],
  [
    'the id of a new member whose Pod is ready',
    {},
    { ...found, pvcName: 'data', conditions: [ready('PodReady')] },
    false,
  ],
])('whether a status write may wait: %s', (_what, before, after, expected) => {
  expect(isMinor(before, after)).toBe(expected);
});

test.each<[string, 'Memory' | '', Partial<EtcdMemberStatus>, boolean]>([
  ['the Pod of a member in memory', 'Memory', { podUID: 'u' }, true],
  ['the Pod of a member with a volume', '', { podUID: 'u' }, false],
  ['a condition of a member in memory', 'Memory', { conditions: [] }, false],
])('whether a stale write must be refused: %s', (_what, medium, changes, expected) => {
  const member = aMember({ spec: { storage: { size: '1Gi', medium } } });
  expect(needsVersion({ member } as Observed, changes)).toBe(expected);
});

describe('the image that a member joined with', () => {
  const allowed = { repository: 'quay.io/coreos/etcd', allowed: ['evil/etcd'] };
  const runs = (image: string) => ours({ ...readyPod.object, spec: { containers: [{ name: 'etcd', image }] } });
  const member = aMember({ status: joined, spec: EVIL });

  test.each<[string, Partial<Observed>, string | undefined]>([
    ['is recorded while it is allowed', { member, images: allowed }, 'evil/etcd:v3.6.16'],
    ['is recorded while its Pod runs it', { member, pod: runs('evil/etcd:v3.6.16') }, 'evil/etcd:v3.6.16'],
    ['is not one that a user has edited in since', { member, pod: runs('quay.io/coreos/etcd:v3.6.16') }, undefined],
    ['is not recorded before it has joined', { member, images: allowed, etcd: { is: 'notAsked' } }, undefined],
    ['is not recorded for the default repository', {}, undefined],
  ])('%s', (_, patch, expected) => {
    expect(decide(world(patch)).status.image).toBe(expected);
  });

  test('stays recorded when a user edits another one in', () => {
    const status = { ...joined, image: 'fine/etcd:v3.6.16' };
    expect(decide(world({ member: aMember({ status, spec: EVIL }) })).status.image).toBe('fine/etcd:v3.6.16');
  });
});
