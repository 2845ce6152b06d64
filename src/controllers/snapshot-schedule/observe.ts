/** Observes one schedule from the caches; only whether the name of the next snapshot is free comes from the API server. */
import { unlabelledReferences } from '../../access/observe-references.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { JOB_NAME_LABEL, SCHEDULE_LABEL, scheduledSnapshotName } from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import type { SnapshotLocation } from '../../api/snapshot-location.ts';
import { podsOf } from '../../domain/job.ts';
import { controllerOf, holding, identity } from '../../domain/ownership.ts';
import { OPEN, type References, storeNotPermitted, storeReferences, type Tenancy } from '../../domain/tenancy.ts';
import type { Job, Pod } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { type KubeObject, type Resource, refKey } from '../../kube/object.ts';
import { persistentVolumeClaims, secrets } from '../../kube/resources.ts';
import type { Store } from '../../kube/store.ts';
import { tryGet } from '../../kube/try-get.ts';
import { present } from '../../lib/present.ts';
import { locationHash } from './location.ts';
import { type Observed, type OwnedJob } from './observed.ts';
import { schedulingOf } from './scheduling.ts';

export interface SchedulePorts {
  readonly client: Client;
  readonly now: () => number;
  readonly schedules: Store<EtcdSnapshotSchedule>;
  readonly clusters: Store<EtcdCluster>;
  /** Indexed by their schedule. */
  readonly snapshots: Store<EtcdSnapshot>;
  /** Indexed by their schedule. */
  readonly jobs: Store<Job>;
  /** Indexed by the name of their Job. */
  readonly pods: Store<Pod>;
  readonly operatorImage: string;
  readonly images: ImagePolicy;
  /** Absent: the defaults. */
  readonly tenancy?: Tenancy;
}

export async function observe(
  ports: SchedulePorts,
  key: string,
  signal: AbortSignal,
  refusal: string | undefined,
): Promise<Observed | undefined> {
  const object = ports.schedules.get(key);
  if (!object) return undefined;
  const { name, namespace, uid } = identity(object);
  const cluster = ports.clusters.get(refKey({ namespace, name: object.spec.clusterRef.name ?? '' }));
  const isOurs = (thing: EtcdSnapshot | Job): boolean => controllerOf(thing)?.uid === uid;
  const { tenancy = OPEN } = ports;
  const { destination, copyTo, encryption } = object.spec;
  const references = storeReferences(destination, encryption);
  const refused = async (at: SnapshotLocation, named: References): Promise<string | undefined> => {
    const unlabelled = await unlabelledReferences(ports.client, namespace, named, tenancy, signal);
    return [storeNotPermitted(at, tenancy) ?? [], unlabelled].flat()[0];
  };
  const notPermitted = await refused(destination, references);
  const second = copyTo?.destination;
  const copiesNotPermitted = second && (await refused(second, storeReferences(second, encryption)));
  const location = await locationOf(ports.client, object, references, signal);
  const base: Observed = {
    ...present({ notPermitted, copiesNotPermitted, location }),
    now: ports.now(),
    refusal,
    object,
    cluster,
    runs: ports.snapshots.byIndex(namespace, SCHEDULE_LABEL, name).filter(isOurs),
    due: { is: 'absent' },
    jobs: ports.jobs
      .byIndex(namespace, SCHEDULE_LABEL, name)
      .filter(isOurs)
      .map((job) => ownedJobsOf(ports, job)),
    operatorImage: ports.operatorImage,
    images: ports.images,
  };
  const scheduling = schedulingOf(base);
  if (scheduling.is !== 'due') return base;
  // The API server is asked whether the name is free: a user may have removed the label, and the cache may be stale.
  const ref = { namespace, name: scheduledSnapshotName(name, scheduling.due.slot) };
  const taken = ports.snapshots.get(refKey(ref)) ?? (await ports.client.get(ports.snapshots.resource, ref, signal));
  return { ...base, due: holding(taken, uid) };
}

/** `undefined`: the API server does not say. One that does not exist is a version as well: the probe reports what is missing. */
async function locationOf(
  client: Client,
  schedule: EtcdSnapshotSchedule,
  references: References,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace } = identity(schedule);
  const read = (resource: Resource) => (name: string) =>
    tryGet<KubeObject>(client, resource, { namespace, name }, signal);
  const [held, claims] = await Promise.all([
    Promise.all(references.secrets.map(read(secrets))),
    Promise.all(references.claims.map(read(persistentVolumeClaims))),
  ]);
  const versions = [
    ...held.map((each) =>
      each.ok ? `${each.object?.metadata.uid}/${each.object?.metadata.resourceVersion}` : undefined,
    ),
    ...claims.map((each) => (each.ok ? `${each.object?.metadata.uid}` : undefined)), // its version changes all the time
  ];
  const known = versions.filter((version) => version !== undefined);
  return known.length === versions.length ? locationHash(schedule, known) : undefined;
}

const ownedJobsOf = ({ pods }: SchedulePorts, job: Job): OwnedJob => {
  const { namespace = '', name = '' } = job.metadata;
  return { job, pods: podsOf(job, pods.byIndex(namespace, JOB_NAME_LABEL, name)) };
};
