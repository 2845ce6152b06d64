/** Objects with huge fields, as a hostile tenant could write them: no decision about them blocks the event loop for long. */

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  aCluster,
  aMember,
  aPod,
  CLUSTER_ID,
  FORMED,
  LATCHED,
  MEMBER_ID,
  NOW,
  READY,
  SEED_NAME,
  SELF,
} from '../../test/support/builders/builders.ts';
import { aDefrag, aPolicy } from '../../test/support/builders/defrags.ts';
import {
  blockMs,
  HOSTILE_TEXT,
  HOSTILE_WORDS,
  LONGEST_MS,
  MIB,
  type Path,
  textPaths,
  withText,
} from '../../test/support/builders/hostile.ts';
import * as memberWorld from '../../test/support/builders/member.ts';
import { remembering } from '../../test/support/builders/plan.ts';
import { aSchedule, aWork, scheduleWorld } from '../../test/support/builders/schedules.ts';
import * as snapshotWorld from '../../test/support/builders/snapshot.ts';
import type { Schema } from '../../tools/gen/api-reference.ts';
import { NO_CERTIFICATES } from '../access/evaluate/view.ts';
import type { Condition } from '../api/conditions.ts';
import type { Kind } from '../api/crd.ts';
import { kinds } from '../api/crds.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdDefrag } from '../api/etcd-defrag.ts';
import type { EtcdDefragPolicy } from '../api/etcd-defrag-policy.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import type { EtcdSnapshot } from '../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../api/etcd-snapshot-schedule.ts';
import { decide as decideCluster } from '../controllers/cluster/decide.ts';
import { alarmsOf } from '../controllers/cluster/observe-etcd.ts';
import type { Gathered as ClusterObserved } from '../controllers/cluster/observed.ts';
import { decide as decideDefrag } from '../controllers/defrag/decide.ts';
import { decide as decidePolicy } from '../controllers/defrag-policy/decide.ts';
import { decide as decideMember } from '../controllers/member/decide.ts';
import { decide as decideSnapshot } from '../controllers/snapshot/decide.ts';
import { decide as decideSchedule } from '../controllers/snapshot-schedule/decide.ts';
import { alarmsIn } from '../etcd/maintenance.ts';
import { mergePatch } from '../lib/merge-patch.ts';
import type { NamedCall, Plan } from '../runtime/plan.ts';
import { NO_MEMORY } from '../runtime/plan.ts';

type Part = 'spec' | 'status';
type Parts = Readonly<Record<Part, object>>;
interface Reported {
  readonly conditions?: readonly Condition[];
}

/** What the controller computes from a plan before its first request to the API server. */
function carriedOut<Status extends Reported>(before: object | undefined, plan: Plan<Status, NamedCall>): Status {
  createHash('sha256').update(JSON.stringify(plan.steps)).digest();
  JSON.stringify(mergePatch(before, plan.status));
  return plan.status;
}

const cluster = (patch: Partial<ClusterObserved>): Reported => {
  const o: ClusterObserved = {
    now: NOW,
    memory: NO_MEMORY,
    cluster: aCluster(),
    services: { headless: { is: 'absent' }, client: { is: 'absent' } },
    pdb: { is: 'absent' },
    seed: { is: 'absent' },
    members: [],
    etcd: { is: 'notAsked' },
    quarantined: [],
    schedules: [],
    certificates: NO_CERTIFICATES,
    images: { repository: 'quay.io/coreos/etcd', allowed: [] },
    ...patch,
  };
  return carriedOut(o.cluster.status, decideCluster(o));
};
const entry = { id: MEMBER_ID, name: SEED_NAME, peerURLs: [`http://${SEED_NAME}.db.ns.svc:2380`], isLearner: false };
const running = (object: EtcdMember): ClusterObserved['members'] => [
  { object, pod: { is: 'present', ip: '10.0.0.1', ready: true, startedAt: NOW - 400, maxLearners: 8 }, self: SELF },
];
const formed = (patch: Partial<ClusterObserved>): Reported =>
  cluster({
    cluster: aCluster({ status: FORMED }),
    members: running(aMember({ status: { isVoter: true, conditions: READY } })),
    etcd: { is: 'answers', clusterID: CLUSTER_ID, members: [entry], alarms: [] },
    ...patch,
  });

