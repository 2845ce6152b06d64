/** The objects of a schedule: EtcdSnapshots, prune Jobs and drill Jobs. */

import { DEFAULT_BUMP } from '../../api/bootstrap.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { damagedIn, type EtcdSnapshotSchedule, type Retention } from '../../api/etcd-snapshot-schedule.ts';
import type { ObjectMeta } from '../../api/meta.ts';
import {
  ABOUT_ANNOTATION,
  agentLabels,
  drillJobName,
  etcdSnapshotSchedules,
  pruneJobName,
  slotOf,
} from '../../api/names.ts';
import { etcdImageOf, type ImagePolicy } from '../../api/security.ts';
import type { SnapshotLocation } from '../../api/snapshot-location.ts';
import {
  agentBesideEtcd,
  agentContainer,
  agentJob,
  agentPodSpec,
  locationFiles,
  memoryLimit,
  resourcesOf,
} from '../../domain/agent-pod.ts';
import {
  type DrillTask,
  joined,
  keyOf,
  layoutFolder,
  MOUNTS,
  objectKeyOf,
  type PruneTask,
  placeOf,
} from '../../domain/agent-task.ts';
import { identity, ownedBy } from '../../domain/ownership.ts';
import { bytesInOneFolder } from '../../domain/restore-space.ts';
import { scheduleLabels } from '../../domain/scheduled-snapshot.ts';
import { DRILL_DEADLINE_SECONDS, PRUNE_DEADLINE_SECONDS, SCHEDULE_JOB_KEPT_SECONDS } from '../../domain/timing.ts';
import type { Job, PodSpec, ResourceRequirements } from '../../gen/kube.ts';
import { hash32 } from '../../lib/hash.ts';
import { present } from '../../lib/present.ts';
import { quantityBytes } from '../../lib/quantity.ts';
import { SUCCESSFUL_HISTORY } from './observed.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
/** The kubelet measures a volume from time to time: the agent stays below its limit. */
const SCRATCH_MARGIN_BYTES = 64 * MIB;

/** Of the node's disk: what the drill of this snapshot needs, unless the schedule states an amount. Unknown for snapshots of an earlier operator. */
function scratchSize({ spec }: EtcdSnapshotSchedule, databaseBytes: number | undefined): string | undefined {
  const needed = databaseBytes && bytesInOneFolder(databaseBytes) + 2 * SCRATCH_MARGIN_BYTES;
  return spec.drill?.storageSize ?? (needed === undefined ? undefined : `${Math.ceil(needed / MIB)}Mi`);
}

/**
 * etcd keeps an index of all keys in memory and maps the whole database. Scratch space is requested, so that the scheduler does not
 * place a drill beside members on a node whose disk it would fill.
 */
function drillResources(
  { spec }: EtcdSnapshotSchedule,
  databaseBytes = 0,
  scratch: string | undefined,
): ResourceRequirements {
  const memory = memoryLimit(2 * GIB, GIB + 2 * databaseBytes);
  const requests = { cpu: '100m', memory: '128Mi', ...(scratch !== undefined && { 'ephemeral-storage': scratch }) };
  return resourcesOf(spec.drill?.resources, { requests, limits: { memory } });
}

const belongingTo = (schedule: EtcdSnapshotSchedule): Pick<ObjectMeta, 'namespace' | 'ownerReferences'> => ({
  namespace: identity(schedule).namespace,
  ownerReferences: ownedBy(etcdSnapshotSchedules, schedule),
});

export interface For {
  readonly schedule: EtcdSnapshotSchedule;
  readonly cluster: EtcdCluster;
  readonly operatorImage: string;
}

export const jobOf = (
  { schedule, cluster }: For,
  { name, run, seconds }: { readonly name: string; readonly run: string; readonly seconds: number },
  spec: PodSpec,
): Job => {
  const labels = { ...agentLabels(identity(cluster).name), ...scheduleLabels(schedule) };
  const metadata = { name, labels, annotations: { [ABOUT_ANNOTATION]: run }, ...belongingTo(schedule) };
  return agentJob({ metadata, seconds, keptSeconds: SCHEDULE_JOB_KEPT_SECONDS, spec });
};

