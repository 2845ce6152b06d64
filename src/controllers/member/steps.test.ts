import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  aPod,
  aVolume,
  FORMED,
  NOW,
  POD_UID,
  SEED_NAME,
} from '../../../test/support/builders/builders.ts';
import {
  absent,
  fresh,
  joined,
  leaving,
  ours,
  ownedVolume,
  replacedVolume,
  stepsOf,
  voter,
  world,
} from '../../../test/support/builders/member.ts';
import {
  CLUSTER_LABEL,
  DRAINING_ANNOTATION,
  INITIAL_CHECK_ANNOTATION,
  INITIAL_CLUSTER_ANNOTATION,
  INITIAL_STATE_ANNOTATION,
  MEMBER_FINALIZER,
  MEMBER_UID_ANNOTATION,
  QUARANTINE_LABEL,
  QUARANTINED_AT_ANNOTATION,
  ROLE_LABEL,
} from '../../api/names.ts';
import type { Pod } from '../../gen/kube.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const retain = { deletionPolicy: 'Retain' } as const;
const mayBegin = { ...aPod(), metadata: { ...aPod().metadata, annotations: { [INITIAL_STATE_ANNOTATION]: 'new' } } };
const removed: Observed['peers'] = { is: 'answer', members: [{ id: '1', name: 'other', peerURLs: [] }] };

const stateOf = (o: Observed): string | undefined => {
  const step = decide(o).steps.find((s) => s.do === 'create' && s.object.kind === 'Pod');
  const pod = step?.do === 'create' ? (step.object as Pod) : undefined;
  const stated = pod?.spec?.containers[0]?.command
    ?.find((c) => c.startsWith('--initial-cluster-state='))
    ?.split('=')[1];
  return stated === '$(INITIAL_CLUSTER_STATE)' ? pod?.metadata.annotations?.[INITIAL_STATE_ANNOTATION] : stated;
};

test.each<[string, Observed, string]>([
  ['the seed of a cluster that does not exist bootstraps it', fresh(), 'new'],
  ['a Pod recreated after the cluster formed joins', world({ pod: absent }), 'existing'],
  [
    'with a recorded member id it never bootstraps again',
    fresh({ member: aMember({ status: joined }), volume: ours(aVolume()) }),
    'existing',
  ],
  [
    'with a formed cluster it never bootstraps again, also when the id of its seed was never recorded',
    world({ member: aMember(), pod: absent }),
    'existing',
  ],
  ['any other member joins', fresh({ member: aMember({ spec: { bootstrap: false } }) }), 'existing'],
])('%s', (_name, observed, state) => {
  expect(stateOf(observed)).toBe(state);
});

test('releasing the finalizer keeps those of other controllers, and has a resourceVersion precondition', () => {
  const step = decide(
    leaving({
      member: aMember({ deleting: true, finalizers: ['x/y', 'etcd-operator.cozystack.io/member-cleanup'] }),
      peers: removed,
    }),
  ).steps.at(-1);
  expect(step).toMatchObject({
    do: 'patch',
    to: { resourceVersion: '200' },
    fields: { metadata: { finalizers: ['x/y'] } },
  });
});

const stepOf = (o: Observed) => [...decide(o).steps, ...(decide(o).upkeep ?? []).flatMap(({ steps }) => steps)][0];
const versioned = { ...aVolume(), metadata: { ...aVolume().metadata, resourceVersion: '7' } };

test.each<[string, Partial<Observed>, string]>([
  ['its member', {}, 'member-removed'],
  ['its cluster', { cluster: aCluster({ status: FORMED, deleting: true }) }, 'cluster-deleted'],
  ['its cluster, whose policy it has', { cluster: undefined, policy: undefined }, 'cluster-deleted'],
  [
    'its cluster, whose policy is unknown',
    { cluster: undefined, policy: undefined, member: aMember({ status: joined, deleting: true }) },
    'policy-unknown',
  ],
])(
  'a PVC that outlives %s has no owner, is labelled why and since when, and is patched with a resourceVersion precondition',
  (_what, patch, reason) => {
    const member = aMember({ status: joined, deleting: true, spec: retain });
    const deleting = world({ member, policy: 'Retain', volume: ours(versioned), peers: removed, ...patch });
    expect(stepOf(deleting)).toMatchObject({
      to: { kind: 'PersistentVolumeClaim', resourceVersion: '7' },
      fields: {
        metadata: {
          ownerReferences: null,
          labels: { [CLUSTER_LABEL]: 'db', [QUARANTINE_LABEL]: reason },
          annotations: { [QUARANTINED_AT_ANNOTATION]: '2026-01-01T12:00:00.000Z' },
        },
      },
    });
  },
);

