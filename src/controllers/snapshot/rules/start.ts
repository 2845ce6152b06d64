/** Rules that stand right before a Job is made: everything that it needs is there, and somebody answers. */

import { snapshotJobName } from '../../../api/names.ts';
import { wantsAuth } from '../../../api/tls.ts';
import { isMutual } from '../../../domain/certificate-requirements.ts';
import { identity } from '../../../domain/ownership.ts';
import { snapshotJob } from '../build.ts';
import { clusterNameOf, type MemberView, memberToAsk, type Observed } from '../observed.ts';
import { failed, pending, type Said } from '../status.ts';
import { remainingMs, waitFor } from '../waiting.ts';

/** Nobody tells when a Secret is made. */
const LOOK_AGAIN_MS = 10_000;
/** An election, a Pod that is started again: a member is back before this is over. */
const GRACE_MS = 30_000;
const ASK_AGAIN_MS = 2_000;

/** A Pod that mounts what is not there waits in silence until its time is over. */
export const missingSecrets = (o: Observed): Said | undefined => {
  const [first, ...others] = o.lacks;
  if (!first) return undefined;
  const why = [first, ...others].map(({ message }) => message).join('; ');
  return waitFor(o, { meanwhile: first.reason, atLast: first.reason }, why, LOOK_AGAIN_MS);
};

/** What the operator itself comes in with must be in Secrets that can be mounted. */
export const noAccess = (o: Observed): Said | undefined => {
  const { cluster, sources } = o;
  if (!cluster) return undefined;
  const { tls } = cluster.spec;
  const lacks = [
    ...(tls?.client && sources.ca === undefined ? ['whom to trust'] : []),
    ...(tls && isMutual(tls) && sources.pair === undefined ? ['a certificate to show'] : []),
    ...(wantsAuth(cluster.spec) && sources.root === undefined ? ['the password of root'] : []),
  ];
  if (lacks.length === 0) return undefined;
  const why = `no Secret of EtcdCluster ${clusterNameOf(o.object)} has ${lacks.join(' and ')}: see its conditions CertificatesValid and AuthEnabled`;
  return waitFor(o, { meanwhile: 'SecretMissing', atLast: 'SecretMissing' }, why, LOOK_AGAIN_MS);
};

const seenAs = ({ name, says }: MemberView): string => {
  if (says.is === 'silent') return `${name}: ${says.why}`;
  if (says.isLearner) return `${name} is a learner`;
  return says.isCorrupt ? `${name} has the alarm CORRUPT` : name;
};

export const noMember = (o: Observed): Said | undefined => {
  if (memberToAsk(o.members)) return undefined;
  const seen = o.members.length === 0 ? 'there is none' : o.members.map(seenAs).join('; ');
  const why = `no member of EtcdCluster ${clusterNameOf(o.object)} can be asked for a snapshot: ${seen}`;
  const left = (o.silentSince ?? o.now) + GRACE_MS - o.now;
  if (left > 0) return pending('NoMemberReachable', why, Math.min(left, ASK_AGAIN_MS));
  return failed('NoMemberReachable', `${why}. Bring one back, and create another EtcdSnapshot`);
};

/**
 * Says "Started" only when the Job is seen: the step may be refused. A crash in between is nothing: the Job has a name that
 * follows from the snapshot's, so it is found again, and what was stored under the snapshot's uid is not stored twice.
 */
export const start = (o: Observed): Said => {
  const member = memberToAsk(o.members);
  if (!o.cluster || !member) throw new Error('rules before this one see to it that there is a member to ask');
  const job = snapshotJobName(identity(o.object).name);
  if (o.refusal !== undefined && remainingMs(o) <= 0)
    return failed('JobRefused', `Job ${job} cannot be made, for 15 minutes: ${o.refusal}`);
  const { object, cluster, sources, operatorImage: image } = o;
  const steps = [{ do: 'create', object: snapshotJob({ object, cluster, sources, image, member }) }] as const;
  const [reason, why] =
    o.refusal === undefined
      ? ['Starting', `making Job ${job}, which takes the snapshot from ${member.name}`]
      : ['JobRefused', `Job ${job} cannot be made: ${o.refusal}`];
  return pending(reason, why, undefined, steps);
};
