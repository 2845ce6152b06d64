/** Rules that bootstrap a cluster. They apply only while no cluster ID is recorded. */

import { defaultsOf } from '../../../api/defaults.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../../api/etcd-member.ts';
import { clusterToken, peerURL } from '../../../api/names.ts';
import { memberPeerScheme, serviceOf } from '../../../domain/member-address.ts';
import { identity } from '../../../domain/ownership.ts';
import { QUIET_START_MS, SEED_DEAD_AFTER, SEED_PROBE } from '../../../domain/timing.ts';
import { probeMs } from '../../../lib/backoff.ts';
import { iso } from '../../../lib/time.ts';
import { refTo } from '../../../runtime/plan.ts';
import { seedMember } from '../build.ts';
import { policySteps } from '../network-policy.ts';
import {
  createdAt,
  type Decided,
  etcdError,
  evidence,
  hasToken,
  isEntryOf,
  isFormed,
  isNotBeingDeleted,
  isPending,
  type MemberView,
  nameOf,
  type Observed,
  readyCondition,
  seedName,
  seedNumber,
  unreadableObjects,
  wanted,
} from '../observed.ts';
import { replacing } from '../replacement.ts';
import { chosenBy, restoreMessage } from '../restore.ts';
import { lackedFields } from '../rollout/template.ts';
import { serviceSteps } from '../services.ts';
import { progressDeadline, unapplied } from '../spec-drift.ts';
import { voterPatch } from '../voters.ts';

const isCurrent = (o: Observed, seed: MemberView): boolean => nameOf(seed) === seedName(o.cluster);

/** The seed: of the recorded number, or of an earlier one, or of the earlier operator, which has a generated name. */
const seedView = (o: Observed): MemberView | undefined =>
  o.members.find((m) => isCurrent(o, m)) ?? o.members.find((m) => m.object.spec.bootstrap === true);

/** The number of the seed that succeeds this one, recorded before this one is deleted. */
const successor = (o: Observed, seed: MemberView) => ({
  membersNamed: seedNumber(o.cluster) + (isCurrent(o, seed) ? 1 : 0),
});

/** Its successor is recorded, but its deletion was refused, or the operator was killed. */
const isSuperseded = (o: Observed, m: MemberView): boolean =>
  m.object.spec.bootstrap === true && o.cluster.status?.membersNamed !== undefined && !isCurrent(o, m);

/** Before any Pod that mounts them. */
export const waitForCredentials = (o: Observed): Decided => {
  const { blockedBy } = o.credentials.bootstrap;
  return o.members.length === 0 && blockedBy ? { message: blockedBy.message } : undefined;
};

/**
 * Bootstraps the cluster. The token, the target and the number of the seed are written to the status before any object
 * is created, and names are derived from them: after a crash the operator creates the same objects, or gets AlreadyExists.
 */
export function bootstrap(o: Observed): Decided {
  if (isFormed(o) || o.seed.is !== 'absent' || seedView(o)) return undefined;
  const [object] = unreadableObjects(o).concat(o.credentials.unreadCertificates); // it may belong to another owner
  const unread = o.credentials.bootstrap.blockedBy?.message ?? object;
  if (unread !== undefined) return { message: unread };
  const policies = o.network ? policySteps(o.cluster, o.network) : [];
  // A seed that restores would reach networks that the administrator does not allow.
  if (hasToken(o) && policies.some((step) => step.do === 'create'))
    return { message: 'waiting for the NetworkPolicies before the first member is created' };
  const { name, namespace, uid } = identity(o.cluster);
  const status = o.cluster.status ?? {};
  const token = status.clusterToken ?? clusterToken(namespace, name, uid);
  const target = wanted(o);
  const defaults = defaultsOf(status);
  const latch: EtcdClusterStatus = {
    clusterToken: token,
    ...(defaults !== undefined && { defaults }),
    ...(!status.observed && { observed: target }), // later edits are adopted by adoptTarget
    ...(status.progressDeadline === undefined && { progressDeadline: progressDeadline(o) }),
    membersNamed: seedNumber(o.cluster),
    ...(o.restoreSource && { restore: o.restoreSource }), // a member with another source gets no Pod
  };
  const seed = seedMember(o.cluster, seedName(o.cluster), target, token);
  return {
    message: `bootstrapping the cluster with member ${seed.metadata.name}`,
    latch,
    // Once the token is latched, upkeep creates the Services and the NetworkPolicies.
    steps: [...(hasToken(o) ? [] : [...serviceSteps(o), ...policies]), { do: 'create', object: seed }],
  };
}

