/** Rules about a Job that was made: what has come of it. What its Pods tell is believed only when it can be true. */
import { parseResult, type Result } from '../../../domain/agent-result.ts';
import { endOf, isStopping, settledAt, troubleSuffix } from '../../../domain/job.ts';
import { identity } from '../../../domain/ownership.ts';
import { troubleOf } from '../../../domain/pod.ts';
import type { Job, Pod } from '../../../gen/kube.ts';
import { artifactOf } from '../artifact.ts';
import { AGENT } from '../build.ts';
import type { Observed } from '../observed.ts';
import { failed, running, type Said } from '../status.ts';

const ended = (pod: Pod) => pod.status?.containerStatuses?.find(({ name }) => name === AGENT)?.state?.terminated;
const resultIn = (pod: Pod): Result | undefined => parseResult(ended(pod)?.message);
const failureOf = (pod: Pod): string | undefined => {
  const told = resultIn(pod);
  return told && !told.ok ? `${told.reason}: ${told.message}` : undefined;
};
const endedAs = (type: 'Complete' | 'Failed', job: Job) => {
  const end = endOf(job);
  return end?.type === type ? end : undefined;
};

/** Long enough after the Job has ended that its Pods would have been heard of. */
const settlesIn = (o: Observed, job: Job): number => settledAt(job) - o.now;

export const stored = (o: Observed): Said | undefined => {
  const done = o.pods.findLast((pod) => ended(pod)?.exitCode === 0 && (ended(pod)?.message ?? '') !== '');
  if (o.job.is !== 'ours' || !done) return undefined;
  const found = artifactOf(o.object, o.cluster, resultIn(done));
  if (found.is === 'refused')
    return failed(
      'ResultRefused',
      `what Pod ${identity(done).name} reports is not believed: ${found.why}. Look into the destination before you rely on it`,
    );
  const { artifact } = found;
  return {
    message: `stored at ${artifact.uri}`,
    becomes: { phase: 'Complete', reason: 'SnapshotStored', artifact },
  };
};

/** The newest attempt tells why: what was wrong with those before it may have been put right. */
export const jobFailed = (o: Observed): Said | undefined => {
  if (o.job.is !== 'ours') return undefined;
  const condition = endedAs('Failed', o.job.object);
  if (!condition) return undefined;
  const last = o.pods.at(-1);
  const told = last && resultIn(last);
  if (told && !told.ok) return failed(told.reason, told.message);
  const job = `Job ${identity(o.job.object).name}`;
  const left = settlesIn(o, o.job.object);
  if (left > 0 && isStopping(o.job.object))
    return running('JobRunning', `${job} is being stopped (${condition.reason}): waiting for its Pod to end`, left);
  if (condition.reason === 'DeadlineExceeded')
    return failed(
      'TimedOut',
      `${job} took longer than ${Math.floor((o.job.object.spec?.activeDeadlineSeconds ?? 0) / 60)} minutes and was stopped${troubleSuffix(o.pods.at(-1), AGENT)}`,
    );
  if (left > 0) return running('JobRunning', `${job} has failed: waiting to hear why`, left);
  const words = [condition.reason, condition.message].filter(Boolean).join(': ');
  return failed('JobFailed', `${job} failed: ${words}${troubleSuffix(o.pods.at(-1), AGENT)}`);
};

export const resultMissing = (o: Observed): Said | undefined => {
  const condition = o.job.is === 'ours' ? endedAs('Complete', o.job.object) : undefined;
  if (o.job.is !== 'ours' || !condition) return undefined;
  const job = `Job ${identity(o.job.object).name}`;
  const left = settlesIn(o, o.job.object);
  if (left > 0) return running('JobRunning', `${job} is complete: waiting to hear what it has stored`, left);
  return failed(
    'ResultMissing',
    `${job} is complete, and none of its Pods says what it has stored: they were deleted, or are not ours. Look into the destination`,
  );
};

export const jobRuns = (o: Observed): Said | undefined => {
  if (o.job.is !== 'ours') return undefined;
  const job = `Job ${identity(o.job.object).name}`;
  const last = o.pods.at(-1);
  if (!last) return running('JobCreated', `${job} was made and has no Pod yet: if that lasts, its Events say why`);
  const pod = `Pod ${identity(last).name}`;
  const failure = failureOf(last);
  if (failure !== undefined)
    return running('JobRunning', `${pod} has failed, and there may be another attempt: ${failure}`);
  const before = o.pods.map(failureOf).findLast((text) => text !== undefined);
  const attempts = before === undefined ? '' : `; an attempt before failed: ${before}`;
  const trouble = troubleOf(last, AGENT);
  if (trouble !== undefined) return running('JobRunning', `${pod}: ${trouble}${attempts}`);
  return last.status?.phase === 'Running'
    ? running('JobRunning', `${pod} takes the snapshot${attempts}`)
    : running('JobCreated', `${pod} is being started${attempts}`);
};
