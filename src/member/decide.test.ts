import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  aPod,
  aVolume,
  CLUSTER_ID,
  FORMED,
  LATCHED,
  MEMBER_ID,
  NOW,
  POD_UID,
  SEED_NAME,
} from '../../test/support/builders.ts';
import {
  INITIAL_CHECK_ANNOTATION,
  INITIAL_CLUSTER_ANNOTATION,
  INITIAL_STATE_ANNOTATION,
  MEMBER_FINALIZER,
  QUARANTINE_LABEL,
  QUARANTINED_AT_ANNOTATION,
  ROLE_LABEL,
} from '../api/names.ts';
import type { Pod } from '../gen/kube.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const absent = { is: 'absent' } as const;
const foreign = { is: 'foreign', owner: 'EtcdMember x (uid 1)' } as const;
const ours = <T>(object: T) => ({ is: 'ours', object }) as const;
const voter = { [ROLE_LABEL]: 'voter' };
const readyPod = ours(aPod({ ready: true, labels: voter }));
const answers = { is: 'answers', clusterID: CLUSTER_ID, memberID: MEMBER_ID, version: '3.6.16' } as const;
const joined = { memberID: MEMBER_ID, podUID: POD_UID, podName: SEED_NAME, isVoter: true };
const inMemory = { storage: { size: '64Mi', medium: 'Memory' } } as const;

const withTls = { tls: { peerSecretRef: { name: 'peer' } } };
const retain = { deletionPolicy: 'Retain' } as const;
const retained = aMember({ status: joined, spec: retain });
const { ownerReferences: _o, ...unowned } = aVolume().metadata;
const untied = { ...aVolume(), metadata: unowned };
const restore = { source: { pvc: { claimName: 'c', subPath: 'x' } } };

const mayBegin = { ...aPod(), metadata: { ...aPod().metadata, annotations: { [INITIAL_STATE_ANNOTATION]: 'new' } } };
const command = ['etcd', `--initial-cluster=${aMember().spec.initialCluster}`];
const joiningPod: Pod = { ...aPod(), spec: { containers: [{ name: 'etcd', image: 'i', command }] } };

/** A member that runs and votes. Tests say what is different. */
const world = (patch: Partial<Observed> = {}): Observed => ({
  now: NOW,
  refusal: undefined,
  member: aMember({ status: joined }),
  cluster: aCluster({ status: FORMED }),
  pod: readyPod,
  volume: ours(aVolume()),
  node: { is: 'present', name: 'node-1', outOfService: false },
  volumeOnNode: false,
  nodeLostAfterMs: 600_000,
  etcd: answers,
  peers: { is: 'none' },
  hasCompany: true,
  images: { repository: 'quay.io/coreos/etcd', allowed: [] },
  ...patch,
});
const fresh = (patch: Partial<Observed> = {}): Observed =>
  world({
    member: aMember(),
    cluster: aCluster({ status: LATCHED }),
    pod: absent,
    volume: absent,
    etcd: { is: 'notAsked' },
    ...patch,
  });
const leaving = (patch: Partial<Observed> = {}): Observed =>
  world({ member: aMember({ status: joined, deleting: true }), ...patch });
const forgotten: Observed['peers'] = { is: 'answer', members: [{ id: '1', name: 'other', peerURLs: [] }] };
const asleep = aMember({ status: joined, deleting: true, spec: { dormant: true } });
const ended = ours(aPod({ status: { phase: 'Failed', reason: 'Evicted' } }));

const stepsOf = (o: Observed): readonly string[] =>
  decide(o).steps.map((s) => {
    if (s.do === 'create') return `create ${s.object.kind}`;
    return s.do === 'call' ? s.call.name : `${s.do} ${(s.do === 'delete' ? s.what : s.to).kind}`;
  });
const stateOf = (o: Observed): string | undefined => {
  const step = decide(o).steps.find((s) => s.do === 'create' && s.object.kind === 'Pod');
  const pod = step?.do === 'create' ? (step.object as Pod) : undefined;
  const stated = pod?.spec?.containers[0]?.command
    ?.find((c) => c.startsWith('--initial-cluster-state='))
    ?.split('=')[1];
  return stated === '$(INITIAL_CLUSTER_STATE)' ? pod?.metadata.annotations?.[INITIAL_STATE_ANNOTATION] : stated;
};

