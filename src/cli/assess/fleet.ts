/** One row per cluster, from the status that the operator reports: the ones that need attention first. */
import type { Condition } from '../../api/conditions.ts';
import { targetOf } from '../../api/defaults.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { findCondition } from '../../domain/conditions.ts';
import { present } from '../../lib/present.ts';
import type { ClusterFacts } from './facts.ts';
import { type Health, judge } from './health.ts';

export interface FleetRow {
  readonly namespace: string;
  readonly name: string;
  readonly health: Health;
  readonly summary: string;
  readonly ready: number;
  readonly replicas: number;
  readonly version: string;
  /** How many more voters may fail. */
  readonly margin?: number;
  readonly leader?: string;
  /** The fullest member, in percent of the database quota and in steps of ten. */
  readonly quotaUsedPercent?: number;
  /** What else needs attention: conditions that report a problem beside the health. */
  readonly attention: readonly string[];
  readonly createdAt?: number;
}

/** The worst first. */
const ORDER: readonly Health[] = ['unavailable', 'unknown', 'degraded', 'progressing', 'paused', 'healthy'];

/** Types whose status True is a problem; every other optional condition is one when it is False. */
const BAD_WHEN_TRUE = ['KnownIssues', 'FieldsIgnored', 'Suspended'];
const BASIC = ['Available', 'Progressing', 'Degraded'];

type Stated = Pick<Condition, 'type' | 'status'>;

const isProblem = ({ type, status }: Stated): boolean =>
  !BASIC.includes(type) && status === (BAD_WHEN_TRUE.includes(type) ? 'True' : 'False');

/** The three that every cluster has, and those that report a problem. */
export const isOfNote = (condition: Stated): boolean => BASIC.includes(condition.type) || isProblem(condition);

export const attentionOf = ({ status }: EtcdCluster): readonly string[] =>
  (status?.conditions ?? [])
    .filter(isProblem)
    .map(({ type, reason }) => (type === reason ? type : `${type}=${reason}`));

/** From high to low: worse health, more that needs attention, fewer voters that may fail; then by name. */
export function fleetRows(clusters: readonly EtcdCluster[], now: number): readonly FleetRow[] {
  const key = ({ namespace, name }: FleetRow): string => `${namespace}/${name}`;
  return clusters
    .map((cluster) => rowOf(cluster, now))
    .toSorted(
      (a, b) =>
        ORDER.indexOf(a.health) - ORDER.indexOf(b.health) ||
        b.attention.length - a.attention.length ||
        (a.margin ?? 0) - (b.margin ?? 0) ||
        (key(a) < key(b) ? -1 : 1),
    );
}

function rowOf(cluster: EtcdCluster, now: number): FleetRow {
  const { metadata, spec, status } = cluster;
  const notAsked = { is: 'notAsked', message: 'members are not asked for a table of clusters' } as const;
  const facts: ClusterFacts = {
    now,
    cluster,
    members: [],
    list: notAsked,
    schedules: [],
    snapshots: [],
    defrags: [],
    events: [],
    unread: [],
  };
  const created = Date.parse(metadata.creationTimestamp ?? '');
  const used = (status?.members ?? []).flatMap(({ quotaUsedPercent }) => quotaUsedPercent ?? []);
  const available = findCondition(status?.conditions, 'Available');
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    ...judge(facts),
    ready: status?.readyMembers ?? 0,
    replicas: targetOf(spec, status).replicas,
    version: status?.version ?? spec.version,
    ...present({
      margin: available?.reason === 'Paused' ? undefined : status?.quorum?.margin,
      leader: status?.leader,
      quotaUsedPercent: used.length === 0 ? undefined : Math.max(...used),
      createdAt: Number.isNaN(created) ? undefined : created,
    }),
    attention: attentionOf(cluster),
  };
}
