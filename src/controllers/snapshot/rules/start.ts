/** Rules right before the Job is created: its Secrets exist, and a member responds. */

import { snapshotJobName } from '../../../api/names.ts';
import { wantsAuth } from '../../../api/tls.ts';
import { isMutual } from '../../../domain/certificate-requirements.ts';
import { identity } from '../../../domain/ownership.ts';
import { NO_MEMBER_GRACE_MS, NO_MEMBER_RETRY_MS, STORE_SECRET_POLL_MS } from '../../../domain/timing.ts';
import { snapshotJob } from '../build.ts';
import { clusterNameOf, type MemberView, membersToAsk, memberToAsk, type Observed } from '../observed.ts';
import { failed, pending, type SnapshotDecision } from '../status.ts';
import { remainingMs, waitFor } from '../waiting.ts';

/** The kubelet would keep a Pod with a missing mount in ContainerCreating until the Job's deadline. */
export const missingSecrets = (o: Observed): SnapshotDecision | undefined => {
  const [first, ...others] = o.lacks;
  if (!first) return undefined;
  const message = [first, ...others].map(({ message }) => message).join('; ');
  return waitFor(o, { meanwhile: first.reason, atLast: first.reason }, message, STORE_SECRET_POLL_MS);
};

/** The agent mounts the Secrets that the operator authenticates with. */
export const noAccess = (o: Observed): SnapshotDecision | undefined => {
  const { cluster, sources } = o;
  if (!cluster) return undefined;
  const { tls } = cluster.spec;
  const lacks = [
    ...(tls?.client && sources.ca === undefined ? ['the CA bundle'] : []),
    ...(tls && isMutual(tls) && sources.pair === undefined ? ['a client certificate'] : []),
    ...(wantsAuth(cluster.spec) && sources.root === undefined ? ['the root password'] : []),
  ];
  if (lacks.length === 0) return undefined;
  const message = `no Secret of EtcdCluster ${clusterNameOf(o.object)} has ${lacks.join(' and ')}: see its conditions CertificatesValid and AuthEnabled`;
  return waitFor(o, { meanwhile: 'SecretMissing', atLast: 'SecretMissing' }, message, STORE_SECRET_POLL_MS);
};

const summaryOf = ({ name, report }: MemberView): string => {
  if (report.is === 'unreachable') return `${name}: ${report.message}`;
  if (report.isLearner) return `${name} is a learner`;
  return report.isCorrupt ? `${name} has the alarm CORRUPT` : name;
};

export const noMember = (o: Observed): SnapshotDecision | undefined => {
  if (memberToAsk(o.members)) return undefined;
  const summary = o.members.length === 0 ? 'it has no members' : o.members.map(summaryOf).join('; ');
  const message = `no member of EtcdCluster ${clusterNameOf(o.object)} can serve a snapshot: ${summary}`;
  const left = (o.unreachableSince ?? o.now) + NO_MEMBER_GRACE_MS - o.now;
  if (left > 0) return pending('NoMemberReachable', message, Math.min(left, NO_MEMBER_RETRY_MS));
  return failed('NoMemberReachable', `${message}. Bring a member back, then create another EtcdSnapshot`);
};

/**
 * The phase is "Started" only once the Job is observed: the API server may refuse the step. The Job's name is derived from the
 * snapshot's, so after a crash it is found again, and the agent does not store an object of the same snapshot uid twice.
 */
export const start = (o: Observed): SnapshotDecision => {
  const [member, ...others] = membersToAsk(o.members);
  if (!o.cluster || !member) throw new Error('no member to take the snapshot from, which the rule noMember excludes');
  const job = snapshotJobName(identity(o.object).name);
  if (o.refusal !== undefined && remainingMs(o) <= 0)
    return failed('JobRefused', `Job ${job} could not be created for 15 minutes: ${o.refusal}`);
  const { object, cluster, sources, operatorImage: image } = o;
  const steps = [{ do: 'create', object: snapshotJob({ object, cluster, sources, image, member, others }) }] as const;
  const [reason, message] =
    o.refusal === undefined
      ? ['Starting', `creating Job ${job}, which takes the snapshot from ${member.name}`]
      : ['JobRefused', `Job ${job} cannot be created: ${o.refusal}`];
  // Recorded before the Job is created: a defragmentation of a member that streams would stop its writes until the stream ends.
  const latch = { streamsFrom: [member, ...others].map(({ name }) => name) };
  return { ...pending(reason, message, undefined, steps), latch };
};