/** Identifies the retention and where it applies, so that a change of either prunes again. */
export const policyOf = ({ spec }: EtcdSnapshotSchedule): string =>
  hash32(JSON.stringify([spec.retention, spec.destination, ...(spec.layout === 'ByCluster' ? [spec.layout] : [])]))
    .toString(16)
    .padStart(8, '0');

/** The same for the copies. */
export const copyPolicyOf = ({ spec }: EtcdSnapshotSchedule): string =>
  hash32(JSON.stringify([spec.copyTo, spec.layout]))
    .toString(16)
    .padStart(8, '0');

const copyPruneName = (schedule: EtcdSnapshotSchedule, run: string): string =>
  pruneJobName(identity(schedule).name, `${identity(schedule).uid}/${run}/copies/${copyPolicyOf(schedule)}`);

/** Snapshots that a scrub found damaged. */
export const damagedOf = ({ status = {} }: EtcdSnapshotSchedule): Pick<PruneTask, 'damaged'> => {
  const damaged = damagedIn(status).map(({ name, uid }) => ({ name, ...present({ uid }) }));
  return damaged.length === 0 ? {} : { damaged };
};

const pruneName = (schedule: EtcdSnapshotSchedule, run: string): string =>
  pruneJobName(identity(schedule).name, `${identity(schedule).uid}/${run}/${policyOf(schedule)}`);

function restoredOf({ status }: EtcdSnapshotSchedule): Pick<PruneTask, 'restored'> {
  const { name, uid } = status?.lastRestored ?? {};
  return name === undefined ? {} : { restored: { name, ...(uid !== undefined && { uid }) } };
}

/** The task is an environment variable: not all that a history limit may keep. */
const MAX_RECORDED = 20;

/**
 * By name, and so by their minute. Beside the newest ones, which the history limit keeps, there may be some that are kept because
 * a drill proved them or their copy is pending: between these, most are no longer recorded.
 */
