/**
 * The intervals, deadlines and time limits of controllers, grouped by what uses them, each with its reason. The runtime, the clients
 * and the agents have their own.
 */

// Requests to etcd

/** A reconcile asks every member, and one that does not respond must not delay the cluster. */
export const ASK_TIMEOUT_MS = 2_000;
/** HashKV reads the whole database of a member. */
export const HASH_TIMEOUT_MS = 10_000;
/** A change waits for a quorum to persist it, and for an election if there is one. */
export const CHANGE_TIMEOUT_MS = 5_000;
/** etcd refuses membership changes for some seconds after each one, so they are retried often. */
export const CHANGE_RETRY_MS = 500;
/** The same after `CHANGE_REFUSED_MS`. */
export const REFUSED_RETRY_MS = 10_000;
/** etcd rightly refuses changes for five seconds after a member was added; no refusal that ends by itself lasts a minute. */
export const CHANGE_REFUSED_MS = 60_000;

// Secrets and certificates

/** The operator has no watch on Secrets: this is how often it reads them. */
export const SECRETS_SETTLED_MS = 5 * 60_000;
/** The same while a certificate is missing or invalid, or a write is due: users wait for it. */
export const SECRETS_UNSETTLED_MS = 10_000;
/** While reads fail: an API server whose KMS provider is down must not get a read of every Secret every ten seconds. */
export const SECRET_READ_RETRY = { firstMs: 1_000, maxMs: SECRETS_SETTLED_MS };
/** The operator gets no event when the API server recovers from a failed read. */
export const UNREADABLE_RECHECK_MS = 10_000;
/** The operator gets no event when the policy is changed that refuses the next Pod of a member. */
export const REFUSED_POD_RECHECK_MS = 30_000;
/** Certificates are parsed in slices: the event loop serves all clusters. */
export const EVALUATION_SLICE_MS = 5;
/** A member that accepts a connection and sends no certificate must not delay the evaluation of a cluster. */
export const HANDSHAKE_TIMEOUT_MS = 2_000;
/** A managed Secret is retried this soon: new Pods wait for it. */
export const MANAGED_SECRET_RETRY_MS = 1_000;
/** A CertificateRequest without approval is reported as not ready after this time. */
export const APPROVAL_MS = 15_000;
/** A Certificate without a condition is reported as not ready after this time: cert-manager may not be running. */
export const CERTIFICATE_OBSERVED_MS = 30_000;
/** A renewal is not urgent: an issuer may take this long before its message is reported as a failure. */
export const CERTIFICATE_RENEWAL_MS = 60_000;

// Cluster and member

/** The cache receives events when a Pod changes; etcd sends none, so it is polled. */
export const RESYNC_MS = 5 * 60_000;
/** Foreign objects lack the operator's label, so the cache receives no event when they are deleted. */
export const FOREIGN_RECHECK_MS = 10_000;

// Cluster: bootstrap

/** etcd responds within a second after its Pod gets an address, so it is polled often at first; a broken image may take hours. */
export const SEED_PROBE = { firstMs: 100, maxMs: 10_000 };
/** For this long "connection refused" is normal while etcd starts, and is not reported. */
export const QUIET_START_MS = 5_000;
/**
 * A seed that is killed during its first start can leave a data directory that never elects a leader. A seed with a restored
 * snapshot gets longer: etcd may read the data for minutes before it responds, and a new seed would have to download it again.
 */
export const SEED_DEAD_AFTER = { firstMs: 60_000, maxMs: 15 * 60_000 };

// Cluster: members join and leave

/** A joining etcd responds within a second after its Pod gets an address; pulling its image may take minutes. */
export const JOIN_PROBE = { firstMs: 100, maxMs: 5_000 };
/** Joining members take seconds to start; one whose Pod cannot be scheduled may never start, and no member can be added meanwhile. */
export const SLOW_JOIN_MS = 15_000;
/** A member that finds no node for this long may never start: restarts of the others do not wait for it. */
export const NEVER_STARTED_MS = 10 * 60_000;
/** A learner has caught up within 0.1 s if the database is small; a large one takes minutes. */
export const PROMOTE_PROBE = { firstMs: 50, maxMs: 5_000 };
/** The disruption check depends on what members respond, and etcd sends no events. */
export const DISRUPTION_RECHECK_MS = 1_000;
/** A member list without a member that responds is mostly wrong for good: a user has to act. */
export const UNLISTED_MEMBER_RECHECK_MS = 10_000;
/** Kubernetes may route new connections to a Pod for this long after it left the Service: they are refused if etcd exits earlier. */
export const DRAIN_MS = 3_000;
/**
 * The same for a Pod that is being deleted, which leaves the Service at once: etcd goes on for this long before it gets SIGTERM.
 * kube-proxy applies changes at most once per second. Each second more delays the next Pod of the member.
 */
