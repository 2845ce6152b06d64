import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  CLUSTER_ID,
  condition,
  FORMED,
  LATCHED,
  MEMBER_ID,
  NOW,
  READY,
  SEED_NAME,
  SELF,
  TARGET,
} from '../../../test/support/builders/builders.ts';
import { textsOf } from '../../../test/support/builders/plan.ts';
import { NO_CERTIFICATES } from '../../access/evaluate/view.ts';
import { targetOf } from '../../api/defaults.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { PEER_AUTO_TLS_ANNOTATION } from '../../api/names.ts';
import type { Holding } from '../../domain/ownership.ts';
import type { Service } from '../../gen/kube.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { clientService, headlessService, pdb } from './build.ts';
import { decide } from './decide.ts';
import type { EtcdView, Gathered, MemberView } from './observed.ts';

const ours = <T>(object: T): Holding<T> => ({ is: 'ours', object });
const absent = { is: 'absent' } as const;
const foreign: Holding<never> = { is: 'foreign', owner: 'no controller: this operator did not create it' };
const withUid = (service: Service): Service => ({ ...service, metadata: { ...service.metadata, uid: 'service-uid' } });
const services = {
  headless: ours(withUid(headlessService(aCluster()))),
  client: ours(withUid(clientService(aCluster()))),
};
const aPdb = { ...pdb(aCluster(), 1), metadata: { ...pdb(aCluster(), 1).metadata, uid: 'budget-uid' } };
const podWith = (ready: boolean) =>
  ({ is: 'present', ip: '10.0.0.1', ready, startedAt: NOW - 400, maxLearners: 8 }) as const;

const entry = { id: MEMBER_ID, name: SEED_NAME, peerURLs: [`http://${SEED_NAME}.db.ns.svc:2380`], isLearner: false };
const answers = { is: 'answers', clusterID: CLUSTER_ID, members: [entry], alarms: [] } as const satisfies EtcdView;
const unreachable: EtcdView = { is: 'unreachable', message: 'connection refused' };

const member = (status = {}, options = {}): MemberView => ({
  object: aMember({ status, ...options }),
  pod: podWith(false),
});
const readyMember: MemberView = {
  object: aMember({ status: { isVoter: true, conditions: READY } }),
  pod: podWith(true),
  self: SELF,
};
const unreadableMember = member({ isVoter: true, conditions: [condition('Ready', 'False', EVIDENCE.dataInvalid)] });
const NO_PDB = { podDisruptionBudget: { enabled: false } };
const FORBIDDEN = { image: { repository: 'evil.example/etcd' } };
const lostMember = member({ isVoter: true, conditions: [condition('Ready', 'False', 'DataLost')] });

/** A cluster during the bootstrap: status recorded, both Services and the seed created. Tests state what differs. */
function world(patch: Partial<Gathered> = {}): Gathered {
  const members = patch.members ?? [member()];
  const seed: Gathered['seed'] = members[0] ? ours(members[0].object) : absent;
  return {
    now: NOW,
    memory: NO_MEMORY,
    cluster: aCluster({ status: LATCHED }),
    services,
    pdb: ours(aPdb),
    seed,
    members,
    etcd: { is: 'notAsked' },
    quarantined: [],
    schedules: [],
    certificates: NO_CERTIFICATES,
    images: { repository: 'quay.io/coreos/etcd', allowed: [] },
    ...patch,
  };
}
const formed = (patch: Partial<Gathered> = {}): Gathered =>
  world({ cluster: aCluster({ status: FORMED }), members: [readyMember], etcd: answers, ...patch });
const nothing = { services: { headless: absent, client: absent }, members: [], etcd: { is: 'notAsked' } } as const;

const stepsOf = (o: Gathered): readonly string[] =>
  textsOf(decide(o), (s) => {
    if (s.do === 'create') return `create ${s.object.kind} ${s.object.metadata.name}`;
    if (s.do === 'call') return `${s.call.name} ${s.call.target}`;
    return `${s.do} ${(s.do === 'delete' ? s.what : s.to).kind}`;
  });

/** Adopted from a still earlier operator. */
const annotated = (cluster: EtcdCluster): EtcdCluster => {
  const annotations = { [PEER_AUTO_TLS_ANNOTATION]: 'true' };
  return { ...cluster, metadata: { ...cluster.metadata, annotations } };
};