export function recordedOf(
  { spec, status, ...schedule }: EtcdSnapshotSchedule,
  runs: readonly EtcdSnapshot[],
): Pick<PruneTask, 'recorded' | 'allRecordedFrom'> {
  const last = status?.lastSuccessful;
  const all = [
    ...(last && !runs.some((run) => identity(run).name === last.name) ? [{ ...last, uid: undefined }] : []),
    ...runs.map((run) => ({ ...identity(run), artifact: run.status?.artifact })),
  ];
  const recorded = all
    .flatMap(({ name, uid, artifact }) => {
      const [, sha256] = /^sha256:([0-9a-f]{64})$/.exec(artifact?.checksum ?? '') ?? [];
      return sha256 === undefined ? [] : [{ name, ...present({ uid }), sha256 }];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  if (recorded.length === 0) return {};
  const limit = Math.max(1, spec.successfulSnapshotsHistoryLimit ?? SUCCESSFUL_HISTORY);
  const oldest = recorded.slice(-Math.min(limit, MAX_RECORDED))[0];
  const allRecordedFrom = slotOf(identity(schedule).name, oldest?.name ?? '');
  return { recorded: recorded.slice(-MAX_RECORDED), ...present({ allRecordedFrom }) };
}

/** Where the snapshots of a schedule are stored. */
export const folderOf = (
  { spec, ...schedule }: EtcdSnapshotSchedule,
  destination: SnapshotLocation = spec.destination,
): string => joined(keyOf(destination), layoutFolder(spec, identity(schedule).namespace));

/** Removes snapshots beyond the retention from the store; one Job for each snapshot and each retention. */
export function pruneJob(
  of: For & {
    readonly run: string;
    /** Stored snapshots of the schedule. */
    readonly runs: readonly EtcdSnapshot[];
    readonly retention: Retention;
    /** The copies, and not the snapshots themselves. */
    readonly ofCopies?: boolean;
    readonly now: number;
  },
): Job {
  const { schedule, cluster, operatorImage, run, runs, retention, ofCopies = false, now } = of;
  const { encryption, copyTo } = schedule.spec;
  const destination = (ofCopies ? copyTo?.destination : undefined) ?? schedule.spec.destination;
  const task: PruneTask = {
    task: 'prune',
    at: placeOf(destination, MOUNTS.volume),
    prefix: folderOf(schedule, destination),
    cluster: { name: identity(cluster).name, uid: identity(cluster).uid },
    schedule: { name: identity(schedule).name, uid: identity(schedule).uid },
    ...(encryption && { encrypted: true }),
    retention,
    ...restoredOf(schedule),
    ...recordedOf(schedule, runs),
    ...(!ofCopies && damagedOf(schedule)),
    now,
  };
  // Manifests are not encrypted, and are authenticated with the key.
  const files = locationFiles(destination, encryption, { mountPath: MOUNTS.volume, readOnly: false });
  const container = agentContainer({ name: 'prune', image: operatorImage, task, mounts: files.mounts });
  const spec = agentPodSpec({
    cluster: cluster.spec,
    location: destination,
    containers: [container],
    volumes: files.volumes,
  });
  const name = ofCopies ? copyPruneName(schedule, run) : pruneName(schedule, run);
  return jobOf(of, { name, run, seconds: PRUNE_DEADLINE_SECONDS }, spec);
}

const drillName = (schedule: EtcdSnapshotSchedule, run: string): string =>
  drillJobName(identity(schedule).name, `${identity(schedule).uid}/${run}`);

/** The restore drill: restores a stored snapshot into an isolated etcd of the cluster's version, and compares; one Job for each snapshot. */
export function drillJob(of: For & { readonly run: EtcdSnapshot; readonly images: ImagePolicy }): Job {
  const { schedule, cluster, operatorImage, run, images } = of;
  const { destination, encryption } = run.spec;
  const databaseBytes = run.status?.artifact?.databaseBytes;
  const scratch = scratchSize(schedule, databaseBytes);
  const task: DrillTask = {
    task: 'drill',
    from: placeOf(destination, MOUNTS.source),
    key: objectKeyOf(run.spec, identity(run)),
    encrypted: encryption !== undefined,
    version: cluster.spec.version,
    bumpRevision: DEFAULT_BUMP,
    ...(scratch !== undefined && { limitBytes: Math.max(0, quantityBytes(scratch) - SCRATCH_MARGIN_BYTES) }),
  };
  const files = locationFiles(destination, encryption, { mountPath: MOUNTS.source, readOnly: true });
  const room = { name: 'room', mountPath: MOUNTS.scratch };
  const { install, agent, volume } = agentBesideEtcd({
    name: 'drill',
    operatorImage,
    etcdImage: etcdImageOf(cluster.spec, images.repository),
    task,
    mounts: [room, ...files.mounts],
    resources: drillResources(schedule, databaseBytes, scratch),
  });
  const spec = agentPodSpec({
    cluster: cluster.spec,
    location: destination,
    initContainers: [install],
    containers: [agent],
    volumes: [
      volume,
      { name: 'room', emptyDir: { ...(scratch !== undefined && { sizeLimit: scratch }) } },
      ...files.volumes,
    ],
  });
  const about = identity(run).name;
  return jobOf(of, { name: drillName(schedule, about), run: about, seconds: DRILL_DEADLINE_SECONDS }, spec);
}

/** The names of the Jobs of a snapshot. */
export const jobNames = (schedule: EtcdSnapshotSchedule, run: string) => ({
  prune: pruneName(schedule, run),
  drill: drillName(schedule, run),
  copies: copyPruneName(schedule, run),
});
