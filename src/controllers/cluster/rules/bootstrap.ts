/** Rules that lead from nothing to a cluster with an id. They apply only while no id is recorded. */

import { defaultsOf } from '../../../api/defaults.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../../api/etcd-member.ts';
import { clusterToken } from '../../../api/names.ts';
import { identity } from '../../../domain/ownership.ts';
import { probeMs } from '../../../lib/backoff.ts';
import { refTo } from '../../../runtime/plan.ts';
import { seedMember } from '../build.ts';
import { bundleLatch, unreadableSecrets } from '../credentials/certificates.ts';
import {
  createdAt,
  type Decided,
  evidence,
  isEntryOf,
  isFormed,
  isNotBeingDeleted,
  type MemberView,
  nameOf,
  type Observed,
  readyCondition,
  SEED,
  seedName,
  unreadableObjects,
  wanted,
} from '../observed.ts';
import { replacing } from '../replacement.ts';
import { restoreMessage } from '../restore.ts';
import { serviceSteps } from '../services.ts';
import { progressDeadline, unapplied } from '../spec-drift.ts';

/** etcd is up within a second of its Pod's address, so it is asked often at first; a broken image may take hours. */
const PROBE = { firstMs: 100, maxMs: 10_000 };
/** That nobody listens yet is normal for this long, and not worth telling. */
const PATIENCE_MS = 5_000;

/** The member of the first name, or the one that the earlier operator began with, under a name of the API server's choice. */
const seedView = (o: Observed): MemberView | undefined =>
  o.members.find((m) => m.object.metadata.name === seedName(o.cluster)) ??
  o.members.find((m) => m.object.spec.bootstrap === true);

/**
 * Begins the cluster. The token, the target and the right to the first name are durable before anything is made, and the
 * name follows from them: whoever comes here again after a crash makes the same objects, or is told that they exist.
 */
export function bootstrap(o: Observed): Decided {
  if (isFormed(o) || o.seed.is !== 'absent' || seedView(o)) return undefined;
  const [unread] = [unreadableSecrets(o) ?? [], unreadableObjects(o)].flat(); // it may belong to another owner
  if (unread !== undefined) return { message: unread };
  const { name, namespace, uid } = identity(o.cluster);
  const status = o.cluster.status ?? {};
  const token = status.clusterToken ?? clusterToken(namespace, name, uid);
  const target = wanted(o);
  const defaults = defaultsOf(status);
  const latch: EtcdClusterStatus = {
    clusterToken: token,
    ...(defaults !== undefined && { defaults }),
    observed: target,
    ...bundleLatch(o),
    membersNamed: Math.max(status.membersNamed ?? 0, SEED),
    progressDeadline: status.progressDeadline ?? progressDeadline(o),
  };
  const seed = seedMember(o.cluster, seedName(o.cluster), target, token);
  return {
    message: `beginning the cluster with member ${seed.metadata.name}`,
    latch,
    steps: [...serviceSteps(o), { do: 'create', object: seed }],
  };
}

/** Nothing was ever acknowledged before the id is recorded, so a seed that was made from an older spec is simply made again. */
export function rebuildSeed(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined; // a seed that the operator cannot authenticate to is not a dead one
  const seed = seedView(o);
  if (isFormed(o) || !seed || !isNotBeingDeleted(seed) || o.etcd.is === 'answers') return undefined;
  if (unapplied(o).length > 0)
    return {
      message: `the spec was edited before the cluster existed: making member ${nameOf(seed)} again`,
      steps: [{ do: 'delete', what: refTo('EtcdMember', seed.object) }],
    };
  return rebuildDeadSeed(o, seed);
}

/**
 * A seed that dies in its very first start can leave a data directory that never elects a leader. One with the data of a
 * snapshot may read it for minutes before it answers, and would have to fetch it all again.
 */
const DEAD_AFTER = { firstMs: 60_000, maxMs: 15 * 60_000 };

const repairsOf = ({ cluster }: Observed): number => {
  const { repair } = cluster.status ?? {};
  return repair && repair.generation === cluster.metadata.generation ? repair.count : 0;
};

