/** Every label, annotation, finalizer and object name. The values are what running clusters carry: they cannot change. */
import { counterOf, shortName } from '../lib/hash.ts';

export const GROUP = 'etcd-operator.cozystack.io';
export const VERSION = 'v1alpha2';
export const API_VERSION = `${GROUP}/${VERSION}` as const;

/** How the API server knows a kind of ours. */
export const etcdClusters = { group: GROUP, version: VERSION, plural: 'etcdclusters', kind: 'EtcdCluster' } as const;
export const etcdMembers = { group: GROUP, version: VERSION, plural: 'etcdmembers', kind: 'EtcdMember' } as const;
export const etcdSnapshots = { group: GROUP, version: VERSION, plural: 'etcdsnapshots', kind: 'EtcdSnapshot' } as const;
export const etcdSnapshotSchedules = {
  group: GROUP,
  version: VERSION,
  plural: 'etcdsnapshotschedules',
  kind: 'EtcdSnapshotSchedule',
} as const;
export const etcdDefrags = { group: GROUP, version: VERSION, plural: 'etcddefrags', kind: 'EtcdDefrag' } as const;
export const etcdDefragPolicies = {
  group: GROUP,
  version: VERSION,
  plural: 'etcddefragpolicies',
  kind: 'EtcdDefragPolicy',
} as const;

export const MANAGER = 'etcd-operator';
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const COMPONENT_LABEL = 'app.kubernetes.io/component';
export const CLUSTER_LABEL = `${GROUP}/cluster`;
export const ROLE_LABEL = `${GROUP}/role`;
export const ROLE_VOTER = 'voter';
export const MEMBER_FINALIZER = `${GROUP}/member-cleanup`;
/** On an EtcdMember: a person may delete it although the chart's policy forbids it. */
export const ALLOW_DELETION_ANNOTATION = `${GROUP}/allow-deletion`;
/** On members and clusters that were taken over from yet earlier operators: what their data and addresses depend on. */
export const HEADLESS_SERVICE_ANNOTATION = `${GROUP}/headless-service-name`;
export const DATA_SUBPATH_ANNOTATION = `${GROUP}/data-dir-subpath`;
export const PEER_AUTO_TLS_ANNOTATION = `${GROUP}/peer-auto-tls`;
/** On the Pod of a seed, and read at every start by its etcd, or by who restores: whether an empty data directory may begin a cluster. */
export const INITIAL_STATE_ANNOTATION = `${GROUP}/initial-cluster-state`;
/** On the Pod of a member that joins, and read by its etcd at every start: whom an empty data directory may join. */
export const INITIAL_CLUSTER_ANNOTATION = `${GROUP}/initial-cluster`;
/** On a member's Pod, and read by its etcd at every start: whether it compares its data with the others before it serves. */
export const INITIAL_CHECK_ANNOTATION = `${GROUP}/initial-corrupt-check`;
/** On a volume that has no owner, so that it outlives its member: the uid of the EtcdMember that it belongs to. */
export const MEMBER_UID_ANNOTATION = `${GROUP}/member-uid`;
/** On a volume that outlived its member: why, and since when. */
export const QUARANTINE_LABEL = `${GROUP}/quarantine`;
export const QUARANTINED_AT_ANNOTATION = `${GROUP}/quarantined-at`;
/** On an EtcdCluster: a new value makes the operator rotate the CAs that it manages for it. */
export const ROTATE_CA_ANNOTATION = `${GROUP}/rotate-ca`;
const OLD_ROTATE_CA_ANNOTATION = `${GROUP}/rotate-authority`;
/** On a Pod that is about to be restarted: since when it is out of the client Service. */
export const DRAINING_ANNOTATION = `${GROUP}/draining-since`;
export const OLD_DRAINING_ANNOTATION = `${GROUP}/aside-since`;

type Annotations = Readonly<Record<string, string>>;

/** The old annotation is still read: without it, a cluster that carries it would start another CA rotation after an upgrade. */
export const requestedRotation = (annotations: Annotations = {}): string | undefined =>
  annotations[ROTATE_CA_ANNOTATION] ?? annotations[OLD_ROTATE_CA_ANNOTATION];

