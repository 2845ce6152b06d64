/**
 * An operator of commit 1254aa2 was killed in the middle of what it did, and today's goes on from there. The objects and the members
 * are as the real operator left them: see "Recorded states" in `test/README.md`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Value from 'typebox/value';
import { describe, expect, test } from 'vitest';
import { kinds } from '../../src/api/crds.ts';
import { clientCAName, etcdClusters, etcdMembers, peerCAName } from '../../src/api/names.ts';
import type { Secret } from '../../src/gen/kube.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { pods, secrets } from '../../src/kube/resources.ts';
import { type Json, mergeInto } from './model/kube-json.ts';
import { judged, peace } from './run.ts';
import type { CredentialsOptions } from './world/credentials.ts';
import { groupOf } from './world/facts.ts';
import { NAMESPACE } from './world/ground.ts';
import { textIn } from './world/mounts.ts';
import type { Recorded, RecordedEtcd } from './world/recorded.ts';
import { CLUSTER, type World } from './world/world.ts';

/** One moment in the life of a cluster; its objects are a merge patch on those of the moment before. */
interface Phase {
  readonly name: string;
  readonly at: string;
  readonly etcd?: RecordedEtcd;
  readonly objects: Json;
}

const LIVES: Readonly<Record<string, CredentialsOptions | undefined>> = {
  plain: undefined,
  memory: undefined,
  secure: { client: 'managed', mutual: true, peer: 'managed', auth: true },
  'user-secrets': { client: 'user', mutual: true, peer: 'user', auth: false },
};

function phasesOf(life: string): ReadonlyMap<string, Recorded> {
  const text = readFileSync(join(import.meta.dirname, 'fixtures', '1254aa2', `${life}.json`), 'utf8');
  let objects: Json = {};
  const phases = (JSON.parse(text) as readonly Phase[]).map(({ name, at, etcd, objects: patch }) => {
    objects = mergeInto(objects, patch) as Json;
    return [name, { at: Date.parse(at), etcd, objects: Object.values(objects) as KubeObject[] }] as const;
  });
  return new Map(phases);
}
const recorded = new Map(Object.keys(LIVES).map((life) => [life, phasesOf(life)]));

interface Expected {
  /** By member, how often its Pod is still deleted, the fewest first: those that a pause or a rolling restart has yet to reach. */
  readonly deleted?: readonly number[];
  /** EtcdMembers that were on their way out. */
  readonly leaving?: number;
  /** Replicas that the user asks for afterwards. */
  readonly scaled?: number;
  /** The CAs are yet to be made. */
  readonly anotherCA?: true;
}

const ROWS: readonly (readonly [life: string, phase: string, sentence: string, expected?: Expected])[] = [
  ['plain', 'token-latched', 'is bootstrapped once'],
  ['plain', 'seed-without-pod', 'gets the Pod of its seed'],
  ['plain', 'seed-running', 'gets the id of the cluster that its seed has bootstrapped'],
  ['plain', 'learner-added', 'gets the EtcdMember of the learner that etcd has'],
  ['plain', 'learner-without-pod', 'gets the Pod of its learner'],
  ['plain', 'learner-not-promoted', 'gets its learner promoted'],
  ['plain', 'at-rest', 'stays as it is'],
  ['memory', 'at-rest', 'stays as it is'],
  ['secure', 'at-rest', 'stays as it is'],
  ['user-secrets', 'at-rest', 'stays as it is'],
  ['plain', 'replaced-removed', 'gets a member in place of the removed one', { leaving: 1 }],
  ['plain', 'replaced-added', 'gets the Pod of the replacement'],
  ['plain', 'paused-half', 'is paused, and resumed as the same cluster', { deleted: [1, 1], scaled: 3 }],
  ['plain', 'resuming-half', 'is resumed'],
  ['plain', 'removed-from-etcd', 'shrinks to its only member', { leaving: 2 }],
  ['secure', 'certificates-issued', 'is bootstrapped with these certificates'],
  ['secure', 'auth-not-latched', 'records that auth is enabled'],
  ['secure', 'password-intended', 'gets the new root password'],
  ['secure', 'password-not-proven', 'keeps the new root password'],
  ['secure', 'rotation-requested', 'gets other CAs', { deleted: [2, 2, 2], anotherCA: true }],
  ['secure', 'bundle-widened', 'is restarted with both CAs, then with the new one', { deleted: [2, 2, 2] }],
  ['secure', 'pod-drained', 'is restarted with both CAs, then with the new one', { deleted: [2, 2, 2] }],
  ['secure', 'pod-deleted', 'gets this Pod with both CAs, and goes on', { deleted: [1, 2, 2] }],
  ['secure', 'one-restarted', 'has two more Pods to restart with both CAs', { deleted: [1, 2, 2] }],
  ['secure', 'leader-drained', 'has one more Pod to restart with both CAs', { deleted: [1, 1, 2] }],
  ['secure', 'reissued', 'is restarted with the new CA', { deleted: [1, 1, 1] }],
  ['secure', 'before-narrowing', 'is restarted with the new CA', { deleted: [1, 1, 1] }],
  ['secure', 'narrowed-one-restarted', 'has two more Pods to restart with the new CA', { deleted: [1, 1] }],
  ['secure', 'rotated', 'does not start another rotation'],
  ['user-secrets', 'one-restarted', 'has two more Pods to restart with both CAs', { deleted: [1, 2, 2] }],
  ['user-secrets', 'before-narrowing', 'is restarted with the new CA', { deleted: [1, 1, 1] }],
  ['user-secrets', 'deleting-half', 'is deleted as a whole', { leaving: 3 }],
];