/** How long until a seed that does not answer counts as dead; `undefined` when nothing says that it will. */
function deadIn(o: Observed, seed: MemberView): number | undefined {
  const began = seed.pod.is === 'present' && !seed.pod.ready ? seed.pod.runningSince : undefined;
  const reason = evidence(seed)?.reason;
  if (began === undefined && reason === undefined) return undefined;
  const hasNothing = reason === EVIDENCE.nodeLost || reason === EVIDENCE.volumeLost;
  const reads = seed.object.spec.restore !== undefined && !hasNothing;
  const patience = reads ? DEAD_AFTER.maxMs : DEAD_AFTER.firstMs * 2 ** repairsOf(o);
  return Math.max(began ?? 0, createdAt(seed)) + Math.min(DEAD_AFTER.maxMs, patience) - o.now;
}

function rebuildDeadSeed(o: Observed, seed: MemberView): Decided {
  if ((deadIn(o, seed) ?? 1) > 0) return undefined;
  const trouble = evidence(seed);
  return replacing(
    o,
    seed,
    `member ${nameOf(seed)} never answered${trouble ? ` (${trouble.reason}: ${trouble.message})` : ''}: making it again from nothing`,
    repairsOf(o) + 1,
  );
}

/** The seed answers, and it is alone: its id is the cluster's id from now on. Not that of one that is going: it takes its data along. */
export function discover(o: Observed): Decided {
  const seed = seedView(o);
  if (isFormed(o) || !seed || !isNotBeingDeleted(seed) || o.etcd.is !== 'answers') return undefined;
  const [only, ...others] = o.etcd.members;
  if (!only || others.length > 0 || !isEntryOf(only, seed.object)) {
    const names = o.etcd.members.map((m) => m.name || m.peerURLs.join()).join(', ');
    return {
      message: `the etcd at the seed's address has other members than the seed: ${names}`,
      requeueAfterMs: PROBE.maxMs,
    };
  }
  return {
    message: `etcd cluster ${o.etcd.clusterID} answers`,
    latch: { clusterID: o.etcd.clusterID },
    steps: [
      {
        do: 'patch',
        to: refTo('EtcdMember', seed.object),
        subresource: 'status',
        fields: { status: { isVoter: true } },
      },
    ],
    event: { type: 'Normal', reason: 'ClusterDiscovered', note: `etcd cluster ${o.etcd.clusterID} answers` },
  };
}

export function waitForSeed(o: Observed): Decided {
  if (isFormed(o)) return undefined;
  const seed = seedView(o);
  if (!seed) return { message: 'waiting for the first member' };
  const name = seed.object.metadata.name;
  if (seed.object.metadata.deletionTimestamp !== undefined)
    return { message: `waiting for the earlier member ${name} to be gone` };
  if (seed.pod.is === 'absent' || seed.pod.ip === undefined) {
    const wakeAfter = deadIn(o, seed); // a Pod that waits for a node that is gone tells nothing more
    return {
      message: `waiting for the Pod of member ${name} to start${said(seed)}`,
      ...(wakeAfter !== undefined && { requeueAfterMs: wakeAfter }),
    };
  }
  const restoring = restoreMessage(seed.pod.restore);
  if (restoring !== undefined) return { message: `member ${name}: ${restoring}`, requeueAfterMs: PROBE.maxMs };
  const waited = o.now - (seed.pod.startedAt ?? o.now);
  const error = o.etcd.is === 'silent' && waited > PATIENCE_MS ? `: ${o.etcd.why}` : '';
  return {
    message: `waiting for etcd in Pod ${name} to answer${error}${said(seed)}`,
    requeueAfterMs: probeMs(waited, PROBE),
  };
}

/** What the member itself says about its Pod: a missing image, no node with room, a volume that is not provisioned, a lost node. */
const said = (seed: MemberView): string => {
  const { reason = '', message = '' } = readyCondition(seed.object) ?? {};
  return message.includes('; ') || reason === 'NameConflict' || evidence(seed) ? ` (${message})` : '';
};