const joined = (object: EtcdMember): EtcdMember => ({ ...object, status: { ...memberWorld.joined, ...object.status } });
const member = (o: Parameters<typeof decideMember>[0]): Reported => carriedOut(o.member.status, decideMember(o));

/** By kind, every decision that reads it. */
const DECISIONS: Readonly<Record<string, (parts: Parts) => readonly (() => Reported)[]>> = {
  EtcdCluster: (parts) => {
    const of = (status: object): EtcdCluster => {
      const made = aCluster();
      return { ...made, spec: { ...made.spec, ...parts.spec }, status: { ...status, ...parts.status } };
    };
    return [
      () => cluster({ cluster: of({}) }),
      () => cluster({ cluster: of(LATCHED) }),
      () => formed({ cluster: of(FORMED) }),
      () => member(memberWorld.fresh({ cluster: of(LATCHED) })),
      () => {
        const o = snapshotWorld.world({ cluster: of(FORMED) });
        return carriedOut(o.object.status, decideSnapshot(o));
      },
    ];
  },
  EtcdMember: (parts) => {
    const made = aMember();
    const object = { ...made, spec: { ...made.spec, ...parts.spec }, status: parts.status } as EtcdMember;
    const leaving = { ...object, metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T11:59:00Z' } };
    return [
      () => formed({ members: running(joined(object)) }),
      () => member(memberWorld.fresh({ member: object })),
      () => member(memberWorld.fresh({ member: object, volume: memberWorld.world().volume })),
      () => member(memberWorld.world({ member: joined(object) })),
      () => member(memberWorld.world({ member: joined(leaving) })),
    ];
  },
  EtcdSnapshot: (parts) => {
    const made = snapshotWorld.aSnapshot();
    const object = { ...made, spec: { ...made.spec, ...parts.spec }, status: parts.status } as EtcdSnapshot;
    const run = (o: Parameters<typeof decideSnapshot>[0]) => () =>
      carriedOut(o.object.status, decideSnapshot({ ...o, object }));
    return [run(snapshotWorld.world()), run(snapshotWorld.withJob(snapshotWorld.ended('Complete', 0)))];
  },
  EtcdSnapshotSchedule: (parts) => {
    const made = aSchedule();
    const object = { ...made, spec: { ...made.spec, ...parts.spec }, status: parts.status } as EtcdSnapshotSchedule;
    return [
      () => carriedOut(object.status, decideSchedule(scheduleWorld('05:30:00', { object }))),
      () => formed({ schedules: [object] }),
    ];
  },
  EtcdDefrag: (parts) => {
    const object = { ...aDefrag(parts.spec), status: parts.status } as EtcdDefrag;
    return [
      () => carriedOut(object.status, decideDefrag({ now: NOW, object, cluster: aCluster() })),
      () => formed({ defrag: object }),
    ];
  },
  EtcdDefragPolicy: (parts) => {
    const object = { ...aPolicy(parts.spec), status: parts.status } as EtcdDefragPolicy;
    const o = { now: NOW, object, runs: [], refusal: undefined, due: { is: 'absent' } } as const;
    return [() => carriedOut(object.status, decidePolicy(o))];
  },
};

const plain = (schema: Kind['spec']): Schema => JSON.parse(JSON.stringify(schema)) as Schema;
const placesOf = (kind: Kind): readonly (readonly [string, Part, Schema, Path])[] =>
  (['spec', 'status'] as const).flatMap((part) => {
    const schema = plain(kind[part]);
    return textPaths(schema).map((path) => [[part, ...path].join('.'), part, schema, path] as const);
  });

/** Copied to Pods unchanged, and there are many such fields: the two texts that are largest as JSON are enough. */
const COPIED = /[.](affinity|topologySpreadConstraints|tolerations)[.]/;
/** No EtcdCluster has a longer name, and a Pod has it a dozen times. */
const NAME = 'spec.clusterName';
/** Copied to each object of a cluster. Kubernetes allows 256 KiB for all annotations of an object, and the schema less. */
const METADATA = /^spec[.]additionalMetadata[.]/;
const MAX_METADATA = 262_144;
const longestIn = (place: string): number => (place === NAME ? 253 : METADATA.test(place) ? MAX_METADATA : MIB);
const textsFor = (place: string): readonly (readonly [string, string])[] =>
  Object.entries(HOSTILE_TEXT)
    .slice(COPIED.test(place) ? -2 : 0)
    .map(([what, text]) => [what, text.slice(0, longestIn(place))]);

/** The API server refuses a longer message, and the status would never be written. */
const MAX_MESSAGE = 32_768;

function expectQuick(what: string, decisions: readonly (() => Reported)[]): void {
  for (const decision of decisions) {
    let reported: Reported = {};
    const ms = blockMs(() => (reported = decision()));
    expect(ms, `the longest block with ${what}`).toBeLessThan(LONGEST_MS);
    for (const { type, message } of reported.conditions ?? [])
      if (!what.startsWith('status.conditions'))
        expect(message.length, `the message of ${type}`).toBeLessThanOrEqual(MAX_MESSAGE);
  }
}

describe.each(kinds.map((kind) => [kind.names.kind, kind] as const))('%s', (name, kind) => {
  const decisions = DECISIONS[name] ?? (() => []);
  test.each(placesOf(kind))('1 MiB in %s', (place, part, schema, path) => {
    for (const [what, text] of textsFor(place)) {
      const parts = { spec: {}, status: {}, [part]: withText(schema, path, text) };
      expectQuick(`${place}: ${what}`, decisions(parts));
    }
  });
});

test('status.membersNamed is the largest integer', () => {
  const status = { ...FORMED, membersNamed: Number.MAX_SAFE_INTEGER };
  const members = [entry, { ...entry, id: 'beef000000000002', name: '', isLearner: true }];
  const etcd = { is: 'answers', clusterID: CLUSTER_ID, members, alarms: [] } as const;
  expectQuick('status.membersNamed', [
    () => formed({ cluster: aCluster({ spec: { replicas: 3 }, status }) }),
    () => formed({ cluster: aCluster({ spec: { replicas: 3 }, status }), etcd }),
  ]);
});

describe('messages from etcd, agents and the API server', () => {
  const reports = { ...HOSTILE_TEXT, 'termination message of etcd': HOSTILE_WORDS };
  test.each(Object.entries(reports))('1 MiB of %s', (what, text) => {
    const ended = { exitCode: 1, reason: 'Error', finishedAt: '2026-01-01T11:59:00Z', message: text };
    const etcd = { name: 'etcd', image: 'i', imageID: 'i', ready: false, restartCount: 9 };
    const waiting = { reason: 'CrashLoopBackOff', message: text };
    const pod = aPod({
      status: { containerStatuses: [{ ...etcd, state: { waiting }, lastState: { terminated: ended } }] },
    });
    const unreachable = { is: 'unreachable', message: text } as const;
    const agent = snapshotWorld.anAgent(1, snapshotWorld.left(1, text));
    const failed = snapshotWorld.withJob(snapshotWorld.ended('Failed', 0, { message: text }), agent);
    const schedule = scheduleWorld('09:30:00', {
      object: aSchedule({ retention: { keepLast: 1 } }),
      jobs: [aWork('hourly-prune-x', { type: 'Failed', reason: text }, text)],
    });
    expectQuick(what, [
      () => member(memberWorld.world({ member: joined(aMember()), pod: memberWorld.ours(pod), etcd: unreachable })),
      () => formed({ etcd: unreachable }),
      () => formed(remembering(text)),
      () => cluster({ cluster: aCluster({ status: LATCHED }), ...remembering(text) }),
      () => carriedOut(failed.object.status, decideSnapshot(failed)),
      () => carriedOut(schedule.object.status, decideSchedule(schedule)),
    ]);
    const errors = [text, ...Array.from({ length: 60_000 }, (_, i) => `memberID:${i} alarm:CORRUPT`)];
    const report = () => ({ status: { alarms: alarmsIn(errors) } });
    expect(blockMs(() => alarmsOf(Array.from({ length: 100 }, report)))).toBeLessThan(LONGEST_MS);
  });
});
