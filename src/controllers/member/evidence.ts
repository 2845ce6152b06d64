/** Evidence that a member will not come back by itself, each class with its own time of grace. */

import { DATA_INCONSISTENT, EVIDENCE, type EvidenceReason, STORAGE_ERROR } from '../../api/etcd-member.ts';
import { volumeClaimName } from '../../api/names.ts';
import { identity } from '../../domain/ownership.ts';
import { isPodOver } from '../../domain/pod.ts';
import type { ContainerStatus } from '../../gen/kube.ts';
import { hasJoined, inMemory, type Observed } from './observed.ts';
import {
  etcdContainer,
  type Finding,
  failedStartsOf,
  findingIn,
  LOOP_WINDOW_MS,
  lastLine,
  lastTermination,
} from './terminations.ts';

export interface Evidence {
  readonly reason: EvidenceReason;
  readonly message: string;
  /** How much of its grace is left: until then it may still come to nothing. */
  readonly leftMs: number;
  /** It is withdrawn after this time, unless etcd ends once more. */
  readonly standsForMs?: number;
}

/** One end can have many causes: the same finding in as many ends in a row is proof. */
const ENDS_THAT_PROVE = 3;
/** An etcd that cannot use its data directory has mostly ended before: one that goes on is not judged by its last end. */
const GOES_ON_AFTER_MS = 60_000;
/** As many ends as Kubernetes lets happen in about five minutes. */
const ENDS_OF_A_LOOP = 6;

export function evidenceOf(o: Observed): Evidence | undefined {
  return lostData(o) ?? lostVolume(o) ?? lostNode(o) ?? invalidData(o) ?? crashLoop(o);
}

/** Evidence whose grace is over: the cluster may act on it. */
export const provenLoss = (o: Observed): Evidence | undefined => {
  const evidence = evidenceOf(o);
  return evidence && evidence.leftMs <= 0 ? evidence : undefined;
};

const now = (reason: EvidenceReason, message: string): Evidence => ({ reason, message, leftMs: 0 });

/** An empty data directory must never come back under the name of a member that had joined. */
function lostData(o: Observed): Evidence | undefined {
  if (!hasJoined(o)) return undefined;
  const { name } = identity(o.member);
  const lost = (message: string): Evidence => now(EVIDENCE.dataLost, message);
  if (!inMemory(o))
    return o.volume.is === 'absent'
      ? lost(`PersistentVolumeClaim ${volumeClaimName(name)} is gone, and the data with it`)
      : undefined;
  const recorded = o.member.status?.podUID;
  if (o.pod.is === 'absent') return lost(`Pod ${name} is gone, and the data in its memory with it`);
  if (o.pod.is === 'foreign') return undefined;
  if (isPodOver(o.pod.object)) return lost(`Pod ${name} has ended, and the data in its memory is gone`);
  // Before its id is recorded, a later Pod of the seed may be the one in which the cluster was begun.
  const known = recorded !== undefined && o.member.status?.memberID !== undefined;
  return known && o.pod.object.metadata.uid !== recorded
    ? lost(`Pod ${name} was replaced, and the data in the memory of the old one is gone`)
    : undefined;
}

const lostVolume = (o: Observed): Evidence | undefined =>
  o.volume.is === 'ours' && o.volume.object.status?.phase === 'Lost'
    ? now(
        EVIDENCE.volumeLost,
        `the volume of PersistentVolumeClaim ${o.volume.object.metadata.name} is gone, and the data with it`,
      )
    : undefined;

function lostNode(o: Observed): Evidence | undefined {
  const { node } = o;
  const stuck = inMemory(o) || o.volumeOnNode;
  if (node.is === 'unknown' || o.etcd.is === 'answers') return undefined; // only its kubelet is silent
  if (node.is === 'gone')
    return stuck ? now(EVIDENCE.nodeLost, `node ${node.name} is gone, and the data with it`) : undefined;
  if (node.outOfService && stuck)
    return now(EVIDENCE.nodeLost, `node ${node.name} is out of service, and the data is there`);
  if (node.notReadySince === undefined) return undefined;
  return {
    reason: EVIDENCE.nodeLost,
    message: `nobody has heard of node ${node.name} for ${o.nodeLostAfterMs / 1000} s`,
    leftMs: node.notReadySince + o.nodeLostAfterMs - o.now,
  };
}

/** For how long the run after the last end is still judged by that end; `undefined`: etcd does not run. */
const judgedForMs = (o: Observed, { state }: ContainerStatus): number | undefined =>
  state?.running && Date.parse(state.running.startedAt ?? '') + GOES_ON_AFTER_MS - o.now;

/** etcd runs, and has for so long that its last end says nothing about this run. */
export const goesOn = (o: Observed, container: ContainerStatus): boolean => (judgedForMs(o, container) ?? 1) <= 0;

/** What the last end of etcd says about its data, as long as the present run is judged by it. */
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

/** What etcd said when it ended, three times in a row. Before a member has joined, it is mere advice on joining. */
function invalidData(o: Observed): Evidence | undefined {
  const finding = lastFinding(o);
  if (!finding || !isEvidence(finding.reason) || !hasJoined(o)) return undefined;
  if ((failedStartsOf(o)?.count ?? 0) < ENDS_THAT_PROVE) return undefined;
  return { ...finding, reason: finding.reason, leftMs: 0 };
}
const isEvidence = (reason: Finding['reason']): reason is Finding['reason'] & EvidenceReason =>
  !NO_EVIDENCE.includes(reason);

/** The data may be in order: nothing is replaced for this, and nothing is deleted. What a person can do. */
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
 * etcd ends again and again, by itself and without having served in between. Restarts over months are no loop, and what a
 * signal ended (an OOM kill asks for more memory) or a disk refused is not the fault of the data.
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
    `etcd has ended ${ends} times in a row, last with exit code ${end.exitCode}: ${lastLine(end)}`,
  );
}