describe('the rule that answers', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['a new member', fresh(), 'makeVolumeAndPod', ['create PersistentVolumeClaim', 'create Pod']],
    ['a crash after the volume', fresh({ volume: ours(aVolume()) }), 'makeVolumeAndPod', ['create Pod']],
    ['a new member in memory', fresh({ member: aMember({ spec: inMemory }) }), 'makeVolumeAndPod', ['create Pod']],
    ['all is well', world(), 'steady', []],
    ['the Pod is gone', world({ pod: absent, etcd: { is: 'notAsked' } }), 'makeVolumeAndPod', ['create Pod']],
    ['the Pod has ended', world({ pod: ended }), 'removeEndedPod', ['delete Pod']],
    [
      'a new member with TLS: no Pod, and surely none in plain text',
      fresh({ member: aMember({ spec: withTls }) }),
      'cannotRun',
      [],
    ],
    ['a new member from a snapshot', fresh({ member: aMember({ spec: { restore } }) }), 'cannotRun', []],
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
    ['it goes and nobody can say', leaving({ peers: { is: 'silent', why: 'timeout' } }), 'release', []],
    [
      'it goes and never joined: there is nothing on its volume to keep',
      leaving({
        member: aMember({ deleting: true, spec: retain }),
        cluster: aCluster({ status: LATCHED }),
      }),
      'release',
      ['delete PersistentVolumeClaim', 'patch EtcdMember'],
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

test.each<[string, Observed, string]>([
  ['the seed of a cluster that does not exist begins it', fresh(), 'new'],
  ['a Pod made again after the cluster formed joins', world({ pod: absent }), 'existing'],
  [
    'a recorded member id is enough to never begin again',
    fresh({ member: aMember({ status: joined }), volume: ours(aVolume()) }),
    'existing',
  ],
  [
    'a cluster that exists is enough, also when the id of its seed was never recorded',
    world({ member: aMember(), pod: absent }),
    'existing',
  ],
  ['any other member joins', fresh({ member: aMember({ spec: { bootstrap: false } }) }), 'existing'],
])('%s', (_name, observed, state) => {
  expect(stateOf(observed)).toBe(state);
});

test('letting go keeps the finalizers of others, and is void when the object has changed', () => {
  const [step] = decide(
    leaving({
      member: aMember({ deleting: true, finalizers: ['x/y', 'etcd-operator.cozystack.io/member-cleanup'] }),
      peers: forgotten,
    }),
  ).steps;
  expect(step).toMatchObject({
    do: 'patch',
    to: { resourceVersion: '200' },
    fields: { metadata: { finalizers: ['x/y'] } },
  });
});

const stepOf = (o: Observed) => decide(o).steps[0];
const versioned = { ...aVolume(), metadata: { ...aVolume().metadata, resourceVersion: '7' } };

test.each([
  ['its member', undefined, 'member-removed'],
  ['its cluster', aCluster({ status: FORMED, deleting: true }), 'cluster-deleted'],
])(
  'a volume that outlives %s has no owner, says why and since when, and is left alone when it has changed',
  (_what, cluster, why) => {
    const member = aMember({ status: joined, deleting: true, spec: retain });
    const going = world({ member, ...(cluster && { cluster }), volume: ours(versioned), peers: forgotten });
    expect(stepOf(going)).toMatchObject({
      to: { kind: 'PersistentVolumeClaim', resourceVersion: '7' },
      fields: {
        metadata: {
          ownerReferences: null,
          labels: { [QUARANTINE_LABEL]: why },
          annotations: { [QUARANTINED_AT_ANNOTATION]: '2026-01-01T12:00:00.000Z' },
        },
      },
    });
  },
);

test('a volume is tied to its policy only as it was seen', () => {
  expect(stepOf(world({ member: retained, volume: ours(versioned) }))).toMatchObject({ to: { resourceVersion: '7' } });
});

test('a seed that votes may not begin again at its next start, and clients may reach it', () => {
  expect(stepOf(world({ pod: ours(mayBegin) }))).toMatchObject({
    to: { uid: POD_UID },
    fields: { metadata: { labels: voter, annotations: { [INITIAL_STATE_ANNOTATION]: 'existing' } } },
  });
});

test('a member that votes can join nobody at its next start: without its data it would have forgotten what it agreed to', () => {
  const member = aMember({
    status: joined,
    spec: { bootstrap: false, initialCluster: 'a=http://a:2380,b=http://b:2380' },
  });
  const annotations = { [INITIAL_CLUSTER_ANNOTATION]: member.spec.initialCluster };
  const pod = {
    ...aPod({ ready: true, labels: voter }),
    metadata: { ...aPod({ labels: voter }).metadata, annotations },
  };
  expect(stepOf(world({ member, pod: ours(pod) }))).toMatchObject({
    fields: {
      metadata: { annotations: { [INITIAL_CLUSTER_ANNOTATION]: `${SEED_NAME}=http://${SEED_NAME}.db.ns.svc:2380` } },
    },
  });
});

describe('a member compares its data before it serves', () => {
  const member = aMember({ status: joined, spec: { options: { corruptionCheck: { initial: true } } } });
  const made = (patch: Partial<Observed>) =>
    decide(world({ member, pod: absent, etcd: { is: 'notAsked' }, ...patch })).steps.flatMap((s) =>
      s.do === 'create' ? ((s.object as Pod).metadata.annotations?.[INITIAL_CHECK_ANNOTATION] ?? []) : [],
    );
  const started = (told: string) => {
    const pod = aPod({ ready: true, labels: voter });
    return ours({ ...pod, metadata: { ...pod.metadata, annotations: { [INITIAL_CHECK_ANNOTATION]: told } } });
  };

  test('where another serves', () => expect(made({ hasCompany: true })).toEqual(['true']));
  test('not when it is new and has none', () => {
    const joiner = { ...member, status: {}, spec: { ...member.spec, bootstrap: false } };
    expect(made({ member: joiner, hasCompany: true })).toEqual(['false']);
  });
  test('not where all start together: each would wait for the others', () => {
    expect(made({ hasCompany: false })).toEqual(['false']);
  });
  test('at its next start, once it serves', () => {
    expect(stepOf(world({ member, pod: started('false') }))).toMatchObject({
      fields: { metadata: { annotations: { [INITIAL_CHECK_ANNOTATION]: 'true' } } },
    });
  });
  test.each<[string, Partial<Observed>]>([
    ['it does not serve yet', { pod: started('false'), etcd: { is: 'silent', why: 'timeout' } }],
    ['it has been told', { pod: started('true') }],
    ['nobody ever asked for it', {}],
  ])('and is told nothing while or because %s', (_when, patch) => {
    expect(stepsOf(world({ member, ...patch }))).toEqual([]);
  });
});

test('the finalizer is added to those of others, and only as they were seen', () => {
  expect(stepOf(world({ member: aMember({ status: joined, finalizers: ['x/y'] }) }))).toMatchObject({
    to: { resourceVersion: '200' },
    fields: { metadata: { finalizers: ['x/y', MEMBER_FINALIZER] } },
  });
});

describe('the status', () => {
  const said = (o: Observed) => decide(o).status.conditions?.map((c) => `${c.type}=${c.status}/${c.reason}`);

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
      'another member answers',
      world({ etcd: { ...answers, memberID: 'f00' } }),
      ['Ready=False/MemberIDMismatch', 'VersionDrifted=False/VersionMatched'],
    ],
    ['a name is taken', fresh({ pod: foreign }), ['Ready=False/NameConflict']],
  ])('%s', (_name, observed, conditions) => {
    expect(said(observed)).toEqual(conditions);
  });

  test('what etcd says is recorded only when it speaks for our cluster', () => {
    const o = fresh({ pod: readyPod, volume: ours(aVolume()), cluster: aCluster({ status: FORMED }) });
    expect(decide({ ...o, etcd: answers }).status).toMatchObject({
      memberID: MEMBER_ID,
      version: '3.6.16',
      podUID: POD_UID,
    });
    expect(decide({ ...o, etcd: { ...answers, clusterID: 'f00' } }).status).not.toHaveProperty('memberID');
  });

  test('the Pod that held the data in memory is remembered while another one is there, and not while it is parked', () => {
    const lost = aMember({ status: joined, spec: inMemory });
    const another = ours(aPod({ uid: 'another', ready: true }));
    expect(decide(world({ member: lost, pod: another, volume: absent })).status.podUID).toBe(POD_UID);
    const parked = aMember({ status: joined, spec: { dormant: true } });
    expect(decide(world({ member: parked, pod: absent })).status).not.toHaveProperty('podUID');
  });

  test('it tells why the API server refuses the Pod', () => {
    const { status } = decide(fresh({ refusal: 'the API server refuses: exceeded quota' }));
    expect(status.conditions?.[0]?.message).toContain('the API server refuses: exceeded quota');
  });

  test('it names what is in the way of the Pod', () => {
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

  test('looking again changes nothing', () => {
    const first = decide(world());
    const again = decide(world({ member: aMember({ status: first.status }) }));
    expect([again.status, again.notices]).toEqual([first.status, []]);
  });
});