/**
 * No write was acknowledged before the cluster ID is recorded, so a seed with an outdated spec is deleted and recreated under
 * another name. Its etcd may still run on an unreachable node: its cluster ID follows from its name, so it is another cluster.
 */
export function rebuildSeed(o: Observed): Decided {
  if (isFormed(o)) return undefined;
  const superseded = o.members.find((m) => isNotBeingDeleted(m) && isSuperseded(o, m));
  if (superseded)
    return {
      message: `member ${nameOf(superseded)} is superseded by ${seedName(o.cluster)}: deleting it`,
      steps: [{ do: 'delete', what: refTo('EtcdMember', superseded.object) }],
    };
  if (o.credentials.bootstrap.blockedBy) return undefined; // a seed that the operator cannot authenticate to may be healthy
  const seed = seedView(o);
  if (!seed || !isNotBeingDeleted(seed) || o.etcd.is === 'answers') return undefined;
  if (unapplied(o).length > 0)
    return {
      message: `the spec changed before the cluster was bootstrapped: recreating member ${nameOf(seed)}`,
      latch: successor(o, seed),
      steps: [{ do: 'delete', what: refTo('EtcdMember', seed.object) }],
    };
  return rebuildDeadSeed(o, seed);
}

/** The earlier operator creates the seed under a name that it does not know before, and writes the initialCluster after that. */
export function completeSeed(o: Observed): Decided {
  const seed = seedView(o);
  if (isFormed(o) || !seed || !isNotBeingDeleted(seed) || !isPending(seed)) return undefined;
  const { object } = seed;
  const { name, namespace } = identity(object);
  const initialCluster = `${name}=${peerURL(name, serviceOf(object), namespace, memberPeerScheme(object))}`;
  return {
    message: `writing the initialCluster of member ${name}`,
    // Another operator may have written it meanwhile.
    steps: [
      {
        do: 'patch',
        to: refTo('EtcdMember', object, { resourceVersion: true }),
        fields: { spec: { initialCluster } },
      },
    ],
  };
}

const repairsOf = ({ cluster }: Observed): number => {
  const { repair } = cluster.status ?? {};
  return repair && repair.generation === cluster.metadata.generation ? repair.count : 0;
};

const hasNameConflict = (seed: MemberView): boolean => readyCondition(seed.object)?.reason === 'NameConflict';

/**
 * How long until a seed that does not respond counts as dead; `undefined` while its etcd does not run and there is no failure
 * evidence. One whose names are taken, by the stuck Pod of a seed that a user deleted for example, never starts.
 */
function deadIn(o: Observed, seed: MemberView): number | undefined {
  const started = seed.pod.is === 'present' && !seed.pod.ready ? seed.pod.runningSince : undefined;
  const reason = evidence(seed)?.reason;
  const conflict = hasNameConflict(seed);
  if (started === undefined && reason === undefined && !conflict) return undefined;
  const hasNothing = conflict || reason === EVIDENCE.nodeLost || reason === EVIDENCE.volumeLost;
  const reads = seed.object.spec.restore !== undefined && !hasNothing;
  const timeoutMs = reads ? SEED_DEAD_AFTER.maxMs : SEED_DEAD_AFTER.firstMs * 2 ** repairsOf(o);
  const limitMs = Math.min(SEED_DEAD_AFTER.maxMs, timeoutMs);
  // By both clocks: an operator whose wall clock is ahead would delete every seed before it can respond.
  const byTimestamps = Math.max(started ?? 0, createdAt(seed)) + limitMs - o.now;
  return Math.max(byTimestamps, limitMs - (o.seedObservedMs ?? limitMs));
}

