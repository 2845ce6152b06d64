/** Gathered clusters with members, for tables about growth, removal and repair: each row states only what differs from a healthy cluster. */

import { NO_CERTIFICATES } from '../../../src/access/evaluate/view.ts';
import { targetOf } from '../../../src/api/defaults.ts';
import type { EtcdClusterSpec } from '../../../src/api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../src/api/etcd-cluster-status.ts';
import { type EtcdMember, EVIDENCE } from '../../../src/api/etcd-member.ts';
import { memberName, peerURL } from '../../../src/api/names.ts';
import { clientService, headlessService, joinList, pdb } from '../../../src/controllers/cluster/build.ts';
import { stateOf } from '../../../src/controllers/cluster/credentials/decide.ts';
import { credentialsFacts } from '../../../src/controllers/cluster/credentials-facts.ts';
import { decide } from '../../../src/controllers/cluster/decide.ts';
import type {
  EtcdMemberEntry,
  Gathered,
  MemberView,
  Observed,
  PodView,
} from '../../../src/controllers/cluster/observed.ts';
import { withApplicableSpec } from '../../../src/controllers/cluster/spec-drift.ts';
import { quorumOf } from '../../../src/domain/quorum.ts';
import { present } from '../../../src/lib/present.ts';
import { NO_MEMORY } from '../../../src/runtime/plan.ts';
import { aCluster, aMember, CLUSTER_ID, CLUSTER_UID, condition, FORMED, NOW, READY } from './builders.ts';
import { textsOf } from './plan.ts';

export const name = (n: number): string => memberName('db', CLUSTER_UID, n);
export const id = (n: number): string => `beef00000000000${n}`;
export const url = (n: number): string => peerURL(name(n), 'db', 'ns');
export const at = (msAgo: number): string => new Date(NOW - msAgo).toISOString();
export const DAY = 24 * 60 * 60_000;

export interface Is {
  /** Learner: etcd lists it without a vote. Awaited: etcd lists it, and it has no EtcdMember. Unlisted: an EtcdMember that etcd does not list. */
  readonly as?: 'voter' | 'learner' | 'awaited' | 'unlisted';
  /** Its etcd does not respond. */
  readonly down?: boolean;
  /** `status.isVoter` is true although etcd does not list it as a voter. */
  readonly voted?: boolean;
  /** Its etcd has never started. */
  readonly fresh?: boolean;
  /** Its etcd has published its name, but the memberID is not recorded yet. */
  readonly started?: boolean;
  readonly evidence?: string;
  /** Since when its Ready condition is True. */
  readonly readyForMs?: number;
  readonly leaving?: boolean;
  readonly ageMs?: number;
  readonly lag?: number;
  readonly alarm?: string;
  /** The kubelet has restarted its etcd. */
  readonly restarted?: boolean;
  /** Another member responds at its address: the member with this number. */
  readonly answersAs?: number;
  /** Its etcd has no leader. */
  readonly leaderless?: boolean;
  readonly hash?: string;
  /** The version that its etcd reports. */
  readonly runs?: string;
  readonly storageVersion?: string;
  readonly downgradeTo?: string;
  readonly databaseBytes?: number;
  readonly maxLearners?: number;
  readonly spec?: Partial<EtcdMember['spec']>;
  readonly pod?: PodView;
  readonly pvc?: MemberView['pvc'];
}

export const entry = (n: number, is: Is): EtcdMemberEntry => ({
  id: id(n),
  name: (is.fresh && !is.started) || is.as === 'awaited' ? '' : name(n),
  peerURLs: [url(n)],
  isLearner: is.as === 'learner' || is.as === 'awaited',
});

const readySince = ({ readyForMs }: Is) =>
  readyForMs === undefined ? READY : READY.map((c) => ({ ...c, lastTransitionTime: at(readyForMs) }));

