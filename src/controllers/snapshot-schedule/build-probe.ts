/** The Job that tries the destination of a schedule. */
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { probeJobName } from '../../api/names.ts';
import { agentContainer, agentPodSpec, locationFiles } from '../../domain/agent-pod.ts';
import { MOUNTS, type ProbeTask, placeOf } from '../../domain/agent-task.ts';
import { identity } from '../../domain/ownership.ts';
import { PROBE_DEADLINE_SECONDS } from '../../domain/timing.ts';
import type { Job } from '../../gen/kube.ts';
import { type For, folderOf, jobOf } from './build.ts';

/** `location`: see `Observed`. */
export const probeName = (schedule: EtcdSnapshotSchedule, location: string): string =>
  probeJobName(identity(schedule).name, `${identity(schedule).uid}/${location}`);

export function probeJob(of: For & { readonly location: string }): Job {
  const { schedule, cluster, operatorImage, location } = of;
  const { destination, encryption } = schedule.spec;
  const task: ProbeTask = {
    task: 'probe',
    at: placeOf(destination, MOUNTS.volume),
    prefix: folderOf(schedule),
    schedule: { name: identity(schedule).name, uid: identity(schedule).uid },
    ...(encryption && { encrypted: true }),
  };
  const files = locationFiles(destination, encryption, { mountPath: MOUNTS.volume, readOnly: false });
  const container = agentContainer({ name: 'probe', image: operatorImage, task, mounts: files.mounts });
  const spec = agentPodSpec({
    cluster: cluster.spec,
    location: destination,
    containers: [container],
    volumes: files.volumes,
  });
  return jobOf(of, { name: probeName(schedule, location), run: location, seconds: PROBE_DEADLINE_SECONDS }, spec);
}
