/** Observes the copy of a stored snapshot: its Job, and whether the locations may be used. */
import { unlabelledReferences } from '../../access/observe-references.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { JOB_NAME_LABEL } from '../../api/names.ts';
import { podsOf } from '../../domain/job.ts';
import { holding, identity } from '../../domain/ownership.ts';
import { OPEN, storeNotPermitted, storeReferences } from '../../domain/tenancy.ts';
import { refKey } from '../../kube/object.ts';
import { jobs } from '../../kube/resources.ts';
import { present } from '../../lib/present.ts';
import { jobNameOf } from './build-copy.ts';
import type { SnapshotPorts } from './observe.ts';
import { clusterNameOf, type Observed } from './observed.ts';

export async function observeCopy(
  ports: SnapshotPorts,
  object: EtcdSnapshot,
  signal: AbortSignal,
): Promise<Pick<Observed, 'cluster' | 'copying'>> {
  const { namespace, uid } = identity(object);
  const ref = { namespace, name: jobNameOf(object) };
  const job = holding(ports.jobs.get(refKey(ref)) ?? (await ports.client.get(jobs, ref, signal)), uid);
  const pods = job.is === 'ours' ? podsOf(job.object, ports.pods.byIndex(namespace, JOB_NAME_LABEL, ref.name)) : [];
  const cluster = ports.clusters.get(refKey({ namespace, name: clusterNameOf(object) }));
  const { tenancy = OPEN } = ports;
  const { destination, copyTo, encryption } = object.spec;
  const both = { ...destination, copy: copyTo?.destination };
  const references = storeReferences(both, encryption);
  const unlabelled = await unlabelledReferences(ports.client, namespace, references, tenancy, signal);
  const [notPermitted] = [storeNotPermitted(both, tenancy) ?? [], unlabelled].flat();
  return { cluster, copying: { job, pods, ...present({ notPermitted }) } };
}
