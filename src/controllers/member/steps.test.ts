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
const forgotten: Observed['peers'] = { is: 'answer', members: [{ id: '1', name: 'other', peerURLs: [] }] };

const stateOf = (o: Observed): string | undefined => {
  const step = decide(o).steps.find((s) => s.do === 'create' && s.object.kind === 'Pod');
  const pod = step?.do === 'create' ? (step.object as Pod) : undefined;
  const stated = pod?.spec?.containers[0]?.command
    ?.find((c) => c.startsWith('--initial-cluster-state='))
    ?.split('=')[1];
  return stated === '$(INITIAL_CLUSTER_STATE)' ? pod?.metadata.annotations?.[INITIAL_STATE_ANNOTATION] : stated;
};

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
          labels: { [CLUSTER_LABEL]: 'db', [QUARANTINE_LABEL]: why },
          annotations: { [QUARANTINED_AT_ANNOTATION]: '2026-01-01T12:00:00.000Z' },
        },
      },
    });
  },
);

test('a volume of a cluster that never formed goes with its member and not before it, because the cluster may form now', () => {
  const member = aMember({ deleting: true, spec: retain });
  const going = world({ member, cluster: aCluster(), volume: ours(versioned), peers: { is: 'none' } });
  expect(stepOf(going)).toMatchObject({
    do: 'patch',
    to: { kind: 'PersistentVolumeClaim', resourceVersion: '7' },
    fields: { metadata: { ownerReferences: [{ kind: 'EtcdMember', uid: member.metadata.uid }] } },
  });
});

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

  const joiner = { ...member, status: {}, spec: { ...member.spec, bootstrap: false } };
  test.each<[string, Partial<Observed>, string]>([
    ['where another serves', { hasCompany: true }, 'true'],
    ['not when it is new and has none', { member: joiner, hasCompany: true }, 'false'],
    ['not where all start together: each would wait for the others', { hasCompany: false }, 'false'],
  ])('%s', (_where, patch, told) => expect(made(patch)).toEqual([told]));
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