/** A cluster that the earlier operator created and that was never bootstrapped: its seed has a generated name. */
const { defaults: _d, membersNamed: _n, ...recorded } = LATCHED;
const OTHER_NAME = 'db-x7k2p';
const otherEntry = { ...entry, name: OTHER_NAME, peerURLs: [`http://${OTHER_NAME}.db.ns.svc:2380`] };
function earlier(spec = {}, patch: Partial<Gathered> = {}): Gathered {
  const { replicas: _, ...observed } = targetOf(aCluster().spec, recorded);
  const made = aMember({ spec: { ...observed, ...spec } });
  const { options: _o, spread: _s, ...plain } = made.spec;
  const object = { ...made, metadata: { ...made.metadata, name: OTHER_NAME }, spec: plain };
  const cluster = aCluster({ status: { ...recorded, observed: targetOf(aCluster().spec, recorded) } });
  return world({ cluster, seed: absent, members: [{ object, pod: podWith(false) }], ...patch });
}

/** A seed whose etcd runs and never responded. */
const running = (seconds: number): MemberView => {
  const since = NOW - seconds * 1000;
  const object = aMember();
  return {
    object: { ...object, metadata: { ...object.metadata, creationTimestamp: new Date(since - 500).toISOString() } },
    pod: { ...podWith(false), runningSince: since },
  };
};
const onceRepaired = { repair: { count: 1, last: '2026-01-01T11:58:00Z', generation: 1 } };
const otherMember: MemberView = {
  ...readyMember,
  object: {
    ...aMember({ spec: { bootstrap: false }, status: { isVoter: true, conditions: READY } }),
    metadata: { ...aMember().metadata, name: OTHER_NAME },
  },
};

