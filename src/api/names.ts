/** Every label, annotation, finalizer and object name. The values cannot change: running clusters carry them. */
import { counterOf, shortName } from '../lib/hash.ts';

export const GROUP = 'etcd-operator.cozystack.io';
export const VERSION = 'v1alpha2';
export const API_VERSION = `${GROUP}/${VERSION}` as const;

/** The resources of the operator's own kinds. */
const own = <Plural extends string, Kind extends string>(plural: Plural, kind: Kind) =>
  ({ group: GROUP, version: VERSION, plural, kind }) as const;
export const etcdClusters = own('etcdclusters', 'EtcdCluster');
export const etcdMembers = own('etcdmembers', 'EtcdMember');
export const etcdSnapshots = own('etcdsnapshots', 'EtcdSnapshot');
export const etcdSnapshotSchedules = own('etcdsnapshotschedules', 'EtcdSnapshotSchedule');
export const etcdDefrags = own('etcddefrags', 'EtcdDefrag');
export const etcdDefragPolicies = own('etcddefragpolicies', 'EtcdDefragPolicy');

export const MANAGER = 'etcd-operator';
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const COMPONENT_LABEL = 'app.kubernetes.io/component';
export const CLUSTER_LABEL = `${GROUP}/cluster`;
export const ROLE_LABEL = `${GROUP}/role`;
export const ROLE_VOTER = 'voter';
export const MEMBER_FINALIZER = `${GROUP}/member-cleanup`;
/** On an EtcdMember: a user may delete it although the chart's ValidatingAdmissionPolicy forbids it. */
export const ALLOW_DELETION_ANNOTATION = `${GROUP}/allow-deletion`;
/** On a Secret or PVC, where the administrator demands it: specs may name it. */
export const REFERENCE_LABEL = `${GROUP}/allow-reference`;
/** On members and clusters that were adopted from still earlier operators: their data paths and addresses depend on these. */
export const HEADLESS_SERVICE_ANNOTATION = `${GROUP}/headless-service-name`;
export const DATA_SUBPATH_ANNOTATION = `${GROUP}/data-dir-subpath`;
export const PEER_AUTO_TLS_ANNOTATION = `${GROUP}/peer-auto-tls`;
/** On the Pod of the seed, read by etcd and by the restore agent at every start: whether an empty data directory may bootstrap a cluster. */
export const INITIAL_STATE_ANNOTATION = `${GROUP}/initial-cluster-state`;
/** On the Pod of a joining member, read by its etcd at every start: the members that an empty data directory may join. */
export const INITIAL_CLUSTER_ANNOTATION = `${GROUP}/initial-cluster`;
/** On the Pod of a member, read by its etcd at every start: whether it compares its data with the other members before it serves. */
export const INITIAL_CHECK_ANNOTATION = `${GROUP}/initial-corrupt-check`;
/** On a PVC, instead of an owner reference: the uid of the EtcdMember that it belongs to. */
export const MEMBER_UID_ANNOTATION = `${GROUP}/member-uid`;
/** On a PVC that outlived its member: why, and since when. */
export const QUARANTINE_LABEL = `${GROUP}/quarantine`;
export const QUARANTINED_AT_ANNOTATION = `${GROUP}/quarantined-at`;
/** On the PVC of a member that was replaced: the failure evidence. */
export const QUARANTINE_REASON_ANNOTATION = `${GROUP}/quarantine-reason`;
export type Quarantine =
  /** Its member was replaced on failure evidence, which can be wrong: kept for a day. */
  | 'member-replaced'
  /** deletionPolicy Retain, and its cluster was deleted: kept for ever. */
  | 'cluster-deleted'
  /** deletionPolicy Retain, and its member was removed: kept for a week. */
  | 'member-removed'
  /** Its cluster was deleted while no operator ran, and with it the deletionPolicy. The member's copy says Delete: kept for a day. */
  | 'policy-unknown';
/** On an EtcdCluster: a new value makes the operator rotate the CAs that it manages for it. */
export const ROTATE_CA_ANNOTATION = `${GROUP}/rotate-ca`;
const OLD_ROTATE_CA_ANNOTATION = `${GROUP}/rotate-authority`;
/** On a Pod that is about to be restarted: since when it is out of the client Service. */
export const DRAINING_ANNOTATION = `${GROUP}/draining-since`;
export const OLD_DRAINING_ANNOTATION = `${GROUP}/aside-since`;

/** On a Pod: digests of what it was built from. */
export const TEMPLATE_ANNOTATION = `${GROUP}/template`;
/** On an EtcdCluster: a new value makes the operator restart every member once. On an EtcdMember: the value that it was restarted for. */
export const RESTARTED_AT_ANNOTATION = `${GROUP}/restarted-at`;

type Annotations = Readonly<Record<string, string>>;

