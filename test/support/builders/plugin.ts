/** Gathered facts about clusters, for tests of the kubectl plugin. */
import type { Condition } from '../../../src/api/conditions.ts';
import type { EtcdClusterSpec } from '../../../src/api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../src/api/etcd-cluster-status.ts';
import { type ClusterFacts, type MemberFacts, type MemberReport } from '../../../src/cli/assess/facts.ts';
import type { Event } from '../../../src/gen/kube.ts';
import { aCluster, aMember, aPod, CLUSTER_ID, condition, NOW } from './builders.ts';

const MI = 1024 ** 2;
export const ID = (index: number): string => `beef00000000000${index}`;
export const NAME = (index: number): string => `db-aaaa${index}`;
const at = (ms: number): string => new Date(NOW - ms).toISOString();
const DAY = 86_400_000;

/** The first member is the leader. */
export const report = (index: number, more: Partial<MemberReport> = {}): MemberReport => ({
  id: ID(index),
  leader: ID(1),
  isLearner: false,
  version: '3.6.16',
  alarms: [],
  term: 4,
  applied: 18_230 - index,
  raftIndex: 18_230,
  revision: 9_001,
  databaseBytes: 240 * MI,
  inUseBytes: 61 * MI,
  ...more,
});

export interface MemberOptions {
  readonly answer?: MemberFacts['answer'] | Partial<MemberReport>;
  readonly ready?: Condition;
  readonly pod?: 'running' | 'crashing' | 'absent';
  readonly spec?: Partial<MemberFacts['object']['spec']>;
}

export function member(index: number, { answer = {}, ready, pod = 'running', spec }: MemberOptions = {}): MemberFacts {
  const name = NAME(index);
  const object = aMember({
    spec: { ...spec },
    status: { memberID: ID(index), isVoter: true, conditions: [ready ?? condition('Ready', 'True', 'PodReady')] },
  });
  const running = { state: { running: { startedAt: at(3 * DAY + 4 * 3_600_000) } }, restartCount: 0 };
  const crashing = { state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } }, restartCount: 9 };
  const base = aPod({
    ready: pod === 'running',
    status: {
      podIP: `10.0.0.${index}`,
      containerStatuses: [
        { name: 'etcd', image: '', imageID: '', ready: true, ...(pod === 'crashing' ? crashing : running) },
      ],
    },
  });
  return {
    object: { ...object, metadata: { ...object.metadata, name } },
    ...(pod !== 'absent' && {
      pod: { ...base, metadata: { ...base.metadata, name }, spec: { containers: [], nodeName: `worker-${index}` } },
      zone: `zone-${'abc'[index - 1] ?? 'x'}`,
    }),
    answer: 'is' in answer ? answer : { is: 'answers', report: report(index, answer) },
  };
}

export const HEALTHY = [
  condition('Available', 'True', 'QuorumHealthy', 'All members are ready'),
  condition('Progressing', 'False', 'Reconciled', 'All members match the spec'),
  condition('Degraded', 'False', 'QuorumHealthy', 'All members are ready'),
];

export const anEvent = (minutesAgo: number, more: Partial<Event> = {}): Event => ({
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'e', namespace: 'ns' },
  eventTime: at(minutesAgo * 60_000),
  type: 'Normal',
  reason: 'MemberPromoted',
  note: 'learner db-aaaa3 has caught up and votes now',
  regarding: { kind: 'EtcdCluster', name: 'db' },
  ...more,
});

/** Three healthy members, unless the options say otherwise. */
export function facts(
  options: Partial<Omit<ClusterFacts, 'cluster'>> & {
    readonly spec?: Partial<EtcdClusterSpec>;
    readonly status?: Partial<EtcdClusterStatus>;
    readonly deleting?: boolean;
  } = {},
): ClusterFacts {
  const { spec, status, deleting, ...more } = options;
  const members = more.members ?? [member(1), member(2), member(3)];
  return {
    now: NOW,
    cluster: aCluster({
      spec: { replicas: 3, ...spec },
      status: {
        clusterID: CLUSTER_ID,
        version: '3.6.16',
        updatedMembers: 3,
        readyMembers: 3,
        quorum: { needed: 2, healthy: 3, margin: 1 },
        conditions: HEALTHY,
        ...status,
      },
      ...(deleting && { deleting }),
    }),
    members,
    list: {
      is: 'answers',
      confirmed: true,
      members: members.map(({ object }) => ({
        id: object.status?.memberID ?? '',
        name: object.metadata.name ?? '',
        peerURLs: [`http://${object.metadata.name}.db.ns.svc:2380`],
        isLearner: false,
      })),
    },
    schedules: [],
    snapshots: [],
    defrags: [],
    events: [],
    unread: [],
    ...more,
  };
}