describe('the rule that decides', () => {
  test.each<[string, Gathered, string, readonly string[]]>([
    [
      'a new cluster: everything is created in one reconcile',
      world({ ...nothing, cluster: aCluster() }),
      'bootstrap',
      ['create Service db', 'create Service db-client', `create EtcdMember ${SEED_NAME}`],
    ],
    [
      'a crash after the status write: the same objects are created',
      world(nothing),
      'bootstrap',
      [`create EtcdMember ${SEED_NAME}`, 'services: create Service db', 'services: create Service db-client'],
    ],
    [
      'a crash after the Services: only the seed is created',
      world({ members: [] }),
      'bootstrap',
      [`create EtcdMember ${SEED_NAME}`],
    ],
    ['the seed has no Pod yet', world({ members: [{ object: aMember(), pod: absent }] }), 'waitForSeed', []],
    ['the seed has an address and does not respond', world({ etcd: unreachable }), 'waitForSeed', []],
    ['the seed responds and is the only member', world({ etcd: answers }), 'discover', ['patch EtcdMember']],
    [
      'the seed responds and is being deleted: its cluster ID is not recorded',
      world({ etcd: answers, members: [member({}, { deleting: true })] }),
      'waitForSeed',
      [],
    ],
    [
      'another etcd responds at the address of the seed',
      world({ etcd: { ...answers, members: [{ ...entry, name: 'other', peerURLs: ['http://other:2380'] }] } }),
      'discover',
      [],
    ],
    [
      'the seed is not the only member',
      world({ etcd: { ...answers, members: [entry, { ...entry, id: '2', name: 'x' }] } }),
      'discover',
      [],
    ],
    [
      'the spec changed before the bootstrap: the seed is recreated',
      world({ members: [member({}, { spec: { version: '3.6.99' } })], etcd: unreachable }),
      'rebuildSeed',
      ['delete EtcdMember'],
    ],
    [
      'the previous seed is still being deleted',
      world({ members: [member({}, { spec: { version: '3.6.99' }, deleting: true })] }),
      'waitForSeed',
      [],
    ],
    ['all members are healthy', formed(), 'steady', []],
    [
      'the cluster ID is recorded and no member exists: the cluster is not bootstrapped again',
      formed({ members: [], etcd: { is: 'notAsked' } }),
      'allMembersLost',
      ['pdb: delete PodDisruptionBudget'],
    ],
    ['the only member has lost its data', formed({ members: [lostMember], etcd: unreachable }), 'allMembersLost', []],
    [
      'all data is lost and the Services are deleted: no member is created',
      formed({ ...nothing, members: [] }),
      'allMembersLost',
      ['services: create Service db', 'services: create Service db-client', 'pdb: delete PodDisruptionBudget'],
    ],
    [
      'a Service was deleted',
      formed({ services: { ...services, client: absent } }),
      'steady',
      ['services: create Service db-client'],
    ],
    [
      'a Service was changed',
      formed({
        services: {
          ...services,
          client: ours({ ...withUid(clientService(aCluster())), spec: { selector: { a: 'b' } } }),
        },
      }),
      'steady',
      ['services: apply Service'],
    ],
    [
      'a Service was replaced by a foreign one: it is not changed',
      formed({ services: { ...services, client: foreign } }),
      'steady',
      [],
    ],
    [
      'a foreign Service has the name before the bootstrap',
      world({ ...nothing, cluster: aCluster(), services: { headless: foreign, client: absent } }),
      'nameTaken',
      [],
    ],
    [
      'a foreign PodDisruptionBudget has the name before the bootstrap',
      world({ ...nothing, cluster: aCluster(), pdb: foreign }),
      'nameTaken',
      [],
    ],
    [
      'a foreign PodDisruptionBudget has the name of one that is not wanted',
      world({ members: [], cluster: aCluster({ spec: NO_PDB, status: LATCHED }), pdb: foreign }),
      'bootstrap',
      [`create EtcdMember ${SEED_NAME}`],
    ],
    ['a foreign EtcdMember has the name of the seed', world({ members: [], seed: foreign }), 'nameTaken', []],
    [
      'another etcd cluster responds at the address',
      formed({ etcd: { ...answers, clusterID: 'f00' } }),
      'clusterIdMismatch',
      [],
    ],
    [
      'a voter is not recorded yet',
      formed({ members: [member()] }),
      'waitForMembers',
      ['recordVoters: patch EtcdMember'],
    ],
    [
      'a recorded voter is a learner',
      formed({ etcd: { ...answers, members: [{ ...entry, isLearner: true }] } }),
      'promote',
      [`promote ${SEED_NAME}`, 'recordVoters: patch EtcdMember', 'pdb: delete PodDisruptionBudget'],
    ],
    ['the member is not ready', formed({ members: [member({ isVoter: true })] }), 'waitForMembers', []],
    ['the spec changed', formed({ cluster: aCluster({ status: FORMED, spec: { version: '3.6.17' } }) }), 'steady', []],
    [
      'a new cluster requests certificates and cert-manager is not installed: nothing is created, least of all without TLS',
      world({
        ...nothing,
        cluster: aCluster({ spec: { tls: { peer: { certManager: { issuerRef: { name: 'i' } } } } } }),
        issuance: { is: 'missing' },
      }),
      'waitForCredentials',
      [],
    ],
    [
      'a new cluster asks for an image that is not allowed',
      world({ ...nothing, cluster: aCluster({ spec: { image: { repository: 'evil.example/etcd' } } }) }),
      'blocked',
      [],
    ],
    ['the PodDisruptionBudget is missing', formed({ pdb: absent }), 'steady', ['pdb: create PodDisruptionBudget db']],
    [
      'the PodDisruptionBudget is that of an earlier operator',
      formed({ pdb: ours({ ...aPdb, spec: { ...aPdb.spec, maxUnavailable: 1 } }) }),
      'steady',
      ['pdb: patch PodDisruptionBudget'],
    ],
    [
      'the PodDisruptionBudget has a field that the operator does not set, by a policy or a later Kubernetes',
      formed({ pdb: ours({ ...aPdb, spec: Object.assign({ later: 'x' }, aPdb.spec) }) }),
      'steady',
      [],
    ],
    [
      'podDisruptionBudget.enabled is false',
      formed({ cluster: aCluster({ status: FORMED, spec: { podDisruptionBudget: { enabled: false } } }) }),
      'steady',
      ['pdb: delete PodDisruptionBudget'],
    ],
    ['the PodDisruptionBudget is foreign: it is not changed', formed({ pdb: foreign }), 'steady', []],
    ['the earlier operator created the seed: no second one is created', earlier(), 'waitForSeed', []],
    [
      'the seed of the earlier operator responds',
      earlier({}, { etcd: { ...answers, members: [otherEntry] } }),
      'discover',
      ['patch EtcdMember'],
    ],
    [
      'the earlier operator was removed before it created a seed',
      earlier({}, { members: [] }),
      'bootstrap',
      [`create EtcdMember ${SEED_NAME}`],
    ],
    [
      'a member of the earlier operator that is not the seed does not count as the seed',
      earlier({ bootstrap: false }),
      'bootstrap',
      [`create EtcdMember ${SEED_NAME}`],
    ],
    [
      'labels changed: they are patched while the previous ones are still recorded',
      formed({ cluster: aCluster({ status: FORMED, spec: { additionalMetadata: { labels: { team: 'a' } } } }) }),
      'steady',
      [
        'relabel: patch Service',
        'relabel: patch Service',
        'relabel: patch PodDisruptionBudget',
        'relabelMembers: patch Pod',
        'relabelMembers: patch EtcdMember',
      ],
    ],
    [
      'the spec changed before the seed was created: it is created from the new spec',
      world({ members: [], cluster: aCluster({ status: LATCHED, spec: { version: '3.6.17' } }) }),
      'bootstrap',
      [`create EtcdMember ${SEED_NAME}`],
    ],
    [
      'replicas is 0: the cluster is not bootstrapped',
      world({ ...nothing, cluster: aCluster({ spec: { replicas: 0 } }) }),
      'pausedBeforeBootstrap',
      [],
    ],
    [
      'replicas becomes 0 before the bootstrap: the seed is deleted',
      world({
        cluster: aCluster({ spec: { replicas: 0 }, status: { ...LATCHED, observed: { ...TARGET, replicas: 0 } } }),
      }),
      'pausedBeforeBootstrap',
      ['delete EtcdMember'],
    ],
    [
      'the seed starts and its Service is missing: it needs its DNS name',
      world({ services: { ...services, headless: absent } }),
      'waitForSeed',
      ['services: create Service db'],
    ],
    [
      'the spec changed and the seed responds: the cluster ID is recorded',
      world({ members: [member({}, { spec: { version: '3.6.99' } })], etcd: answers }),
      'discover',
      ['patch EtcdMember'],
    ],
    [
      'the seed has run for a minute without a response',
      world({ members: [running(61)], etcd: unreachable }),
      'rebuildSeed',
      ['delete EtcdMember'],
    ],
    [
      'the seed has run for less than a minute without a response',
      world({ members: [running(59)], etcd: unreachable }),
      'waitForSeed',
      [],
    ],
    [
      'the seed was recreated once: its timeout is doubled',
      world({
        members: [running(61)],
        etcd: unreachable,
        cluster: aCluster({ status: { ...LATCHED, ...onceRepaired } }),
      }),
      'waitForSeed',
      [],
    ],
    [
      'the first member was replaced long ago: the cluster is not bootstrapped again',
      formed({ seed: absent, members: [otherMember], etcd: { ...answers, members: [otherEntry] } }),
      'steady',
      [],
    ],
    [
      'a running cluster gets an unsupported setting: it continues unchanged',
      formed({
        cluster: annotated(aCluster({ status: FORMED, spec: { version: '3.6.17' } })),
      }),
      'steady',
      [],
    ],
    [
      'deletionPolicy changed: members get it before they are deleted',
      formed({ cluster: aCluster({ status: FORMED, spec: { deletionPolicy: 'Retain' } }) }),
      'steady',
      ['propagateDeletionPolicy: patch EtcdMember'],
    ],
    ['the cluster is being deleted', world({ ...nothing, cluster: aCluster({ deleting: true }) }), 'beingDeleted', []],
    // where two rules apply
    [
      'a cluster with an image that is not allowed is being deleted: the deletion is reported',
      world({ ...nothing, cluster: aCluster({ spec: FORBIDDEN, deleting: true }) }),
      'beingDeleted',
      [],
    ],
    [
      'an image is not allowed, and a foreign Service has the name: the spec comes first, because it may change the names',
      world({ ...nothing, cluster: aCluster({ spec: FORBIDDEN }), services: { headless: foreign, client: absent } }),
      'blocked',
      [],
    ],
    [
      'replicas is 0 and cert-manager is not installed: nothing waits for certificates that no member needs',
      world({
        ...nothing,
        cluster: aCluster({ spec: { replicas: 0, tls: { peer: { certManager: { issuerRef: { name: 'i' } } } } } }),
        issuance: { is: 'missing' },
      }),
      'pausedBeforeBootstrap',
      [],
    ],
    [
      'no member can read its data, and another etcd cluster responds at an address: the loss is reported',
      formed({ members: [unreadableMember], etcd: { ...answers, clusterID: 'f00' } }),
      'noReadableData',
      [],
    ],
    [
      'a cluster is paused while another etcd cluster responds at its address: nothing is stopped',
      formed({
        cluster: aCluster({ spec: { replicas: 0 }, status: { ...FORMED, observed: { ...TARGET, replicas: 0 } } }),
        etcd: { ...answers, clusterID: 'f00' },
      }),
      'clusterIdMismatch',
      [],
    ],
  ])('%s', (_name, observed, rule, steps) => {
    expect([decide(observed).rule, stepsOf(observed)]).toEqual([rule, steps]);
  });
});