/** The old annotation is still read: without it, a cluster that carries it would start another CA rotation after an upgrade. */
export const requestedRotation = (annotations: Annotations = {}): string | undefined =>
  annotations[ROTATE_CA_ANNOTATION] ?? annotations[OLD_ROTATE_CA_ANNOTATION];

/** The old annotation is still read: a Pod that the previous operator took out of the Service would stay out of it. */
export const drainingSince = (annotations: Annotations = {}): string | undefined =>
  annotations[DRAINING_ANNOTATION] ?? annotations[OLD_DRAINING_ANNOTATION];

/** On a Secret that the operator writes: when its content last changed. */
export const WRITTEN_AT_ANNOTATION = `${GROUP}/written-at`;
export const LEASE_NAME = `aa20b3a9.${GROUP}`;

/** On agent Jobs and their Pods: the cluster that they work for. With the cluster label, its Services would send clients to them. */
export const AGENT_OF_LABEL = `${GROUP}/agent-of`;
export const AGENT_COMPONENT = 'agent';
/** On an EtcdSnapshot and on Jobs: the schedule that created it. */
export const SCHEDULE_LABEL = `${GROUP}/schedule`;
/** On an EtcdDefrag: the policy that created it. */
export const POLICY_LABEL = `${GROUP}/defrag-policy`;
/** On a Job of a schedule: the EtcdSnapshot that it is for. */
export const ABOUT_ANNOTATION = `${GROUP}/about`;
/** The name of the cache index that finds schedules by the cluster in their spec; not a label. */
export const BY_CLUSTER = 'spec.clusterRef.name';
/** On the Pods of a Job, set by Kubernetes. */
export const JOB_NAME_LABEL = 'batch.kubernetes.io/job-name';

/** Selects all objects that the operator creates. */
export const MANAGED_SELECTOR = `${MANAGED_BY_LABEL}=${MANAGER}`;

export const CLIENT_PORT = 2379;
export const PEER_PORT = 2380;
export const METRICS_PORT = 2381;

/** Longer names cannot become `<cluster>-client` Services, `data-<cluster>-xxxxx` hosts and label values. */
export const MAX_CLUSTER_NAME = 56;

/** The Job of a snapshot is `<name>-snapshot`, and the name of a Job must be a valid label value. */
export const MAX_SNAPSHOT_NAME = 54;
/** A snapshot of a schedule is `<schedule>-` and its minute, as twelve digits; the name of its Job must be a valid label value. */
export const MAX_SCHEDULE_NAME = MAX_SNAPSHOT_NAME - 13;
/** The name is a label value of its EtcdDefrags. */
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
/** Labels of agents: they work for a cluster and are no members of it. */
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
export const pdbName = (cluster: string): string => cluster;
export const memberPolicyName = (cluster: string): string => cluster;
export const agentPolicyName = (cluster: string): string => `${cluster}-agents`;
export const volumeClaimName = (member: string): string => `data-${member}`;
/** The Secrets that members mount: only the operator writes them, and so decides when a change reaches the members. */
export const serverMountName = (cluster: string): string => `${cluster}-server-mounted`;
export const peerMountName = (cluster: string): string => `${cluster}-peer-mounted`;
/** The operator's copy of its own client certificate, which it keeps using when a user changes their Secret too early. */
export const operatorMountName = (cluster: string): string => `${cluster}-operator-mounted`;
/** The two ports of a member: each has a CA bundle of its own. */
export type EtcdPortName = 'client' | 'peer';
/** A Secret with a CA bundle, never changed: the name in the spec of a Pod reports which CA bundle its etcd has loaded. */
export const trustName = (cluster: string, part: EtcdPortName, digest: string): string =>
  `${cluster}-${part}-trust-${digest.slice(0, 10)}`;
/** The CAs that the operator manages: one per port, or a client certificate would be accepted at the peer port. */
export const clientCAName = (cluster: string): string => `${cluster}-client-ca`;
export const peerCAName = (cluster: string): string => `${cluster}-peer-ca`;
/** The Certificates that the operator requests from cert-manager, and the Secrets that it issues them into. */
export const CERT_MANAGER_GROUP = 'cert-manager.io';
/** On a Secret, set by cert-manager: the Certificate that it was issued for. */
export const CERTIFICATE_NAME_ANNOTATION = `${CERT_MANAGER_GROUP}/certificate-name`;
export const serverRequestName = (cluster: string): string => `${cluster}-server`;
export const peerRequestName = (cluster: string): string => `${cluster}-peer`;
export const operatorRequestName = (cluster: string): string => `${cluster}-operator-client`;
export const applicationRequestName = (cluster: string): string => `${cluster}-client`;
export const issuedServerName = (cluster: string): string => `${cluster}-server-tls`;
export const issuedPeerName = (cluster: string): string => `${cluster}-peer-tls`;
/** The client certificate of the operator, and the one for applications. */
export const operatorCertificateName = (cluster: string): string => `${cluster}-operator-client-tls`;
export const applicationCertificateName = (cluster: string): string => `${cluster}-client-tls`;
/** The root password that etcd accepted last, and the one that the operator is about to set. */
export const keptPasswordName = (cluster: string): string => `${cluster}-root-applied`;
/** Derived from the scheduled minute: the API server refuses to create the same snapshot twice. */
export const scheduledSnapshotName = (schedule: string, slot: number): string =>
  `${schedule}-${new Date(slot).toISOString().replace(/\D/g, '').slice(0, 12)}`;
