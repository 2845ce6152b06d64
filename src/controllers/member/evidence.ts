/** Failure evidence: a member will not recover by itself. Each kind has its own grace period. */

import { DATA_INCONSISTENT, EVIDENCE, type EvidenceReason, STORAGE_ERROR } from '../../api/etcd-member.ts';
import { volumeClaimName } from '../../api/names.ts';
import { identity } from '../../domain/ownership.ts';
import { isPodOver } from '../../domain/pod.ts';
import { LOOP_WINDOW_MS, NODE_REGISTERED_WITHIN_MS, STABLE_AFTER_MS } from '../../domain/timing.ts';
import type { ContainerStatus } from '../../gen/kube.ts';
import { hasJoined, inMemory, isPvcTerminating, type Observed } from './observed.ts';
import { etcdContainer, type Finding, failedStartsOf, findingIn, lastLine, lastTermination } from './terminations.ts';

export interface Evidence {
  readonly reason: EvidenceReason;
  readonly message: string;
  /** What is left of the grace period, in which the member may still recover. */
  readonly leftMs: number;
  /** The evidence is withdrawn after this time, unless etcd exits once more. */
  readonly standsForMs?: number;
}

/** One exit can have many causes: this many exits in a row with the same finding are proof. */
const ENDS_THAT_PROVE = 3;
/** CrashLoopBackOff allows this many exits in about five minutes. */
const ENDS_OF_A_LOOP = 6;

export function evidenceOf(o: Observed): Evidence | undefined {
  return lostData(o) ?? terminatingPvc(o) ?? lostVolume(o) ?? lostNode(o) ?? invalidData(o) ?? crashLoop(o);
}

/** Evidence whose grace period is over: the cluster controller may replace the member. */
export const provenLoss = (o: Observed): Evidence | undefined => {
  const evidence = evidenceOf(o);
  return evidence && evidence.leftMs <= 0 ? evidence : undefined;
};

const now = (reason: EvidenceReason, message: string): Evidence => ({ reason, message, leftMs: 0 });

/** A joined member must never restart with an empty data directory: it would vote again without the log that it acknowledged. */
function lostData(o: Observed): Evidence | undefined {
  if (!hasJoined(o)) return undefined;
  const { name } = identity(o.member);
  const lost = (message: string): Evidence => now(EVIDENCE.dataLost, message);
  if (!inMemory(o))
    return o.volume.is === 'absent'
      ? lost(`PersistentVolumeClaim ${volumeClaimName(name)} was deleted, and its data is lost`)
      : undefined;
  const recorded = o.member.status?.podUID;
  if (o.pod.is === 'absent') return lost(`Pod ${name} was deleted, and its in-memory data is lost`);
  if (o.pod.is === 'foreign') return undefined;
  if (isPodOver(o.pod.object)) return lost(`Pod ${name} has terminated, and its in-memory data is lost`);
  // Before the member id is recorded, a later Pod of the seed may be the one that bootstrapped the cluster.
  const known = recorded !== undefined && o.member.status?.memberID !== undefined;
  return known && o.pod.object.metadata.uid !== recorded
    ? lost(`Pod ${name} was replaced, and the in-memory data of the previous Pod is lost`)
    : undefined;
}

/** No new Pod can mount a PVC that is being deleted, and the deletion cannot be taken back. A Pod that runs keeps it. */
const terminatingPvc = (o: Observed): Evidence | undefined =>
  hasJoined(o) && isPvcTerminating(o) && (o.pod.is !== 'ours' || isPodOver(o.pod.object))
    ? now(EVIDENCE.pvcTerminating, `${terminatingMessage(o)}. No Pod can mount it any more`)
    : undefined;

export const terminatingMessage = (o: Observed): string =>
  `PersistentVolumeClaim ${volumeClaimName(identity(o.member).name)} is being deleted, which cannot be undone`;

const lostVolume = (o: Observed): Evidence | undefined =>
  o.volume.is === 'ours' && o.volume.object.status?.phase === 'Lost'
    ? now(
        EVIDENCE.volumeLost,
        `PersistentVolumeClaim ${o.volume.object.metadata.name} has lost its PersistentVolume, and the data is lost`,
      )
    : undefined;