export const PRE_STOP_SECONDS = 2;
/** The terminationGracePeriodSeconds of a Pod that states none, by Kubernetes. */
export const DEFAULT_GRACE_SECONDS = 30;
/** The kubelet's readiness and etcd's own view of a member that was restarted settle within this time; each second counts for every member of a rollout. */
export const SETTLE_MS = 1_000;
/** A restart that was recorded because of a refused change is carried out within this time, or decided again. */
export const RECORDED_RESTART_MS = 60_000;
/** Restarts for an earlier refused change count for this long. */
export const COUNTED_RESTART_MS = 60 * 60_000;
/** A replacement has worked when all members were ready for this long: a cause that comes back later is another one. */
export const HEALTHY_RESET_MS = 60 * 60_000;
/** After a failed replacement, doubled by each further one: a cause outside the cluster may need time to go away. */
export const REPLACEMENT_PAUSE_MS = 30_000;
/** A recorded replacement without a new member is attempted again within this time: the deletion was refused, or the operator was killed. */
export const REPLACED_WITHIN_MS = 60_000;
/** Replacements on judged evidence are limited over all clusters for this long: time for a person to find a cause that all share. */
export const REPLACEMENT_RATE_MS = 60 * 60_000;

// Cluster: versions

/** etcd compares the versions of its members every four seconds, and sends no event. */
export const VERSION_PROBE_MS = 1_000;
/** While a check before a change of the minor fails: etcd sends no event when a member has recovered. */
export const PREFLIGHT_RECHECK_MS = 5_000;
/** etcd applies no write while it hashes its data, a tenth of a second for the largest that is hashed: members are asked at most this often. */
export const HASH_INTERVAL_MS = 60_000;
/** A backup of a schedule that is younger is enough before a change of the minor. */
export const RECENT_BACKUP_MS = 60 * 60_000;
/** A turn to restart members for an edit counts for this long before the cache shows it: the status is written within seconds, or not at all. */
export const TURN_RECORDED_MS = 60_000;
/** The snapshot that was taken for a change of the minor is used for this long, then another one is taken. Longer than a day: it may outlast a daily maintenance window, and is used in the next one. */
export const VERSION_SNAPSHOT_MS = 36 * 60 * 60_000;

// Cluster: at rest

/** Instead of `RESYNC_MS` while a member is unhealthy or etcd is unreachable. */
export const UNHEALTHY_RESYNC_MS = 5_000;
/** A kubelet may need this long until its probe reports a Pod as ready. */
export const READINESS_PROBED_WITHIN_MS = 15_000;
/** With deletionPolicy Retain, PVCs of removed members are kept for a week, in case a user needs the data. */
export const RETAINED_MS = 7 * 24 * 60 * 60_000;
/** PVCs that may have to be deleted, or not, are kept for a day: a user has to notice. */
export const QUARANTINE_MS = 24 * 60 * 60_000;
/** A volume is provisioned within seconds; after this time, storage that lacks room is not waited for while a quarantined PVC takes some. */
export const NO_CAPACITY_MS = 2 * 60_000;

// Member

/** A member whose etcd does not respond yet is polled often at first; a broken image may take hours. */
export const MEMBER_PROBE = { firstMs: 200, maxMs: 10_000 };
/** The cluster controller removes a deleted member from etcd, which sends no event. */
export const REMOVAL_RETRY_MS = 1_000;
/** An etcd that cannot use its data directory mostly exits sooner: after this time, the run is not judged by the previous exit. */
export const STABLE_AFTER_MS = 60_000;
/** CrashLoopBackOff waits at most five minutes between two starts; exits further apart are not one crash loop. */
export const LOOP_WINDOW_MS = 10 * 60_000;
/** A Node that is deleted may come back at once: users delete it to change its labels or its providerID, and its volumes stay. */
export const NODE_REGISTERED_WITHIN_MS = 30_000;
/** How long a kubelet takes to report that a Pod is not ready any more; Kubernetes timestamps have seconds. */
export const NOT_READY_REPORTED_WITHIN_MS = 5_000;

// Jobs of agents

/** The cache may receive the status of a Pod after that of its Job. */
export const POD_SETTLES_MS = 15_000;
/** A terminating Pod has half of this as its grace period, and may still report its result. */
export const POD_STOPS_MS = 60_000;

// Snapshot