test('a PVC of a cluster that never formed is deleted with its member and not before, because the cluster may form now', () => {
  const member = aMember({ deleting: true, spec: retain });
  const deleting = world({ member, cluster: aCluster(), volume: ours(versioned), peers: { is: 'none' } });
  expect(stepOf(deleting)).toMatchObject({
    do: 'patch',
    to: { kind: 'PersistentVolumeClaim', resourceVersion: '7' },
    fields: { metadata: { ownerReferences: [{ kind: 'EtcdMember', uid: member.metadata.uid }] } },
  });
});

test('the owner reference of a PVC is patched with a resourceVersion precondition', () => {
  const owned = { ...ownedVolume, metadata: { ...ownedVolume.metadata, resourceVersion: '7' } };
  expect(stepOf(world({ volume: ours(owned) }))).toMatchObject({ to: { resourceVersion: '7' } });
});

test.each([
  ['Delete', 'member-replaced'],
  ['Retain', 'member-removed'],
] as const)(
  'with deletionPolicy %s, the PVC of a replaced member is labelled %s, and kept for its whole time from now on: the replacement may have waited for days',
  (policy, label) => {
    const step = stepOf(leaving({ volume: replacedVolume(48 * 60 * 60_000), peers: removed, policy }));
    const labels = { [QUARANTINE_LABEL]: label };
    const annotations = { [QUARANTINED_AT_ANNOTATION]: '2026-01-01T12:00:00.000Z' };
    expect(step).toMatchObject({ fields: { metadata: { labels, annotations } } });
  },
);

test('a PVC is deleted with its uid and a resourceVersion precondition', () => {
  const { uid } = versioned.metadata;
  const what = { kind: 'PersistentVolumeClaim', uid, resourceVersion: '7' };
  expect(stepOf(leaving({ volume: ours(versioned), peers: removed }))).toMatchObject({ do: 'delete', what });
});

test('a seed that votes may not bootstrap again at its next start, and is in the client Service', () => {
  expect(stepOf(world({ pod: ours(mayBegin) }))).toMatchObject({
    to: { uid: POD_UID },
    fields: { metadata: { labels: voter, annotations: { [INITIAL_STATE_ANNOTATION]: 'existing' } } },
  });
});

const podWith = (labels: Readonly<Record<string, string>>, annotations: Readonly<Record<string, string>> = {}) =>
  ours({ ...aPod({ ready: true, labels }), metadata: { ...aPod({ ready: true, labels }).metadata, annotations } });
const learns = aMember({ status: { ...joined, isVoter: false } });
const [ADDED, RESTARTED, DEMOTED] = [
  'the member is a voter: adding it to the client Service',
  'the member is about to be restarted: taking it out of the client Service',
  'the member is not a voter: taking it out of the client Service',
];

/** What upkeep changes, and what a user reads about it. */
test.each<[string, Observed, string | undefined, object | undefined]>([
  ['a voter outside the Service is added', world({ pod: podWith({}) }), ADDED, { labels: voter }],
  [
    'a voter that is about to be restarted is taken out',
    world({ pod: podWith(voter, { [DRAINING_ANNOTATION]: '2026-01-01T12:00:00Z' }) }),
    RESTARTED,
    { labels: { [ROLE_LABEL]: null } },
  ],
  [
    'a learner is taken out',
    world({ member: learns, pod: podWith(voter) }),
    DEMOTED,
    { labels: { [ROLE_LABEL]: null } },
  ],
  [
    'a seed in the Service may not bootstrap again',
    world({ pod: podWith(voter, { [INITIAL_STATE_ANNOTATION]: 'new' }) }),
    ADDED,
    { annotations: { [INITIAL_STATE_ANNOTATION]: 'existing' } },
  ],
  [
    'a seed that may not bootstrap again is left alone',
    world({ pod: podWith(voter, { [INITIAL_STATE_ANNOTATION]: 'existing' }) }),
    undefined,
    undefined,
  ],
  [
    'a voter that serves checks its data at its next start',
    world({ pod: podWith(voter, { [INITIAL_CHECK_ANNOTATION]: 'false' }) }),
    'the member serves: enabling the initial corruption check for its next start',
    { annotations: { [INITIAL_CHECK_ANNOTATION]: 'true' } },
  ],
  [
    'a learner that serves does not check its data yet',
    world({ member: learns, pod: podWith({}, { [INITIAL_CHECK_ANNOTATION]: 'false' }) }),
    undefined,
    undefined,
  ],
])('%s', (_name, observed, message, metadata) => {
  const { contributions, upkeep } = decide(observed);
  const step = upkeep?.[0]?.steps[0];
  expect(contributions?.[0]?.message).toBe(message);
  expect(step && 'fields' in step ? step.fields['metadata'] : undefined).toStrictEqual(metadata);
});

