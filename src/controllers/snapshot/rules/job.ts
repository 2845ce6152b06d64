/** Rules about the created Job and its result. The result of its Pods is validated before it is used. */
import { parseResult, type Result } from '../../../domain/agent-result.ts';
import { endOf, isStopping, settledAt, troubleSuffix } from '../../../domain/job.ts';
import { identity } from '../../../domain/ownership.ts';
import { troubleOf } from '../../../domain/pod.ts';
import { EARLIER_JOB_POLL_MS } from '../../../domain/timing.ts';
import type { Job, Pod } from '../../../gen/kube.ts';
import { artifactOf } from '../artifact.ts';
import { AGENT } from '../build.ts';
import { isLookup } from '../lookup.ts';
import { isOfEarlierOperator, type Observed } from '../observed.ts';
import { failed, running, type SnapshotDecision } from '../status.ts';

const ended = (pod: Pod) => pod.status?.containerStatuses?.find(({ name }) => name === AGENT)?.state?.terminated;
const resultIn = (pod: Pod): Result | undefined => parseResult(ended(pod)?.message);
const failureOf = (pod: Pod): string | undefined => {
  const result = resultIn(pod);
  return result && !result.ok ? `${result.reason}: ${result.message}` : undefined;
};
const endedAs = (type: 'Complete' | 'Failed', job: Job) => {
  const end = endOf(job);
  return end?.type === type ? end : undefined;
};

/** How long the cache may still receive the status of the Job's Pods after it has finished. */
const settlesIn = (o: Observed, job: Job): number => settledAt(job) - o.now;

export const stored = (o: Observed): SnapshotDecision | undefined => {
  const done = o.pods.findLast((pod) => ended(pod)?.exitCode === 0 && (ended(pod)?.message ?? '') !== '');
  if (o.job.is !== 'ours' || !done) return undefined;
  const found = artifactOf(o.object, o.cluster, resultIn(done));
  if (found.is === 'refused')
    return failed(
      'ResultRefused',
      `the result of Pod ${identity(done).name} is rejected: ${found.message}. Check the destination before you rely on it`,
    );
  const { artifact } = found;
  return { message: `stored at ${artifact.uri}`, becomes: { phase: 'Complete', reason: 'SnapshotStored', artifact } };
};

/** The newest attempt has the reason: earlier problems may have been solved since. */
export const jobFailed = (o: Observed): SnapshotDecision | undefined => {
  if (o.job.is !== 'ours') return undefined;
  const condition = endedAs('Failed', o.job.object);
  if (!condition) return undefined;
  const last = o.pods.at(-1);
  const result = last && resultIn(last);
  if (result && !result.ok)
    return isLookup(o.job.object) && result.reason === 'ObjectNotFound'
      ? failed(
          o.earlier ? 'ResultMissing' : 'SnapshotJobLost',
          o.earlier
            ? `Job ${identity(o.earlier).name} of the Go operator is complete, but ${result.message}. Check the destination`
            : `its Job was deleted before it had stored the snapshot: ${result.message}. Create another EtcdSnapshot`,
        )
      : failed(result.reason, result.message);
  const job = `Job ${identity(o.job.object).name}`;
  const left = settlesIn(o, o.job.object);
  if (left > 0 && isStopping(o.job.object))
    return running(
      'JobRunning',
      `${job} is being stopped (${condition.reason}): waiting for its Pod to terminate`,
      left,
    );
  if (condition.reason === 'DeadlineExceeded')
    return failed(
      'TimedOut',
      `${job} took longer than ${Math.floor((o.job.object.spec?.activeDeadlineSeconds ?? 0) / 60)} minutes and was stopped${troubleSuffix(o.pods.at(-1), AGENT)}`,
    );
  if (left > 0) return running('JobRunning', `${job} has failed: waiting for the status of its Pod`, left);
  const details = [condition.reason, condition.message].filter(Boolean).join(': ');
  return failed('JobFailed', `${job} failed: ${details}${troubleSuffix(o.pods.at(-1), AGENT)}`);
};

export const resultMissing = (o: Observed): SnapshotDecision | undefined => {
  const condition = o.job.is === 'ours' ? endedAs('Complete', o.job.object) : undefined;
  if (o.job.is !== 'ours' || !condition) return undefined;
  const job = `Job ${identity(o.job.object).name}`;
  const left = settlesIn(o, o.job.object);
  if (left > 0) return running('JobRunning', `${job} is complete: waiting for the result of its Pod`, left);
  return failed(
    'ResultMissing',
    `${job} is complete, but none of its Pods reports a result: they were deleted, or are not controlled by the Job. Check the destination`,
  );
};

export const jobRuns = (o: Observed): SnapshotDecision | undefined => {
  if (o.job.is !== 'ours') return undefined;
  const job = `Job ${identity(o.job.object).name}`;
  const last = o.pods.at(-1);
  // The caches have no event of it.
  if (isOfEarlierOperator(o.job.object))
    return running('JobRunning', `${job} of the Go operator takes the snapshot`, EARLIER_JOB_POLL_MS);
  if (!last)
    return running('JobCreated', `${job} was created and has no Pod yet: if that lasts, see the Events of the Job`);
  const pod = `Pod ${identity(last).name}`;
  const failure = failureOf(last);
  if (failure !== undefined) return running('JobRunning', `${pod} has failed and may be retried: ${failure}`);
  const before = o.pods.map(failureOf).findLast((text) => text !== undefined);
  const attempts = before === undefined ? '' : `; the previous attempt failed: ${before}`;
  const trouble = troubleOf(last, AGENT);
  if (trouble !== undefined) return running('JobRunning', `${pod}: ${trouble}${attempts}`);
  return last.status?.phase === 'Running'
    ? running('JobRunning', `${pod} is taking the snapshot${attempts}`)
    : running('JobCreated', `${pod} is starting${attempts}`);
};