/** After this, the user has waited long enough for a failure to be reported. */
export const SNAPSHOT_WAIT_MS = 15 * 60_000;
/** Users' Secrets are not watched, so they are polled. */
export const STORE_SECRET_POLL_MS = 10_000;
/** The caches have no Job of the Go operator: its end is polled, as by that operator. */
export const EARLIER_JOB_POLL_MS = 10_000;
/** How long no member may be reachable before a snapshot fails: longer than an election or a Pod restart. */
export const NO_MEMBER_GRACE_MS = 30_000;
/** How often members are asked during that time. */
export const NO_MEMBER_RETRY_MS = 2_000;
/** For all attempts together: half an hour, plus the time that the slowest usable store takes for the database. */
export const SNAPSHOT_DEADLINE_SECONDS = 1_800;
/** The agent ends this much before the Job's deadline, so that it can still report its reason. */
export const AGENT_ENDS_BEFORE_SECONDS = 300;
/** For the operator to read the result, and for users to read the agent's log. */
export const SNAPSHOT_JOB_KEPT_SECONDS = 600;

// Snapshot schedule

/** Lower bound of startingDeadlineSeconds: a backup must not be skipped because the operator was busy for a moment. */
export const MIN_STARTING_DEADLINE_MS = 10_000;
/** The requeue time is bounded: the wall clock may be set forward. */
export const MAX_REQUEUE_MS = 3_600_000;
/** A clock that is set back by less than this is tolerated. */
export const CLOCK_TOLERANCE_MS = 60_000;
/** A store may list and delete slowly; a Job that hangs must not block the next one for ever. */
export const PRUNE_DEADLINE_SECONDS = 3_600;
/** A drill downloads and restores the whole database. */
export const DRILL_DEADLINE_SECONDS = 4 * 3_600;
/** A second store that is away is tried again soon, and later every six hours: nothing but the bill limits how long it may take. */
export const COPY_RETRY_FIRST_MS = 5 * 60_000;
export const COPY_RETRY_MAX_MS = 6 * 3_600_000;
/** A few small calls, with the retries of an agent, and the time that a volume takes to be attached. */
export const PROBE_DEADLINE_SECONDS = 600;
/** While the location of a schedule is not known to be usable: its Secrets are not watched, and a user may be correcting them. */
export const LOCATION_POLL_MS = 60_000;
/** A scrub downloads one snapshot, slowly. */
export const SCRUB_DEADLINE_SECONDS = 12 * 3_600;
/** No user waits for a scrub: 32 MiB/s leave a node of 1 Gbit/s most of its network, and 1 TiB is read before the deadline. */
export const SCRUB_BYTES_PER_SECOND = 32 * 2 ** 20;
/** How often `spec.scrub` asks for one. */
export const SCRUB_INTERVALS_MS = { Daily: 86_400_000, Weekly: 7 * 86_400_000 } as const;
/** The first scrub is not before the first snapshots of a new schedule: they have to be stored and drilled. */
export const SCRUB_FIRST_MS = 3_600_000;
/** A scrub that could not be finished: the store may be back by then, and a week would be lost otherwise. */
export const SCRUB_RETRY_MS = 86_400_000;
/** For users to read the log. A failed Job is created again after this. */
export const SCHEDULE_JOB_KEPT_SECONDS = 3_600;

// Defragmentation
/** Without progress for this long, an EtcdDefrag fails: a cluster that is never healthy would keep all later ones waiting. */
export const DEFRAG_DEADLINE_MS = 45 * 60_000;
/** How long a finished EtcdDefrag waits for the NOSPACE alarm to go away. Statuses of members are coalesced for ten seconds, twice. */
export const DISARMED_WITHIN_MS = 60_000;
/** etcd compacts in batches with pauses of 10 ms, and reports no end: the space in use has not become smaller for this long. */
export const COMPACTION_SETTLES_MS = 10_000;
/** Clients that fill a database again at once: each remedy takes every member out of the client Service in turn. */
export const REMEDY_PAUSE_MS = 10 * 60_000;
/** For users to read what a remedy did. */
export const REMEDY_KEPT_SECONDS = 7 * 86_400;
/** After a remedy that failed: a member, or a snapshot that streamed from it, may have been in the way. */
export const REMEDY_RETRY_MS = 60 * 60_000;
/** After one that found the database full of keys: a user has to act. Keys that were deleted and compacted are noticed at once. */
export const REMEDY_FULL_MS = 24 * 60 * 60_000;
/** Instead of `RESYNC_MS` while a database is nearly full: etcd sends no event when it raises an alarm. */
export const NEARLY_FULL_RECHECK_MS = 30_000;
/** The trend of the space in use: compaction makes a saw of it, with a tooth of up to an hour by default. */
export const TREND_WINDOW_MS = 6 * 60 * 60_000;
export const TREND_SAMPLE_MS = 10 * 60_000;
export const TREND_MIN_MS = 30 * 60_000;
/** After each member, the next one waits for its readiness probe: that is not worth an Event. */
export const DEFRAG_QUIET_MS = 30_000;
/** The deadline of an EtcdDefrag has to be noticed without an event. */
export const DEFRAG_RECHECK_MS = 60_000;
/** etcd first waits for the transactions that are open, however small the database is. */
export const MIN_DEFRAGMENTATION_MS = 2 * 60_000;