const quiet = { is: 'unreachable', message: 'timeout' } as const;
const startedAt = (ready: boolean) =>
  ours({ ...aPod({ ready, labels: voter, status: { startTime: new Date(NOW - 8_000).toISOString() } }) });

test.each<[string, Observed, string, number | undefined]>([
  ['a new member', fresh(), 'creating the PVC and the Pod', undefined],
  ['a lost Pod', world({ pod: absent }), 'creating the missing Pod', undefined],
  ['a member that serves', world(), 'the PVC and the Pod match the spec', 300_000],
  [
    'a member whose Pod is ready, and which does not respond, is probed',
    world({ pod: startedAt(true), etcd: quiet }),
    'the Pod is ready, but etcd does not respond to the operator: timeout',
    2_000,
  ],
  [
    'a member whose Pod is not ready: the kubelet reports when it is',
    world({ pod: startedAt(false), etcd: quiet }),
    'etcd does not respond to the operator: timeout',
    300_000,
  ],
  [
    'a new member is probed until it responds',
    fresh({ pod: startedAt(false), volume: ours(aVolume()), etcd: quiet }),
    'etcd does not respond to the operator: timeout',
    2_000,
  ],
  [
    'a new member whose Pod has not started',
    fresh({ pod: ours({ ...aPod(), status: { phase: 'Pending' } }), volume: ours(aVolume()), etcd: quiet }),
    'etcd does not respond to the operator: timeout',
    200,
  ],
])('the message and the next reconcile: %s', (_name, observed, message, requeueAfterMs) => {
  const plan = decide(observed);
  expect([plan.message, plan.requeueAfterMs]).toEqual([message, requeueAfterMs]);
});

test('the message about a corrected PVC', () => {
  const messages = (volume: ReturnType<typeof aVolume>) =>
    decide(world({ volume: ours(volume) })).contributions?.map((each) => each.message);
  expect(messages(ownedVolume)).toEqual(['removing the owner reference of the PVC']);
  expect(messages({ ...aVolume(), metadata: { ...aVolume().metadata, labels: {} } })).toEqual([
    'restoring the labels of the PVC',
  ]);
});

test('owners of a PVC that a user has added are kept', () => {
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
  const metadata = { ...ownedVolume.metadata, ownerReferences: [...ownedVolume.metadata.ownerReferences, other] };
  expect(stepOf(world({ volume: ours({ ...ownedVolume, metadata }) }))).toMatchObject({
    fields: { metadata: { ownerReferences: [other], annotations: { [MEMBER_UID_ANNOTATION]: expect.any(String) } } },
  });
});

test('a member that votes cannot join again at its next start: without its data it has lost the log that it acknowledged', () => {
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
  const started = (check: string, ready = true) => {
    const pod = aPod({ ready, labels: voter });
    return ours({ ...pod, metadata: { ...pod.metadata, annotations: { [INITIAL_CHECK_ANNOTATION]: check } } });
  };

  const joiner = { ...member, status: {}, spec: { ...member.spec, bootstrap: false } };
  test.each<[string, Partial<Observed>, string]>([
    ['where another serves', { hasCompany: true }, 'true'],
    ['not when it is new and has none', { member: joiner, hasCompany: true }, 'false'],
    ['not where all start together: each would wait for the others', { hasCompany: false }, 'false'],
  ])('%s', (_where, patch, check) => expect(made(patch)).toEqual([check]));
  test.each<[string, Partial<Observed>]>([
    ['its etcd responds', { pod: started('false', false) }],
    ['its Pod is ready', { pod: started('false'), etcd: { is: 'unreachable', message: 'timeout' } }],
  ])('at its next start, once %s', (_when, patch) => {
    expect(stepOf(world({ member, ...patch }))).toMatchObject({
      fields: { metadata: { annotations: { [INITIAL_CHECK_ANNOTATION]: 'true' } } },
    });
  });
  test.each<[string, Partial<Observed>]>([
    ['it does not serve yet', { pod: started('false', false), etcd: { is: 'unreachable', message: 'timeout' } }],
    ['the annotation is set', { pod: started('true') }],
    ['the check is not enabled', {}],
  ])('and its Pod is not patched when %s', (_when, patch) => {
    expect(stepsOf(world({ member, ...patch }))).toEqual([]);
  });
});

test('the finalizer is added to those of other controllers, with a resourceVersion precondition', () => {
  expect(stepOf(world({ member: aMember({ status: joined, finalizers: ['x/y'] }) }))).toMatchObject({
    to: { resourceVersion: '200' },
    fields: { metadata: { finalizers: ['x/y', MEMBER_FINALIZER] } },
  });
});
