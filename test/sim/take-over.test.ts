/**
 * Clusters as the Go operator leaves them on the day of the upgrade, also in the middle of something: see section "Take-over" of
 * docs/take-over.md. With real etcd: test/integration/take-over.test.ts.
 */
import { describe, expect, test } from 'vitest';
import { etcdClusters, etcdMembers } from '../../src/api/names.ts';
import { controllerOf } from '../../src/domain/ownership.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import { type GoState, leftByGo } from './go-states.ts';
import { judged, peace } from './run.ts';
import { NAMESPACE } from './world/ground.ts';
import { CLUSTER, type World } from './world/world.ts';

const NATIVE = ['db-x7k2p', 'db-b4m9q', 'db-t2v8w'];
const LEGACY = ['db-0', 'db-1', 'db-2'];
const adopted = { service: 'db-headless', dataDir: 'default.etcd' };
const native = { name: CLUSTER, members: NATIVE };
const legacy = { name: CLUSTER, members: LEGACY, adopted };
const storage = { size: '256Mi', medium: '' };
const observed = (replicas: number) => ({ observed: { replicas, version: '3.6.16', storage } });

const EMPTY = {
  imagePullSecrets: [],
  topologySpreadConstraints: [],
  additionalMetadata: { labels: {}, annotations: {} },
  affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
  options: {},
  resources: {},
};
const COPIED = { additionalMetadata: {}, affinity: { podAntiAffinity: {} }, options: {}, resources: {} };

interface Expected {
  /** Pods that are deleted. */
  readonly deleted?: readonly string[];
  /** EtcdMembers that go. */
  readonly leaving?: readonly string[];
  /** Replicas that the user asks for afterwards, one after the other; otherwise 4. */
  readonly scaled?: readonly number[];
}

/** Scaled up and down, paused and resumed. */
const ALL = [5, 3, 0, 3];

const ROWS: readonly (readonly [string, GoState, Expected?])[] = [
  ['plain', { cluster: native }, { scaled: ALL }],
  ['plain, with empty lists and maps in its spec', { cluster: native, spec: EMPTY, template: COPIED }],
  ['in memory', { cluster: { ...native, memory: true } }, { scaled: [5, 3] }],
  ['of one member', { cluster: { name: CLUSTER, members: ['db-x7k2p'] } }],
  ['adopted by etcd-migrate', { cluster: legacy }, { scaled: ALL }],
  ['adopted, with --peer-auto-tls', { cluster: { ...legacy, tls: { autoPeers: true } } }],
  [
    'adopted, of which the Go operator has replaced one member',
    { cluster: { ...legacy, members: ['db-0', 'db-1', 'db-q9z3m'] }, native: ['db-q9z3m'] },
  ],
  [
    'paused: one member is dormant',
    {
      cluster: { name: CLUSTER, members: ['db-x7k2p'] },
      progress: ['dormant'],
      spec: { replicas: 0 },
      status: observed(0),
    },
    { scaled: [1, 3] },
  ],
  [
    'on its way to a pause, with a member that is leaving',
    { cluster: native, progress: ['running', 'running', 'leaving'], spec: { replicas: 0 }, status: observed(0) },
    { deleted: NATIVE, leaving: ['db-t2v8w'], scaled: [3] },
  ],
  [
    'that grows: the next EtcdMember is created and etcd does not know it',
    { cluster: native, progress: ['running', 'running', 'created'] },
  ],
  [
    'that grows: etcd has the learner and its EtcdMember has no list',
    { cluster: native, progress: ['running', 'running', 'added'] },
  ],
  ['that grows: the learner runs', { cluster: native, progress: ['running', 'running', 'learner'] }],
  [
    'that shrinks: the EtcdMember is being deleted',
    { cluster: native, progress: ['running', 'running', 'leaving'], spec: { replicas: 2 }, status: observed(2) },
    { leaving: ['db-t2v8w'], scaled: [3] },
  ],
  ['with an evicted Pod', { cluster: native, progress: ['running', 'running', 'ended'] }, { deleted: ['db-t2v8w'] }],
  [
    'whose first member was created without a list',
    {
      cluster: { name: CLUSTER, members: ['db-x7k2p'] },
      progress: ['created'],
      undiscovered: true,
      spec: { replicas: 3 },
      status: observed(3),
    },
    { scaled: [3] },
  ],
  [
    'whose first member runs and was not discovered, after the deadline: BootstrapFailed',
    {
      cluster: { name: CLUSTER, members: ['db-x7k2p'] },
      undiscovered: true,
      spec: { replicas: 3 },
      status: { ...observed(3), progressDeadline: '2026-11-18T04:00:00Z' },
    },
    { scaled: [5] },
  ],
  [
    'with a deadline that has passed: DeadlineExceeded',
    { cluster: native, status: { progressDeadline: '2026-11-18T04:00:00Z' } },
  ],
];

const uidsOf = (world: World, resource: Resource): ReadonlyMap<string, string> =>
  new Map(world.ground.api.peek(resource).map(({ metadata: { name = '', uid = '' } }) => [name, uid]));
const scale = (world: World, replicas: number): void => {
  world.ground.patch(etcdClusters, { namespace: NAMESPACE, name: CLUSTER }, { spec: { replicas } });
};

describe('a cluster of the Go operator', () => {
  test.each(ROWS.map(([title, state, expected = {}]) => [title, state, expected] as const))(
    '%s',
    async (_title, state, expected) => {
      const recorded = leftByGo(state);
      const existing = new Map(
        recorded.objects.flatMap(({ kind, metadata }: KubeObject) =>
          kind === 'EtcdMember' ? [[metadata.name ?? '', metadata.uid ?? '']] : [],
        ),
      );
      const options = { seed: 1, nodes: 5, localVolumes: false, tellStory: true, recorded };
      const { broken, story } = await judged(options, false, async (world, judge) => {
        const atFirst = uidsOf(world, pods);
        await peace(world, judge);
        const deleted = judge.writes.flatMap((write) => /^delete Pod (.+)/.exec(write)?.[1] ?? []);
        expect(deleted.toSorted()).toEqual((expected.deleted ?? []).toSorted());
        const gone = [...(expected.deleted ?? []), ...(expected.leaving ?? [])];
        for (const [name, uid] of atFirst) if (!gone.includes(name)) expect(uidsOf(world, pods).get(name)).toBe(uid);
        for (const [name, uid] of existing)
          if (world.cluster?.spec.replicas !== 0)
            expect(uidsOf(world, etcdMembers).get(name)).toBe(expected.leaving?.includes(name) ? undefined : uid);
        for (const member of world.ground.api.peek(etcdMembers)) expect(controllerOf(member)?.name).toBe(CLUSTER);
        expect(world.kubelet.bootstraps).toHaveLength(1);
        for (const replicas of expected.scaled ?? [4]) {
          scale(world, replicas);
          await peace(world, judge);
        }
        expect(world.kubelet.bootstraps).toHaveLength(1);
      });
      expect(broken, story.slice(-60).join('\n')).toBeUndefined();
    },
  );
});