/** The scheduled minute of a snapshot, in milliseconds since 1970; `undefined` when it is not of this schedule. */
export const slotOf = (schedule: string, snapshot: string): number | undefined => {
  const digits = snapshot.startsWith(`${schedule}-`) ? snapshot.slice(schedule.length + 1) : '';
  const [, year, month, day, hour, minute] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(digits) ?? [];
  const slot = year === undefined ? Number.NaN : Date.parse(`${year}-${month}-${day}T${hour}:${minute}Z`);
  return Number.isNaN(slot) ? undefined : slot;
};
/** As the baseline names it, by the scheduled time: the API server refuses to create the same EtcdDefrag twice. */
export const scheduledDefragName = (policy: string, slot: number): string => `${policy}-${slot / 1_000}`;
/** The EtcdDefrag of a remedy that started at this time, in milliseconds since 1970. */
export const remedyDefragName = (cluster: string, startedAt: number): string =>
  `${cluster}-remedy-${Math.floor(startedAt / 1_000)}`;
/** The scheduled time of an EtcdDefrag, in milliseconds since 1970; `undefined` when it is not of this policy. */
export const defragSlotOf = (policy: string, defrag: string): number | undefined => {
  const seconds = defrag.startsWith(`${policy}-`) ? defrag.slice(policy.length + 1) : '';
  return /^\d{1,11}$/.test(seconds) ? Number(seconds) * 1_000 : undefined;
};
/** The Jobs of a schedule, one per snapshot. */
export const pruneJobName = (schedule: string, about: string): string => `${schedule}-prune-${shortName(about, 1)}`;
export const drillJobName = (schedule: string, about: string): string => `${schedule}-drill-${shortName(about, 1)}`;
/** One per scheduled scrub. */
export const scrubJobName = (schedule: string, about: string): string => `${schedule}-scrub-${shortName(about, 1)}`;
/** One for each location, and each content of its Secrets. */
export const probeJobName = (schedule: string, about: string): string => `${schedule}-probe-${shortName(about, 1)}`;
/** Numbered, because a Job is kept for a while after it has failed. */
export const copyJobName = (snapshot: string, attempt: number): string => `${snapshot}-copy-${attempt % 100}`;
export const snapshotJobName = (snapshot: string): string => `${snapshot}-snapshot`;
/** Looks the snapshot of an earlier operator's Job up in the store. */
export const lookupJobName = (snapshot: string): string => `${snapshot}-lookup`;
export const clusterToken = (namespace: string, cluster: string, uid: string): string =>
  `${namespace}-${cluster}-${uid}`;

/** The name of the `counter`-th member of a cluster: the API server refuses to create the same member twice. */
export const memberName = (cluster: string, clusterUid: string, counter: number): string =>
  `${cluster}-${shortName(clusterUid, counter)}`;

/** The counter that the name of a member was derived from; `undefined` when it is not a name of this cluster. */
export const memberNumber = (cluster: string, clusterUid: string, member: string): number | undefined =>
  member.startsWith(`${cluster}-`) ? counterOf(clusterUid, member.slice(cluster.length + 1)) : undefined;

/** The EtcdSnapshot before a change of the minor. The name of the cluster may be longer than that of a snapshot. */
export const versionSnapshotName = (cluster: string, seed: string, generation: number): string =>
  `${cluster.slice(0, MAX_SNAPSHOT_NAME - 14).replace(/-+$/, '')}-version-${shortName(seed, generation)}`;

export type Scheme = 'http' | 'https';

/** The DNS name of a member, also in its certificate. */
export const hostOf = (member: string, service: string, namespace: string): string =>
  `${member}.${service}.${namespace}.svc`;
/**
 * The name that members of new clusters demand of every peer certificate. The wildcard of peer certificates covers it; a client
 * certificate of the same CA does not have it, and could otherwise send raft messages, below auth.
 */
export const peerName = (cluster: string, namespace: string): string =>
  hostOf('peer', headlessServiceName(cluster), namespace);
export const peerURL = (member: string, service: string, namespace: string, scheme: Scheme = 'http'): string =>
  `${scheme}://${hostOf(member, service, namespace)}:${PEER_PORT}`;
export const clientURL = (member: string, service: string, namespace: string, scheme: Scheme = 'http'): string =>
  `${scheme}://${hostOf(member, service, namespace)}:${CLIENT_PORT}`;
