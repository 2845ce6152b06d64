/** Random clusters for property tests: members in every state that the disruption check tells apart, most of them healthy. */
import * as fc from 'fast-check';
import { NO_CERTIFICATES } from '../../../src/access/evaluate/view.ts';
import { DATA_INCONSISTENT, EVIDENCE } from '../../../src/api/etcd-member.ts';
import type { Gathered, MemberView, PodView } from '../../../src/controllers/cluster/observed.ts';
import { entry, type Is, repair, unreachable, world } from './members.ts';

const rarely = <T>(...values: readonly T[]): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, fc.constantFrom(...values));

/** What can be different from a healthy voter. */
const differences = fc.constantFrom<Is>(
  { as: 'learner' },
  { as: 'awaited' },
  { as: 'unlisted' },
  { as: 'unlisted', voted: true },
  { as: 'learner', fresh: true, ageMs: 60_000 },
  { as: 'learner', fresh: true, ageMs: 11 * 60_000 },
  { as: 'learner', fresh: true, ageMs: 11 * 60_000, spec: { deletionPolicy: 'Retain' } },
  { down: true },
  { down: true, evidence: EVIDENCE.dataLost },
  { down: true, evidence: EVIDENCE.dataLost, ageMs: 60_000 },
  { down: true, evidence: DATA_INCONSISTENT },
  { leaving: true },
  { lag: 6_000 },
  { alarm: 'CORRUPT' },
  { answersAs: 1 },
  { leaderless: true },
  { hash: 'a' },
  { hash: 'b' },
  { spec: { storage: { size: '1Gi', medium: 'Memory' } } },
  { spec: { image: { repository: 'evil.example.com/etcd' } } },
  { spec: { deletionPolicy: 'Retain' } },
);
const aMember = fc.array(differences, { maxLength: 2 }).map((list): Is => Object.assign({}, ...list) as Is);

const changeOfPod = fc.constantFrom<(m: MemberView) => MemberView>(
  (m) => m,
  (m) => m,
  (m) => m,
  (m) => ({ ...m, pvc: 'terminating' }),
  ({ object, pod, self }) => ({ object, pod, self }),
  (m) => ({ ...m, pod: { is: 'absent' } }),
  (m) => ({ ...m, pod: { ...m.pod, ready: false } as PodView }),
  (m) => ({ ...m, pod: { ...m.pod, terminating: true } as PodView }),
);

const changeOfCluster = fc.constantFrom<(o: Gathered) => Gathered>(
  (o) => o,
  (o) => o,
  (o) => o,
  (o) => o,
  (o) => ({ ...o, etcd: unreachable }),
  (o) => ({
    ...o,
    certificates: {
      ...o.certificates,
      unreadable: { secrets: [], message: '', password: false, judged: true, retryAt: 0 },
    },
  }),
  (o) => ({
    ...o,
    certificates: {
      ...o.certificates,
      bundles: [{ secret: 'x', part: 'peer', findings: [{ is: 'caBundleLost', secret: 'x' }] }],
    },
  }),
  (o) => ({
    ...o,
    cluster: {
      ...o.cluster,
      metadata: { ...o.cluster.metadata, annotations: { 'etcd-operator.cozystack.io/peer-auto-tls': 'true' } },
    },
  }),
);

/** Every Pod was started with another CA bundle than the recorded one, and is out of the client Service for its restart. */
const rotating = (o: Gathered): Gathered => ({
  ...o,
  cluster: { ...o.cluster, status: { ...o.cluster.status, trust: { peer: 'new' } } },
  certificates: {
    ...NO_CERTIFICATES,
    trusts: [{ part: 'peer', loadedAtStart: true, recorded: 'new', target: 'new', trusted: true, notReissued: [] }],
  },
  members: o.members.map((m) =>
    m.pod.is === 'present'
      ? { ...m, pod: { ...m.pod, tls: { peer: { leaf: 'x', bundle: 'old' } }, drainingSince: o.now - 5_000 } }
      : m,
  ),
});

export const clusters: fc.Arbitrary<Gathered> = fc
  .record({
    members: fc.array(fc.oneof({ weight: 3, arbitrary: fc.constant<Is>({}) }, aMember), {
      minLength: 1,
      maxLength: 5,
    }),
    more: fc.constantFrom(0, 0, 0, 0, 1, -1),
    leader: fc.constantFrom(1, 1, 1, 2),
    pods: fc.array(changeOfPod, { minLength: 5, maxLength: 5 }),
    orphan: rarely<Is>({}, { as: 'learner' }),
    failed: rarely(repair(1, 10), repair(5, 100)),
    change: changeOfCluster,
    rotates: fc.boolean(),
  })
  .map(({ members, more, leader, pods, orphan, failed, change, rotates }) => {
    const o = world(members, {
      replicas: members.length + more,
      leader,
      ...(orphan && { alsoListed: [entry(8, orphan)] }),
      ...(failed && { status: failed }),
    });
    const changed = { ...o, members: o.members.map((m, i) => pods[i]?.(m) ?? m) };
    return change(rotates ? rotating(changed) : changed);
  });