function lostNode(o: Observed): Evidence | undefined {
  const { node } = o;
  const stuck = inMemory(o) || o.volumeOnNode;
  if (node.is === 'unknown' || o.etcd.is === 'answers') return undefined; // etcd responds: only the kubelet is unreachable
  if (node.is === 'gone') {
    const lost = now(EVIDENCE.nodeLost, `node ${node.name} was deleted, and the data on it is lost`);
    if (inMemory(o)) return lost;
    return stuck ? { ...lost, leftMs: NODE_REGISTERED_WITHIN_MS - node.observedMs } : undefined;
  }
  if (node.outOfService && stuck)
    return now(EVIDENCE.nodeLost, `node ${node.name} is out of service, and the data is on it`);
  if (node.notReady === undefined) return undefined;
  const { since, observedMs } = node.notReady;
  return {
    reason: EVIDENCE.nodeLost,
    message: `node ${node.name} has been NotReady for ${o.nodeLostAfterMs / 1000} s`,
    leftMs: Math.max(since - o.now, -observedMs) + o.nodeLostAfterMs,
  };
}

/** For how long the present run is still judged by the previous exit; `undefined`: etcd does not run. */
const judgedForMs = (o: Observed, { state }: ContainerStatus): number | undefined =>
  state?.running && Date.parse(state.running.startedAt ?? '') + STABLE_AFTER_MS - o.now;

/** etcd was OOM-killed, and the present run has not lasted long enough yet to prove that it has enough memory. */
export function outOfMemory(o: Observed): { readonly standsForMs?: number } | undefined {
  const container = etcdContainer(o);
  if (!container || lastTermination(container)?.reason !== 'OOMKilled') return undefined;
  const standsForMs = judgedForMs(o, container);
  if (standsForMs === undefined) return {};
  return standsForMs > 0 ? { standsForMs } : undefined;
}

/** What the last exit of etcd proves about its data, while the present run is judged by it. */
function lastFinding(o: Observed): (Finding & { readonly standsForMs?: number }) | undefined {
  const container = etcdContainer(o);
  const end = container && lastTermination(container);
  const finding = end && findingIn(end);
  if (!finding || container.ready || o.etcd.is === 'answers') return undefined;
  const standsForMs = judgedForMs(o, container);
  if (standsForMs === undefined) return finding;
  return standsForMs > 0 ? { ...finding, standsForMs } : undefined;
}

const NO_EVIDENCE: readonly string[] = [STORAGE_ERROR, DATA_INCONSISTENT];

/** The same fatal error in three exits in a row. Before a member has joined, it is only about joining, and no evidence. */
function invalidData(o: Observed): Evidence | undefined {
  const finding = lastFinding(o);
  if (!finding || !isEvidence(finding.reason) || !hasJoined(o)) return undefined;
  if ((failedStartsOf(o)?.count ?? 0) < ENDS_THAT_PROVE) return undefined;
  return { ...finding, reason: finding.reason, leftMs: 0 };
}
const isEvidence = (reason: Finding['reason']): reason is Finding['reason'] & EvidenceReason =>
  !NO_EVIDENCE.includes(reason);

/** The data may be intact: the operator replaces and deletes nothing, and the message states what a user can do. */
export function dataTrouble(
  o: Observed,
): { readonly reason: string; readonly message: string; readonly standsForMs?: number } | undefined {
  const finding = lastFinding(o);
  if (!finding || isEvidence(finding.reason)) return undefined;
  const remedy =
    finding.reason === STORAGE_ERROR
      ? 'check the volume, its permissions and its node'
      : `it is replaced when all other voters are healthy and have the same data; compare them with etcdctl endpoint hashkv`;
  return { ...finding, message: `${finding.message}. Nothing is deleted: ${remedy}` };
}

/**
 * etcd exits again and again by itself, without serving in between. Restarts over months are no crash loop, and neither an exit
 * by a signal (an OOM kill needs more memory) nor a disk error is the fault of the data.
 */
function crashLoop(o: Observed): Evidence | undefined {
  const container = etcdContainer(o);
  const end = container && lastTermination(container);
  if (!end || container.state?.waiting?.reason !== 'CrashLoopBackOff') return undefined;
  const recent = end.finishedAt !== undefined && o.now - Date.parse(end.finishedAt) < LOOP_WINDOW_MS;
  const ends = failedStartsOf(o)?.total ?? 0;
  if (ends < ENDS_OF_A_LOOP || !recent || dataTrouble(o) !== undefined) return undefined;
  return now(
    EVIDENCE.crashLooping,
    `etcd has exited ${ends} times in a row, last with exit code ${end.exitCode}: ${lastLine(end)}`,
  );
}