/** The old annotation is still read: a Pod that the previous operator took out of the Service would stay out of it. */
export const drainingSince = (annotations: Annotations = {}): string | undefined =>
  annotations[DRAINING_ANNOTATION] ?? annotations[OLD_DRAINING_ANNOTATION];

/** On a Secret that the operator writes: since when it is as it is. */
export const WRITTEN_AT_ANNOTATION = `${GROUP}/written-at`;
export const LEASE_NAME = `aa20b3a9.${GROUP}`;

/** On the Jobs of agents and their Pods: which cluster they work for. Not its own label: its Services would lead clients to them. */
export const AGENT_OF_LABEL = `${GROUP}/agent-of`;
export const AGENT_COMPONENT = 'agent';
/** On an EtcdSnapshot and on Jobs: the schedule that had it made. */
export const SCHEDULE_LABEL = `${GROUP}/schedule`;
/** On such a Job: the EtcdSnapshot that it is about. */
export const ABOUT_ANNOTATION = `${GROUP}/about`;
/** Under which schedules are found by the cluster in their spec: no label of theirs. */
export const BY_CLUSTER = 'spec.clusterRef.name';
/** On the Pods of a Job, by Kubernetes. */
export const JOB_NAME_LABEL = 'batch.kubernetes.io/job-name';

/** Selects everything that any cluster's members are made of. */
export const MANAGED_SELECTOR = `${MANAGED_BY_LABEL}=${MANAGER}`;

export const CLIENT_PORT = 2379;
export const PEER_PORT = 2380;
export const METRICS_PORT = 2381;

/** Longer names cannot become `<cluster>-client` Services, `data-<cluster>-xxxxx` hosts and label values. */
export const MAX_CLUSTER_NAME = 56;

/** The Job of a snapshot is `<name>-snapshot`, and a Job's name must be a label value. */
export const MAX_SNAPSHOT_NAME = 54;
/** A run is `<schedule>-` and the minute it is for, as twelve digits; its Job must be a label value. */
export const MAX_SCHEDULE_NAME = MAX_SNAPSHOT_NAME - 13;
/** The name is the value of a label of its runs. */
export const MAX_POLICY_NAME = 63;

export const clusterLabels = (cluster: string): Readonly<Record<string, string>> => ({
  'app.kubernetes.io/name': 'etcd',
  'app.kubernetes.io/instance': cluster,
  [MANAGED_BY_LABEL]: MANAGER,
  [CLUSTER_LABEL]: cluster,
});
export const memberLabels = (cluster: string, member: string): Readonly<Record<string, string>> => ({
  ...clusterLabels(cluster),
  [COMPONENT_LABEL]: member,
});
/** Of what works for a cluster and is no member of it. */
export const agentLabels = (cluster: string): Readonly<Record<string, string>> => ({
  [MANAGED_BY_LABEL]: MANAGER,
  [COMPONENT_LABEL]: AGENT_COMPONENT,
  [AGENT_OF_LABEL]: cluster,
});
export const clusterSelector = (cluster: string): string => `${CLUSTER_LABEL}=${cluster}`;
export const memberSelector = (cluster: string, member: string): string =>
  `${clusterSelector(cluster)},${COMPONENT_LABEL}=${member}`;

export const headlessServiceName = (cluster: string): string => cluster;
export const clientServiceName = (cluster: string): string => `${cluster}-client`;
export const budgetName = (cluster: string): string => cluster;
export const volumeClaimName = (member: string): string => `data-${member}`;
/** What members mount: only the operator writes it, so that a change reaches them when it decides. */
export const serverMountName = (cluster: string): string => `${cluster}-server-mounted`;
export const peerMountName = (cluster: string): string => `${cluster}-peer-mounted`;
/** What the operator itself goes on with when a Secret of the user's is changed too early. */
export const operatorMountName = (cluster: string): string => `${cluster}-operator-mounted`;
/** The two ports of a member: each has trust of its own. */
export type EtcdPortName = 'client' | 'peer';
/** Whom members trust, never changed: by the name in its spec, a Pod says what its etcd has read when it started. */
export const trustName = (cluster: string, part: EtcdPortName, digest: string): string =>
  `${cluster}-${part}-trust-${digest.slice(0, 10)}`;