test('the token, the target and the first member number are recorded before anything is created, and names are derived from them', () => {
  const plan = decide(world({ ...nothing, cluster: aCluster() }));
  expect(plan.latch).toEqual({ ...LATCHED, progressDeadline: '2026-01-01T12:10:00Z' });
  const again = decide(
    world({ ...nothing, cluster: aCluster({ status: { ...LATCHED, progressDeadline: '2026-01-01T12:10:00Z' } }) }),
  );
  const created = ({ steps, upkeep = [] }: typeof plan) =>
    [...steps, ...upkeep.flatMap((task) => task.steps)].flatMap((s) => (s.do === 'create' ? [s.object] : []));
  expect(created(again)).toEqual(expect.arrayContaining([...created(plan)]));
  expect(plan.latch).toMatchObject({ ...again.latch });
});

test('a recorded token is kept', () => {
  const plan = decide(world({ ...nothing, cluster: aCluster({ status: { ...LATCHED, clusterToken: 'other' } }) }));
  expect(plan.latch?.clusterToken).toBe('other');
  expect(plan.steps.at(-1)).toMatchObject({ object: { spec: { clusterToken: 'other' } } });
});

test('a seed that responds is recorded as a voter, and one that is recreated is counted', () => {
  expect(decide(world({ etcd: answers })).steps[0]).toMatchObject({ fields: { status: { isVoter: true } } });
  expect(decide(world({ members: [running(61)], etcd: unreachable })).latch?.repair?.count).toBe(1);
});

