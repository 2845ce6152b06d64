import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  aPod,
  aVolume,
  FORMED,
  POD_UID,
  SEED_NAME,
} from '../../../test/support/builders/builders.ts';
import { absent, fresh, joined, leaving, ours, stepsOf, voter, world } from '../../../test/support/builders/member.ts';
import {
  CLUSTER_LABEL,
  INITIAL_CHECK_ANNOTATION,
  INITIAL_CLUSTER_ANNOTATION,
  INITIAL_STATE_ANNOTATION,
  MEMBER_FINALIZER,
  QUARANTINE_LABEL,
  QUARANTINED_AT_ANNOTATION,
} from '../../api/names.ts';
import type { Pod } from '../../gen/kube.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const retain = { deletionPolicy: 'Retain' } as const;
const retained = aMember({ status: joined, spec: retain });
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
  const [step] = decide(
    leaving({
      member: aMember({ deleting: true, finalizers: ['x/y', 'etcd-operator.cozystack.io/member-cleanup'] }),
      peers: removed,
    }),
  ).steps;
  expect(step).toMatchObject({
    do: 'patch',
    to: { resourceVersion: '200' },
    fields: { metadata: { finalizers: ['x/y'] } },
  });
});

const stepOf = (o: Observed) => [...decide(o).steps, ...(decide(o).upkeep ?? []).flatMap(({ steps }) => steps)][0];
const versioned = { ...aVolume(), metadata: { ...aVolume().metadata, resourceVersion: '7' } };

test.each([
  ['its member', undefined, 'member-removed'],
  ['its cluster', aCluster({ status: FORMED, deleting: true }), 'cluster-deleted'],
])(
  'a PVC that outlives %s has no owner, is labelled why and since when, and is patched with a resourceVersion precondition',
  (_what, cluster, reason) => {
    const member = aMember({ status: joined, deleting: true, spec: retain });
    const deleting = world({ member, ...(cluster && { cluster }), volume: ours(versioned), peers: removed });
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
  expect(stepOf(world({ member: retained, volume: ours(versioned) }))).toMatchObject({ to: { resourceVersion: '7' } });
});

test('a seed that votes may not bootstrap again at its next start, and is in the client Service', () => {
  expect(stepOf(world({ pod: ours(mayBegin) }))).toMatchObject({
    to: { uid: POD_UID },
    fields: { metadata: { labels: voter, annotations: { [INITIAL_STATE_ANNOTATION]: 'existing' } } },
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