/** Authorities of the operator's own: one for each port, or an application's certificate would open that of the peers. */
export const clientAuthorityName = (cluster: string): string => `${cluster}-client-ca`;
export const peerAuthorityName = (cluster: string): string => `${cluster}-peer-ca`;
/** The Certificates that cert-manager is asked for, and where it puts what it issues. */
export const CERT_MANAGER_GROUP = 'cert-manager.io';
/** On a Secret of cert-manager's: the Certificate that it was issued for. */
export const CERTIFICATE_NAME_ANNOTATION = `${CERT_MANAGER_GROUP}/certificate-name`;
export const serverRequestName = (cluster: string): string => `${cluster}-server`;
export const peerRequestName = (cluster: string): string => `${cluster}-peer`;
export const operatorRequestName = (cluster: string): string => `${cluster}-operator-client`;
export const applicationRequestName = (cluster: string): string => `${cluster}-client`;
export const issuedServerName = (cluster: string): string => `${cluster}-server-tls`;
export const issuedPeerName = (cluster: string): string => `${cluster}-peer-tls`;
/** What the operator shows to members, and what applications may show. */
export const operatorCertificateName = (cluster: string): string => `${cluster}-operator-client-tls`;
export const applicationCertificateName = (cluster: string): string => `${cluster}-client-tls`;
/** The password of root that etcd accepted last, and the one that it is about to be told. */
export const keptPasswordName = (cluster: string): string => `${cluster}-root-applied`;
/** The snapshot for a minute: making it twice is refused by the API server. */
export const scheduledSnapshotName = (schedule: string, slot: number): string =>
  `${schedule}-${new Date(slot).toISOString().replace(/\D/g, '').slice(0, 12)}`;
/** The minute that a snapshot of this schedule is for, in milliseconds since 1970; `undefined`: it is none of its. */
export const slotOf = (schedule: string, snapshot: string): number | undefined => {
  const digits = snapshot.startsWith(`${schedule}-`) ? snapshot.slice(schedule.length + 1) : '';
  const [, year, month, day, hour, minute] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(digits) ?? [];
  const slot = year === undefined ? Number.NaN : Date.parse(`${year}-${month}-${day}T${hour}:${minute}Z`);
  return Number.isNaN(slot) ? undefined : slot;
};
/** Jobs of a schedule, one for each thing that they are about. */
export const pruneJobName = (schedule: string, about: string): string => `${schedule}-prune-${shortName(about, 1)}`;
export const drillJobName = (schedule: string, about: string): string => `${schedule}-drill-${shortName(about, 1)}`;
export const snapshotJobName = (snapshot: string): string => `${snapshot}-snapshot`;
export const clusterToken = (namespace: string, cluster: string, uid: string): string =>
  `${namespace}-${cluster}-${uid}`;

/** The name of the `counter`-th member that a cluster ever had: creating it twice is refused by the API server. */
export const memberName = (cluster: string, clusterUid: string, counter: number): string =>
  `${cluster}-${shortName(clusterUid, counter)}`;

/** The counter that the name of a member was made from; `undefined`: this cluster gives no such names. */
export const memberNumber = (cluster: string, clusterUid: string, member: string): number | undefined =>
  member.startsWith(`${cluster}-`) ? counterOf(clusterUid, member.slice(cluster.length + 1)) : undefined;

export type Scheme = 'http' | 'https';

/** The name that a member is known by in DNS, and in its certificate. */
export const hostOf = (member: string, service: string, namespace: string): string =>
  `${member}.${service}.${namespace}.svc`;
export const peerURL = (member: string, service: string, namespace: string, scheme: Scheme = 'http'): string =>
  `${scheme}://${hostOf(member, service, namespace)}:${PEER_PORT}`;
export const clientURL = (member: string, service: string, namespace: string, scheme: Scheme = 'http'): string =>
  `${scheme}://${hostOf(member, service, namespace)}:${CLIENT_PORT}`;