test('a cluster that the earlier operator created gets no defaults of this operator', () => {
  const plan = decide(earlier({}, { members: [] }));
  expect(plan.latch).not.toHaveProperty('defaults');
  const [seed] = plan.steps.flatMap((s) => (s.do === 'create' ? [s.object] : []));
  expect(seed).toMatchObject({ spec: { bootstrap: true, clusterToken: LATCHED.clusterToken } });
  expect(seed).not.toHaveProperty('spec.options');
});

test('the cluster ID is recorded as soon as the seed responds', () => {
  expect(decide(world({ etcd: answers })).latch).toEqual({ clusterID: CLUSTER_ID });
});

const startedFor = (ms: number, more: object = {}): MemberView => ({
  object: aMember(),
  pod: { ...podWith(false), startedAt: NOW - ms, ...more },
});
const reporting = (reason: string, message: string): MemberView => {
  const made = aMember({ status: { conditions: [{ ...condition('Ready', 'False', reason), message }] } });
  const metadata = { ...made.metadata, creationTimestamp: new Date(NOW).toISOString() };
  return { ...startedFor(0), object: { ...made, metadata } };
};
const WAITING = `waiting for etcd in Pod ${SEED_NAME} to answer`;

test.each<[string, Gathered, string]>([
  ['etcd needs seconds to start', world({ members: [startedFor(5_000)], etcd: unreachable }), WAITING],
  [
    'etcd should have started',
    world({ members: [startedFor(5_001)], etcd: unreachable }),
    `${WAITING}: connection refused`,
  ],
  ['etcd should have started, and was not asked', world({ members: [startedFor(5_001)] }), WAITING],
  [
    'the Pod has no address',
    world({ members: [startedFor(0, { ip: undefined })] }),
    `waiting for the Pod of member ${SEED_NAME} to start`,
  ],
  ['the member has nothing to add', world({ members: [reporting('PodNotReady', 'pod phase: Running')] }), WAITING],
  [
    'the member names the problem of its Pod',
    world({ members: [reporting('PodNotReady', 'pod phase: Pending; no image')] }),
    `${WAITING} (pod phase: Pending; no image)`,
  ],
  [
    'a foreign object has a name of the member',
    world({ members: [reporting('NameConflict', 'Pod x belongs to y')] }),
    `${WAITING} (Pod x belongs to y)`,
  ],
  [
    'there is failure evidence',
    world({ members: [reporting(EVIDENCE.nodeLost, 'its node is deleted')] }),
    `${WAITING} (its node is deleted)`,
  ],
  [
    'another etcd responds, and so does one that has not started',
    world({
      etcd: {
        ...answers,
        members: [
          { ...entry, name: 'x' },
          { ...entry, name: '', peerURLs: ['http://y'] },
        ],
      },
    }),
    'etcd at the address of the seed lists other members: x, http://y',
  ],
  [
    'another etcd responds that lists no member',
    world({ etcd: { ...answers, members: [] } }),
    'etcd at the address of the seed lists other members: ',
  ],
])('the message during the bootstrap when %s', (_what, observed, message) => {
  expect(decide(observed).message).toBe(message);
});

