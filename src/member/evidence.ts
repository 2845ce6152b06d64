/** Evidence that a member will not come back by itself, each class with its own time of grace. */

import { EVIDENCE, type EvidenceReason } from '../api/etcd-member.ts';
import { volumeClaimName } from '../api/names.ts';
import { isPodOver } from '../api/pod.ts';
import type { ContainerStateTerminated, ContainerStatus, Pod } from '../gen/kube.ts';
import { hasJoined, inMemory, names, type Observed } from './observed.ts';

export interface Evidence {
  readonly reason: EvidenceReason;
  readonly message: string;
  /** How much of its grace is left: until then it may still come to nothing. */
  readonly leftMs: number;
}

/** Damage that etcd reports is there to stay, but a first start can fail for other reasons. */
const STARTS_THAT_TELL = 3;
/** Whoever cannot use its data directory has ended long before. */
const GOES_ON_AFTER_MS = 60_000;
/** As many starts as Kubernetes makes in about five minutes. */
const STARTS_OF_A_LOOP = 5;
/** Kubernetes waits five minutes at most between two starts: a longer pause is no loop. */
const LOOP_WINDOW_MS = 10 * 60_000;

/** What Kubernetes keeps of it. The patterns below take time that grows with its square. */
const MAX_LAST_WORDS = 4096;

/** What etcd says last when it cannot go on. A member that had joined has no use for advice on joining. */
const LAST_WORDS: readonly (readonly [RegExp, EvidenceReason, string])[] = [
  [/permanently removed from the cluster/, EVIDENCE.removed, 'etcd says that the cluster has removed this member'],
  [/no space left on device/, EVIDENCE.volumeFull, 'the volume is full, and etcd cannot start'],
  [
    /cannot fetch cluster info from peer urls|error validating peerURLs|has already been bootstrapped|tocommit\(\d+\) is out of range/,
    EVIDENCE.dataInvalid,
    'the data directory has been emptied',
  ],
  [
    /crc mismatch|wal: .*(corrupt|not found)|failed to (recover|restore|open|read|find).*(wal|snapshot|backend|database|db)|invalid database|checksum error|found data inconsistency|file size too small|freelist|page \d+ already freed|unexpected EOF|assertion failed|data-dir used by this member must be removed/i,
    EVIDENCE.dataInvalid,
    'etcd cannot use its data directory',
  ],
];

export function evidenceOf(o: Observed): Evidence | undefined {
  return lostData(o) ?? lostVolume(o) ?? lostNode(o) ?? lastWords(o) ?? crashLoop(o);
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
  const { name } = names(o);
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

const etcdContainer = (pod: Pod): ContainerStatus | undefined =>
  pod.status?.containerStatuses?.find((c) => c.name === 'etcd');
const lastEnd = (c: ContainerStatus): ContainerStateTerminated | undefined =>
  c.state?.terminated ?? c.lastState?.terminated;

/**
 * The start after those that failed did not. Kubernetes keeps the words of the last end for as long as the Pod lives: a voter
 * whose network was cut for a moment, or a learner that copies, would be judged by what went wrong before it had joined.
 */
const goesOn = (o: Observed, { state }: ContainerStatus): boolean =>
  o.etcd.is === 'answers' || o.now - Date.parse(state?.running?.startedAt ?? '') >= GOES_ON_AFTER_MS;

function lastWords(o: Observed): Evidence | undefined {
  if (o.pod.is !== 'ours' || !hasJoined(o)) return undefined;
  const container = etcdContainer(o.pod.object);
  const end = container && lastEnd(container);
  if (!container || container.ready || !end || container.restartCount + 1 < STARTS_THAT_TELL) return undefined;
  if (goesOn(o, container)) return undefined;
  const said = (end.message ?? '').slice(-MAX_LAST_WORDS);
  const known = LAST_WORDS.find(([words]) => words.test(said));
  return known && now(known[1], `${known[2]}: ${lastLine(said, known[0])}`);
}

/** The last line of a log says what happened, unless it is the end of a stack: then the one with the words. */
const lastLine = (text: string, words = /./): string => {
  const line =
    text
      .trim()
      .split('\n')
      .findLast((each) => words.test(each)) ?? '';
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
};

/** A loop that is one now: many restarts over months are none, and more memory is what an OOM kill asks for. */
function crashLoop(o: Observed): Evidence | undefined {
  if (o.pod.is !== 'ours') return undefined;
  const container = etcdContainer(o.pod.object);
  const end = container && lastEnd(container);
  if (!container || !end || container.state?.waiting?.reason !== 'CrashLoopBackOff') return undefined;
  const recent = end.finishedAt !== undefined && o.now - Date.parse(end.finishedAt) < LOOP_WINDOW_MS;
  if (container.restartCount < STARTS_OF_A_LOOP || !recent || end.reason === 'OOMKilled') return undefined;
  return now(
    EVIDENCE.crashLooping,
    `etcd has ended ${container.restartCount + 1} times, last with exit code ${end.exitCode}: ${lastLine(end.message ?? end.reason ?? '')}`,
  );
}
