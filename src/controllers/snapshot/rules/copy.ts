/** The copy of a stored snapshot at a second location. Whatever happens to it, the snapshot stays complete. */
import type { EtcdSnapshotStatus } from '../../../api/etcd-snapshot.ts';
import { parseResult } from '../../../domain/agent-result.ts';
import { MOUNTS } from '../../../domain/agent-task.ts';
import { endOf, isStopping, settledAt, troubleSuffix } from '../../../domain/job.ts';
import { identity, isBeingDeleted } from '../../../domain/ownership.ts';
import { COPY_RETRY_FIRST_MS, COPY_RETRY_MAX_MS } from '../../../domain/timing.ts';
import type { Job } from '../../../gen/kube.ts';
import { iso } from '../../../lib/time.ts';
import { isAt } from '../artifact.ts';
import { COPY_AGENT, copyJob, jobNameOf } from '../build-copy.ts';
import type { CopyView, Observed } from '../observed.ts';
import type { SnapshotDecision } from '../status.ts';

type Copy = NonNullable<EtcdSnapshotStatus['copy']>;

const known = (o: Observed): Copy => o.object.status?.copy ?? {};

/** The retention has deleted the snapshot, or its bytes have changed: no attempt can succeed. */
const FINAL: readonly string[] = ['ObjectNotFound', 'SnapshotDamaged', 'ManifestDamaged'];

function failedWith(o: Observed, reason: string, message: string): SnapshotDecision {
  const attempts = (known(o).attempts ?? 0) + 1;
  const delayMs = Math.min(COPY_RETRY_MAX_MS, COPY_RETRY_FIRST_MS * 2 ** Math.min(attempts - 1, 20));
  const next = FINAL.includes(reason) ? {} : { nextAttemptTime: iso(o.now + delayMs) };
  return {
    message: `the copy failed: ${message}`,
    copy: { attempts, reason, message, ...next },
    ...('nextAttemptTime' in next && { requeueAfterMs: delayMs }),
  };
}

export const copy = (o: Observed): SnapshotDecision | undefined => {
  const { copying, object } = o;
  const to = object.spec.copyTo?.destination;
  if (!copying || !to || isBeingDeleted(object)) return undefined;
  if (copying.job.is === 'ours') return ended(o, copying, copying.job.object);
  const name = jobNameOf(object);
  if (copying.job.is === 'foreign')
    return failedWith(o, 'NameConflict', `Job ${name} exists and belongs to ${copying.job.owner}: delete it`);
  const left = Date.parse(known(o).nextAttemptTime ?? '') - o.now;
  if (left > 0) return { message: 'the copy is tried again later', requeueAfterMs: left };
  if (copying.notPermitted !== undefined) return failedWith(o, 'ReferenceNotPermitted', copying.notPermitted);
  if (!o.cluster)
    return failedWith(o, 'ClusterNotFound', 'its EtcdCluster, which says where its Job may run, does not exist');
  if (o.operatorImage === '')
    return failedWith(o, 'OperatorImageNotConfigured', 'the operator image is not configured');
  if (o.refusal !== undefined && known(o).reason === undefined)
    return failedWith(o, 'JobRefused', `Job ${name} cannot be created: ${o.refusal}`);
  const job = copyJob(object, { cluster: o.cluster, image: o.operatorImage, to });
  return { message: `creating Job ${name}, which copies the snapshot`, steps: [{ do: 'create', object: job }] };
};

function ended(o: Observed, { pods }: CopyView, job: Job): SnapshotDecision {
  const end = endOf(job);
  const name = `Job ${identity(job).name}`;
  const last = pods.at(-1);
  if (!end) return { message: `${name} copies the snapshot${troubleSuffix(last, COPY_AGENT)}` };
  const results = pods.flatMap(
    ({ status }) =>
      parseResult(status?.containerStatuses?.find((each) => each.name === COPY_AGENT)?.state?.terminated?.message) ??
      [],
  );
  const result = results.at(-1);
  if (end.type === 'Complete' && result?.ok && result.task === 'copy') {
    const { uri } = result;
    const copied = { ...o.object, spec: { ...o.object.spec, ...o.object.spec.copyTo } };
    if (!isAt(copied, uri, MOUNTS.copy))
      return failedWith(o, 'ResultRefused', `the result of ${name} is rejected: its URI is not in copyTo.destination`);
    return { message: `copied to ${uri}`, copy: { uri, time: iso(o.now) } };
  }
  if (end.type === 'Failed' && result && !result.ok) return failedWith(o, result.reason, result.message);
  const until = settledAt(job);
  if (o.now < until && (isStopping(job) || end.reason !== 'DeadlineExceeded'))
    return { message: `${name} has ended: waiting for the status of its Pod`, requeueAfterMs: until - o.now };
  if (end.reason === 'DeadlineExceeded') return failedWith(o, 'TimedOut', `${name} took too long and was stopped`);
  const details = [end.reason, end.message].filter(Boolean).join(': ');
  return end.type === 'Failed'
    ? failedWith(o, 'JobFailed', `${name} failed: ${details}${troubleSuffix(last, COPY_AGENT)}`)
    : failedWith(o, 'ResultMissing', `${name} is complete, but none of its Pods reports a result`);
}