test('a seed whose Pod is ready is not recreated: only the operator does not reach it', () => {
  const seed = running(3_600);
  const reached = { ...seed, pod: { ...podWith(true), runningSince: NOW - 3_600_000 } };
  expect(decide(world({ members: [reached], etcd: unreachable })).rule).toBe('waitForSeed');
});

test('after an edit, the timeout of a seed starts over', () => {
  const status = { ...LATCHED, repair: { ...onceRepaired.repair, generation: 0 } };
  const o = world({ members: [running(61)], etcd: unreachable, cluster: aCluster({ status }) });
  expect([decide(o).rule, decide(o).latch?.repair?.count]).toEqual(['rebuildSeed', 1]);
});

test('the recorded target and deadline are kept when the seed is created again', () => {
  const progressDeadline = '2026-01-01T12:03:00Z';
  const o = world({ ...nothing, cluster: aCluster({ status: { ...LATCHED, progressDeadline } }) });
  expect(decide(o).latch).not.toHaveProperty('progressDeadline');
  expect(decide(o).latch).not.toHaveProperty('observed');
});

test('a seed is polled often at first and less often later', () => {
  const after = (ms: number) =>
    decide(
      world({ members: [{ object: aMember(), pod: { ...podWith(false), startedAt: NOW - ms } }], etcd: unreachable }),
    ).requeueAfterMs;
  expect([after(0), after(400), after(8_000), after(3_600_000)]).toEqual([100, 100, 2_000, 10_000]);
});

test('labels of an edit are recorded only when all objects have them: until then, the previous ones can be removed', () => {
  const additionalMetadata = { labels: { team: 'a' } };
  const cluster = aCluster({ spec: { additionalMetadata, replicas: 1 }, status: { ...FORMED, observed: TARGET } });
  const labelled = <T extends { readonly metadata: object }>(object: T) => ({
    ...object,
    metadata: { ...object.metadata, uid: 'some-uid' },
  });
  const relabelled = {
    services: { headless: ours(labelled(headlessService(cluster))), client: ours(labelled(clientService(cluster))) },
    pdb: ours(labelled(pdb(cluster, 1))),
  };
  const seed = { ...readyMember.object, spec: { ...readyMember.object.spec, additionalMetadata } };
  const edited = (patch: Partial<Gathered>) => decide(formed({ cluster, ...patch })).latch?.observed;
  expect(edited({ members: [{ ...readyMember, object: seed }] })).toBeUndefined();
  expect(edited({ ...relabelled })).toMatchObject({ additionalMetadata });
});

test('a member that is being deleted keeps its deletionPolicy', () => {
  const leaving = { ...readyMember, object: aMember({ status: { isVoter: true, conditions: READY }, deleting: true }) };
  const cluster = aCluster({ status: FORMED, spec: { deletionPolicy: 'Retain' } });
  expect(stepsOf(formed({ cluster, members: [leaving] })).filter((s) => s.startsWith('propagate'))).toEqual([]);
});

test('an edit is recorded together with its progress deadline', () => {
  const { replicas, ...template } = TARGET;
  const o = formed({
    cluster: aCluster({ spec: { replicas: replicas + 2 }, status: { ...FORMED, observed: TARGET } }),
  });
  const { rule, latch } = decide(o);
  expect(rule).toBe('addLearner');
  expect(latch?.observed).toEqual({ ...template, replicas: replicas + 2 });
  expect(Date.parse(latch?.progressDeadline ?? '')).toBeGreaterThan(NOW);
});
