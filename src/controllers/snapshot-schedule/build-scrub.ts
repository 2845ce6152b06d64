/** The Job of a scrub: reads one stored snapshot of the schedule from end to end. */
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { scrubJobName } from '../../api/names.ts';
import { agentContainer, agentPodSpec, locationFiles } from '../../domain/agent-pod.ts';
import { MOUNTS, objectKeyOf, placeOf, type ScrubTask } from '../../domain/agent-task.ts';
import { identity } from '../../domain/ownership.ts';
import { SCRUB_BYTES_PER_SECOND, SCRUB_DEADLINE_SECONDS } from '../../domain/timing.ts';
import type { Job } from '../../gen/kube.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import { present } from '../../lib/present.ts';
import { damagedOf, type For, folderOf, jobOf, recordedOf } from './build.ts';

/** `due`: status.nextScrubTime. */
export const scrubName = (schedule: EtcdSnapshotSchedule, due: string): string =>
  scrubJobName(identity(schedule).name, `${identity(schedule).uid}/${due}`);

/** Drills verify a snapshot as well. */
function verifiedOf({ status = {} }: EtcdSnapshotSchedule): ScrubTask['verified'] {
  const { scrubbed = [], lastRestored } = status;
  return [...scrubbed, ...(lastRestored ? [lastRestored] : [])].map(({ name, uid, time }) => ({
    name,
    ...present({ uid }),
    time: Date.parse(time),
  }));
}

/** Unless the destination was changed since: nothing was stored at the new one yet. */
function newestOf(
  { spec, status = {} }: EtcdSnapshotSchedule,
  runs: readonly EtcdSnapshot[],
): Pick<ScrubTask, 'newest'> {
  const run = runs.find((each) => identity(each).name === status.lastSuccessful?.name);
  if (!run || !sameJson([run.spec.destination, run.spec.layout], [spec.destination, spec.layout])) return {};
  const { name, uid } = identity(run);
  return { newest: { name, uid, key: objectKeyOf(run.spec, identity(run)) } };
}

export function scrubJob(
  of: For & {
    readonly due: string;
    /** Stored snapshots of the schedule. */
    readonly runs: readonly EtcdSnapshot[];
    readonly now: number;
  },
): Job {
  const { schedule, cluster, operatorImage, due, runs, now } = of;
  const { destination, encryption } = schedule.spec;
  const task: ScrubTask = {
    task: 'scrub',
    at: placeOf(destination, MOUNTS.source),
    prefix: folderOf(schedule),
    cluster: { name: identity(cluster).name, uid: identity(cluster).uid },
    schedule: { name: identity(schedule).name, uid: identity(schedule).uid },
    ...(encryption && { encrypted: true }),
    ...recordedOf(schedule, runs),
    ...damagedOf(schedule),
    ...newestOf(schedule, runs),
    verified: verifiedOf(schedule),
    bytesPerSecond: SCRUB_BYTES_PER_SECOND,
    now,
  };
  const files = locationFiles(destination, encryption, { mountPath: MOUNTS.source, readOnly: true });
  const container = agentContainer({ name: 'scrub', image: operatorImage, task, mounts: files.mounts });
  const spec = agentPodSpec({
    cluster: cluster.spec,
    location: destination,
    containers: [container],
    volumes: files.volumes,
  });
  return jobOf(of, { name: scrubName(schedule, due), run: due, seconds: SCRUB_DEADLINE_SECONDS }, spec);
}
