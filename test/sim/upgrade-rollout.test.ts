/**
 * An operator of an earlier commit was killed in the middle of a rollout, and today's goes on from there. Its Pods have stamps: a
 * change of how a stamp is computed, or of a default, would restart the members of all clusters when the operator is upgraded.
 * `RECORD=1 ./dev test sim upgrade-rollout` records the phases again, with what the simulation has of today's operator: only
 * when a phase is to be added. A phase that fails here must not be recorded again, or running clusters fail in the same way.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import { etcdClusters, etcdMembers } from '../../src/api/names.ts';
import { hexId } from '../../src/etcd/ids.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { persistentVolumeClaims, podDisruptionBudgets, pods, services } from '../../src/kube/resources.ts';
import { mergePatch } from '../../src/lib/merge-patch.ts';
import { type Json, mergeInto } from './model/kube-json.ts';
import { outdatedPods } from './rollout-facts.ts';
import { deletedPods, edit, progress, spec } from './rollout-life.ts';
import { type Judge, judged, peace } from './run.ts';
import { groupOf } from './world/facts.ts';
import type { Recorded, RecordedEtcd } from './world/recorded.ts';
import type { World } from './world/world.ts';

interface Phase {
  readonly name: string;
  readonly at: string;
  readonly etcd: RecordedEtcd;
  /** A merge patch on the objects of the phase before. */
  readonly objects: Json;
}

const FILE = join(import.meta.dirname, 'fixtures', 'rollout.json');
const KINDS = [etcdClusters, etcdMembers, pods, persistentVolumeClaims, services, podDisruptionBudgets];

/** As many fields of the template as the model of etcd and Kubernetes supports. */
const START: EtcdCluster['spec'] = {
  ...spec(),
  resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '1Gi' } },
  options: { autoCompactionMode: 'revision', quotaBackendBytes: 300_000_000 },
  extraArgs: ['--corrupt-check-time=1h'],
  imagePullSecrets: [{ name: 'registry' }],
  tolerations: [{ key: 'dedicated', operator: 'Exists' }],
  priorityClassName: 'high',
  terminationGracePeriodSeconds: 45,
  podSecurityContext: { fsGroup: 1_000, fsGroupChangePolicy: 'Always' },
  additionalMetadata: { labels: { team: 'a' }, annotations: { note: 'b' } },
};

/** A phase ends before the first write of the operator that starts so, and the number of Pods that are still deleted after it. */
const PHASES: readonly (readonly [name: string, write: string, left: number])[] = [
  ['edited', 'patch EtcdMember', 3],
  ['member-changed', 'delete Pod', 3],
  ['pod-deleted', 'create Pod', 2],
  ['one-restarted', 'patch EtcdMember', 2],
  ['second-changed', 'delete Pod', 2],
  ['two-restarted', 'patch EtcdMember', 1],
];

function etcdIn(world: World): RecordedEtcd {
  const group = groupOf(world);
  if (!group) throw new Error('there is no cluster');
  const members = [...group.members.values()].map(({ id, name, peerURLs, isLearner }) => ({
    id: hexId(id),
    name,
    peerURLs: [...peerURLs],
    isLearner,
  }));
  const { leader } = group;
  return { clusterId: hexId(group.clusterId), ...(leader !== undefined && { leader: hexId(leader) }), members };
}

const objectsIn = ({ ground }: World): Readonly<Record<string, KubeObject>> =>
  Object.fromEntries(
    KINDS.flatMap((resource) => ground.api.peek<KubeObject>(resource)).map((object) => {
      const {
        resourceVersion: _,
        managedFields: _managed,
        ...metadata
      } = object.metadata as KubeObject['metadata'] & {
        readonly managedFields?: unknown;
      };
      return [`${object.kind}/${metadata.name}`, { ...object, metadata }];
    }),
  );

/** Before the given writes of a rollout, in this order, and at rest before it. */
async function record(): Promise<readonly Phase[]> {
  const phases: Phase[] = [];
  let before: Json = {};
  const take = (world: World, name: string): void => {
    const objects = structuredClone(objectsIn(world)) as unknown as Json;
    const patch = (mergePatch(before, objects) ?? {}) as Json;
    phases.push({ name, at: new Date(world.ground.timeline.date).toISOString(), etcd: etcdIn(world), objects: patch });
    before = objects;
  };
  const living = async (world: World, judge: Judge): Promise<void> => {
    world.createCluster(START);
    await peace(world, judge);
    take(world, 'at-rest');
    const next = [...PHASES];
    const check = judge.before.bind(judge);
    judge.before = (write) => {
      const [[name, start] = ['', '-']] = next;
      if (`${write.verb} ${write.resource.kind}`.startsWith(start)) {
        take(world, name);
        next.shift();
      }
      check(write);
    };
    edit(world, { resources: { limits: { memory: '2Gi' } } });
    await peace(world, judge);
    expect(next).toEqual([]);
  };
  await judged({ seed: 1, nodes: 4, localVolumes: false, tellStory: false }, false, living);
  return phases;
}

const onLines = (phases: readonly Phase[]): string =>
  `[\n${phases
    .map(({ objects, ...phase }) => {
      const lines = Object.entries(objects as object).map(
        ([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`,
      );
      return `${JSON.stringify(phase).slice(0, -1)},"objects":{\n${lines.join(',\n')}\n}}`;
    })
    .join(',\n')}\n]\n`;

if (process.env['RECORD'])
  test('the phases are recorded', async () => {
    writeFileSync(FILE, onLines(await record()));
  });

function recordedAt(phase: string): Recorded {
  let objects: Json = {};
  for (const { name, at, etcd, objects: patch } of JSON.parse(readFileSync(FILE, 'utf8')) as readonly Phase[]) {
    objects = mergeInto(objects, patch) as Json;
    if (name === phase) return { at: Date.parse(at), etcd, objects: Object.values(objects) as KubeObject[] };
  }
  throw new Error(`there is no phase ${phase}`);
}

const uidsOf = (objects: readonly KubeObject[]): readonly string[] =>
  objects.flatMap(({ kind, metadata }) => (kind === 'Pod' ? [metadata.uid ?? ''] : [])).toSorted();

describe('the operator is upgraded', () => {
  test.each([['at-rest', '', 0] as const, ...PHASES])(
    '%s: today it deletes only the Pods that are left',
    async (name, _, left) => {
      const recorded = recordedAt(name);
      const options = { seed: 1, nodes: 4, localVolumes: false, tellStory: true, recorded };
      const { broken, story } = await judged(options, false, async (world, judge) => {
        await peace(world, judge);
        expect(deletedPods(judge)).toHaveLength(left);
        expect(new Set(deletedPods(judge)).size).toBe(left);
        expect(outdatedPods(world)).toEqual([]);
        expect(progress(world)?.reason).toBe('Reconciled');
        if (name === 'at-rest') expect(uidsOf(world.ground.api.peek(pods))).toEqual(uidsOf(recorded.objects));
      });
      expect(broken, story.join('\n')).toBeUndefined();
    },
  );
});