export function view(n: number, is: Is, leader: number, list: string): MemberView {
  const votes = (is.as ?? 'voter') === 'voter' || is.voted === true;
  const made = aMember({
    spec: { bootstrap: n === 1, initialCluster: list, ...is.spec },
    status: {
      ...(is.fresh ? {} : { memberID: id(n) }),
      isVoter: votes,
      conditions: is.evidence ? [condition('Ready', 'False', is.evidence)] : is.down || !votes ? [] : readySince(is),
    },
    deleting: is.leaving ?? false,
  });
  const up = !is.down && !is.fresh;
  return {
    object: {
      ...made,
      metadata: { ...made.metadata, name: name(n), uid: `uid-${n}`, creationTimestamp: at(is.ageMs ?? DAY - n) },
    },
    pod: is.pod ?? {
      is: 'present',
      ip: `10.0.0.${n}`,
      ready: up && votes,
      startedAt: NOW - 1_000,
      runningSince: NOW - 1_000,
      ...(is.restarted && { restarted: true }),
      maxLearners: is.maxLearners ?? 8,
    },
    pvc: is.pvc ?? 'present',
    ...(up && {
      self: {
        id: id(is.answersAs ?? n),
        clusterID: CLUSTER_ID,
        leader: is.leaderless ? undefined : id(leader),
        isLearner: is.as === 'learner',
        version: is.runs ?? '3.6.16',
        alarms: is.alarm ? [is.alarm] : [],
        databaseBytes: is.databaseBytes ?? 0,
        databaseBytesInUse: 0,
        ...present({ storageVersion: is.storageVersion, downgradeTo: is.downgradeTo }),
        term: 3,
        applied: 10_000 - (is.lag ?? 0),
        ...(is.hash !== undefined && { hash: is.hash }),
      },
    }),
  };
}

interface More {
  readonly replicas?: number;
  readonly leader?: number;
  readonly spec?: Partial<EtcdClusterSpec>;
  readonly status?: EtcdClusterStatus;
  readonly etcd?: Gathered['etcd'];
  readonly alarms?: readonly { readonly id: string; readonly alarm: string }[];
  /** Members that etcd lists besides these. */
  readonly alsoListed?: readonly EtcdMemberEntry[];
}

/** A cluster with these members, healthy except for what they state. */
export function world(members: readonly Is[], more: More = {}): Gathered {
  const replicas = more.replicas ?? members.length;
  const spec = { replicas, ...more.spec };
  const listed = members.flatMap((is, i) => (is.as === 'unlisted' ? [] : [entry(i + 1, is)]));
  const entries = [...listed, ...(more.alsoListed ?? [])];
  const cluster = aCluster({
    spec,
    status: { ...FORMED, observed: targetOf(aCluster({ spec }).spec, FORMED), membersNamed: 9, ...more.status },
  });
  const views = members.flatMap((is, i) =>
    is.as === 'awaited' ? [] : [view(i + 1, is, more.leader ?? 1, joinList(entries))],
  );
  const minAvailable = quorumOf(
    Math.max(views.filter((v) => v.object.status?.isVoter && !v.object.metadata.deletionTimestamp).length, replicas),
  );
  const withUid = <T extends { readonly metadata: object }>(object: T): T => ({
    ...object,
    metadata: { ...object.metadata, uid: 'some-uid' },
  });
  return {
    now: NOW,
    memory: NO_MEMORY,
    cluster,
    services: {
      headless: { is: 'ours', object: withUid(headlessService(cluster)) },
      client: { is: 'ours', object: withUid(clientService(cluster)) },
    },
    pdb: { is: 'ours', object: withUid(pdb(cluster, minAvailable)) },
    seed: { is: 'absent' },
    members: views,
    etcd: more.etcd ?? { is: 'answers', clusterID: CLUSTER_ID, members: entries, alarms: more.alarms ?? [] },
    quarantined: [],
    schedules: [],
    certificates: NO_CERTIFICATES,
    images: { repository: 'quay.io/coreos/etcd', allowed: [] },
  };
}

/** As rules get it. */
export const withCredentials = (gathered: Gathered): Observed => {
  const o = withApplicableSpec(gathered);
  return { ...o, credentials: stateOf(credentialsFacts(o)) };
};

export const stepsOf = (o: Gathered): readonly string[] =>
  textsOf(decide(o), (s) => {
    if (s.do === 'create') return `create ${s.object.metadata.name}`;
    if (s.do === 'call') return `${s.call.name} ${s.call.target}`;
    if (s.do === 'delete') return `delete ${s.what.name}`;
    return `${s.do} ${s.to.name} ${JSON.stringify(s.fields)}`;
  });

export const up: Is = {};
export const down: Is = { down: true };
export const lost: Is = { down: true, evidence: EVIDENCE.dataLost };
/** A user has deleted its PVC; its Pod runs. */
export const terminating: Is = { pvc: 'terminating' };
export const learner: Is = { as: 'learner' };
export const joining: Is = { as: 'learner', fresh: true, ageMs: 2_000 };
export const awaited: Is = { as: 'awaited' };
export const dormant: Is = { down: true, spec: { dormant: true }, pod: { is: 'absent' } };
export const unreachable: Gathered['etcd'] = { is: 'unreachable', message: 'no leader' };
export const list = (...members: readonly Is[]): string => joinList(members.map((is, i) => entry(i + 1, is)));
export const repair = (count: number, secondsAgo: number) => ({
  repair: { count, last: at(secondsAgo * 1000), generation: 1 },
});