const uidsOf = (objects: readonly KubeObject[], { kind }: Resource): ReadonlyMap<string, string> =>
  new Map(objects.flatMap((o) => (o.kind === kind ? [[o.metadata.name ?? '', o.metadata.uid ?? '']] : [])));
const present = (world: World, resource: Resource): ReadonlyMap<string, string> =>
  uidsOf(world.ground.api.peek(resource), resource);
const replaced = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] =>
  [...before].flatMap(([name, uid]) => (after.get(name) === uid ? [] : [name])).toSorted();

/** Pods out of the client Service, by the annotation of either operator. */
const drained = (objects: readonly KubeObject[]): readonly string[] =>
  objects.flatMap(({ metadata: { name = '', annotations = {} } }) =>
    Object.keys(annotations).some((key) => /\/(aside-since|draining-since)$/.test(key)) ? [name] : [],
  );

/** The CA that signs at the end: the successor of a rotation that is under way. */
function targetCA(objects: readonly KubeObject[], name: string): string {
  const secret = objects.find(({ kind, metadata }) => kind === 'Secret' && metadata.name === name) as
    | Secret
    | undefined;
  return textIn(secret, 'next.crt') || textIn(secret, 'tls.crt');
}

describe('a cluster of which the operator of 1254aa2 was killed', () => {
  const rows = ROWS.map(([life, phase, sentence, expected = {}]) => [life, phase, sentence, expected] as const);
  test.each(rows)('%s: at %s it %s', async (life, phase, _sentence, expected) => {
    const start = recorded.get(life)?.get(phase);
    if (!start) throw new Error(`there is no phase ${phase} in ${life}.json`);
    const options = { seed: 1, nodes: 4, localVolumes: false, tellStory: true, credentials: LIVES[life] };
    const { broken, story } = await judged({ ...options, recorded: start }, false, async (world, judge) => {
      await peace(world, judge);
      if (expected.scaled !== undefined) {
        const spec = { replicas: expected.scaled };
        world.ground.patch(etcdClusters, { namespace: NAMESPACE, name: CLUSTER }, { spec });
        await peace(world, judge);
      }
      const deleted = judge.writes.flatMap((write) => /^delete Pod (.+)/.exec(write)?.[1] ?? []);
      const counts = [...new Set(deleted)].map((name) => deleted.filter((each) => each === name).length);
      expect(counts.toSorted((a, b) => a - b)).toEqual(expected.deleted ?? []);
      for (const name of drained(start.objects)) // no client is sent there once more
        expect(judge.writes.find((write) => write.endsWith(` Pod ${name}`))).toBe(`delete Pod ${name}`);
      expect(drained(world.ground.api.peek(pods))).toEqual([]);

      const members = replaced(uidsOf(start.objects, etcdMembers), present(world, etcdMembers));
      expect(members).toHaveLength(expected.leaving ?? 0);
      const allowed = new Set([...deleted, ...members]);
      const restarted = replaced(uidsOf(start.objects, pods), present(world, pods));
      expect(restarted.filter((name) => !allowed.has(name))).toEqual([]);

      expect(world.kubelet.bootstraps).toHaveLength(1);
      if (start.etcd && world.cluster) expect(world.cluster.status?.clusterID).toBe(start.etcd.clusterId);
      expect(groupOf(world)?.state.users.passwordOf('root') ?? '').toBe(world.credentials?.password ?? '');
      for (const name of [clientCAName(CLUSTER), peerCAName(CLUSTER)]) {
        const isRecorded = textIn(world.ground.find(secrets, name), 'tls.crt') === targetCA(start.objects, name);
        expect(isRecorded).toBe(expected.anotherCA !== true);
      }
    });
    expect(broken, story.join('\n')).toBeUndefined();
  });
});

test('every recorded phase has a row', () => {
  const names = [...recorded].flatMap(([life, phases]) => [...phases.keys()].map((phase) => `${life}: ${phase}`));
  expect(ROWS.map(([life, phase]) => `${life}: ${phase}`).toSorted()).toEqual(names.toSorted());
});

test("today's CRDs keep every field of what 1254aa2 wrote", () => {
  for (const [life, phases] of recorded)
    for (const [phase, { objects }] of phases)
      for (const object of objects) {
        const kind = kinds.find(({ names }) => names.kind === object.kind);
        if (!kind) continue;
        const { spec, status = {} } = object as KubeObject & { readonly spec: unknown; readonly status?: unknown };
        const about = `${life}: ${phase}: ${object.kind} ${object.metadata.name}`;
        expect(Value.Clean(kind.spec, structuredClone(spec)), about).toEqual(spec);
        expect(Value.Clean(kind.status, structuredClone(status)), about).toEqual(status);
        expect([...Value.Errors(kind.spec, spec), ...Value.Errors(kind.status, status)], about).toEqual([]);
      }
});