function rebuildDeadSeed(o: Observed, seed: MemberView): Decided {
  if ((deadIn(o, seed) ?? 1) > 0) return undefined;
  const failure = hasNameConflict(seed) ? readyCondition(seed.object) : evidence(seed);
  const decision = replacing(
    o,
    seed,
    `member ${nameOf(seed)} never responded${failure ? ` (${failure.reason}: ${failure.message})` : ''}: recreating it from scratch`,
    repairsOf(o) + 1,
  );
  return { ...decision, latch: { ...decision.latch, ...successor(o, seed) } };
}

/** An edit is adopted at once before the cluster has formed, and its seed may run with the previous spec. */
const editedMeanwhile = (o: Observed, seed: MemberView): EtcdClusterStatus =>
  lackedFields(seed, wanted(o)).length > 0 ? { rollout: { since: iso(o.now) } } : {};

/** Records the cluster ID once the seed responds and is the only member. Not from a seed that is being deleted: its data is deleted with it. */
export function discover(o: Observed): Decided {
  const seed = seedView(o);
  if (isFormed(o) || !seed || !isNotBeingDeleted(seed) || o.etcd.is !== 'answers') return undefined;
  const [only, ...others] = o.etcd.members;
  if (!only || others.length > 0 || !isEntryOf(only, seed.object)) {
    const names = o.etcd.members.map((m) => m.name || m.peerURLs.join()).join(', ');
    return {
      message: `etcd at the address of the seed lists other members: ${names}`,
      requeueAfterMs: SEED_PROBE.maxMs,
    };
  }
  const message = `etcd cluster ${o.etcd.clusterID} is bootstrapped`;
  return {
    message,
    latch: { clusterID: o.etcd.clusterID, ...chosenBy(o, seed), ...editedMeanwhile(o, seed) },
    steps: [voterPatch(seed, true)],
    event: { type: 'Normal', reason: 'ClusterDiscovered', note: message },
  };
}

export function waitForSeed(o: Observed): Decided {
  if (isFormed(o)) return undefined;
  const seed = seedView(o);
  if (!seed) return { message: 'waiting for the first member' };
  const name = seed.object.metadata.name;
  if (seed.object.metadata.deletionTimestamp !== undefined)
    return {
      message: `waiting for the previous member ${name} to be deleted`,
      ...(isCurrent(o, seed) && { latch: successor(o, seed) }),
    };
  if (seed.pod.is === 'absent' || seed.pod.ip === undefined) {
    const requeueAfterMs = deadIn(o, seed); // a Pod on a lost node causes no more events
    return {
      message: `waiting for the Pod of member ${name} to start${memberMessage(seed)}`,
      ...(requeueAfterMs !== undefined && { requeueAfterMs }),
    };
  }
  const restoring = restoreMessage(seed.pod.restore);
  if (restoring !== undefined) return { message: `member ${name}: ${restoring}`, requeueAfterMs: SEED_PROBE.maxMs };
  const waited = o.now - (seed.pod.startedAt ?? o.now);
  const error = etcdError(o);
  const suffix = error !== undefined && waited > QUIET_START_MS ? `: ${error}` : '';
  return {
    message: `waiting for etcd in Pod ${name} to answer${suffix}${memberMessage(seed)}`,
    requeueAfterMs: probeMs(waited, SEED_PROBE),
  };
}

/** What the member reports about its Pod: a missing image, no node with room, a volume that is not provisioned, a lost node. */
const memberMessage = (seed: MemberView): string => {
  const { reason = '', message = '' } = readyCondition(seed.object) ?? {};
  return message.includes('; ') || reason === 'NameConflict' || evidence(seed) ? ` (${message})` : '';
};
