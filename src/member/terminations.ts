/**
 * How etcd ended, and what that proves. Only the line that ended the process counts: a healthy etcd logs "unexpected EOF"
 * whenever a peer is killed and `FreelistType` at every start, and data was judged by such lines.
 */
import { type EtcdMemberStatus, EVIDENCE, STORAGE_ERROR } from '../api/etcd-member.ts';
import type { ContainerStateTerminated, ContainerStatus } from '../gen/kube.ts';
import type { Observed } from './observed.ts';

type FailedStarts = NonNullable<EtcdMemberStatus['failedStarts']>;

export interface Finding {
  readonly reason:
    | typeof EVIDENCE.dataInvalid
    | typeof EVIDENCE.volumeFull
    | typeof EVIDENCE.removed
    | typeof STORAGE_ERROR;
  readonly message: string;
}

/** The longest pause between two starts is five minutes (CrashLoopBackOff); after a longer one they do not belong together. */
export const LOOP_WINDOW_MS = 10 * 60_000;
/** Kubernetes keeps 2 KiB or 4 KiB. The patterns below take time that grows with the square of the text. */
const MAX_MESSAGE = 4096;
const MAX_QUOTE = 300;

/** What the line that ended etcd says. The first match counts: data that cannot be accessed may be in order. */
const FINDINGS: readonly (readonly [RegExp, Finding['reason'], string])[] = [
  [
    /permission denied|operation not permitted|read-only file system|input\/output error|stale file handle|transport endpoint is not connected|already locked|cannot allocate memory|too many open files/i,
    STORAGE_ERROR,
    'etcd cannot access its data directory',
  ],
  [/permanently removed from the cluster/, EVIDENCE.removed, 'etcd says that the cluster has removed this member'],
  [/no space left on device|disk quota exceeded/, EVIDENCE.volumeFull, 'the volume is full, and etcd cannot start'],
  [
    /cannot fetch cluster info from peer urls|error validating peerURLs|has already been bootstrapped|tocommit\(\d+\) is out of range/,
    EVIDENCE.dataInvalid,
    'the data directory has been emptied',
  ],
  [
    /crc mismatch|wal: [^\n]*(corrupt|not found)|failed to (recover|restore|read|find)[^\n]*(wal|snapshot|backend|database)|invalid database|checksum error|found data inconsistency|file size too small|page \d+ already freed|freepages|assertion failed|page expected to be|go\.etcd\.io\/bbolt|data-dir used by this member must be removed/i,
    EVIDENCE.dataInvalid,
    'etcd cannot use its data directory',
  ],
];

export const etcdContainer = (o: Observed): ContainerStatus | undefined =>
  o.pod.is === 'ours' ? o.pod.object.status?.containerStatuses?.find(({ name }) => name === 'etcd') : undefined;

export const lastTermination = (container: ContainerStatus): ContainerStateTerminated | undefined =>
  container.state?.terminated ?? container.lastState?.terminated;

/**
 * etcd ended by its own decision. Above 128 it was a signal: an OOM kill, the kubelet, a node that went down; 126 to 128: it was
 * never started (StartError).
 */
export const endedItself = ({ exitCode, reason }: ContainerStateTerminated): boolean =>
  exitCode < 126 && reason !== 'OOMKilled';

/** The log line of level fatal or panic: as its message and error in JSON, as it is in the console format. */
function fatalLine(line: string): string | undefined {
  if (/^[^\t{]+\t(fatal|panic|dpanic)\t/i.test(line)) return line;
  if (!/^\{"level":"(fatal|panic|dpanic)"/.test(line)) return undefined;
  try {
    const { msg, error }: { readonly msg?: unknown; readonly error?: unknown } = JSON.parse(line);
    return [msg, error].filter((text) => typeof text === 'string').join(': ');
  } catch {
    return undefined; // Kubernetes has cut it off
  }
}

/**
 * Only the end of a long stack is left of a panic. The frames of a runtime error (`fp=0x…`, a SIGBUS on a bad disk, memory that
 * ran out) are those of all goroutines, and say nothing about what failed.
 */
const isCutTraceback = (lines: readonly string[]): boolean =>
  lines.some((line) => /^\t\S+\.go:\d+ /.test(line)) && !lines.some((line) => /^\{|\b[fg]p=0x/.test(line));

/** What ended the process, line by line; empty when the message does not say. */
export function endingLines(message: string): readonly string[] {
  const lines = message.slice(-MAX_MESSAGE).split('\n');
  const logged = lines.flatMap((line) => fatalLine(line) ?? []).slice(-1);
  const header = lines.findIndex((line) => /^(panic|fatal error): /.test(line));
  if (header >= 0)
    return [...logged, ...lines.slice(header, lines[header]?.startsWith('panic') ? undefined : header + 1)];
  return logged.length === 0 && isCutTraceback(lines) ? lines : logged;
}

const quote = (line: string): string => (line.length > MAX_QUOTE ? `${line.slice(0, MAX_QUOTE)}…` : line).trim();

/** What the end of etcd says about its data directory; `undefined`: nothing. */
export function findingIn(end: ContainerStateTerminated): Finding | undefined {
  if (!endedItself(end)) return undefined;
  const lines = endingLines(end.message ?? '');
  for (const [pattern, reason, meaning] of FINDINGS) {
    const line = lines.find((each) => pattern.test(each));
    if (line !== undefined) return { reason, message: `${meaning}: ${quote(line)}` };
  }
  return undefined;
}

/** Why etcd ended, for people: the line that ended it, or else the last one. */
export const lastLine = (end: ContainerStateTerminated): string => {
  const message = (end.message ?? '').slice(-MAX_MESSAGE).trim();
  return quote(endingLines(message)[0] ?? message.split('\n').at(-1) ?? '') || (end.reason ?? '');
};

/** Which of the container's ends this is: the count of restarts goes up when the next process is started. */
const ordinalOf = ({ restartCount, state }: ContainerStatus): number => restartCount - (state?.running ? 1 : 0);

/** A kubelet takes so long to report that a Pod is not ready any more; Kubernetes keeps seconds. */
const REPORTED_WITHIN_MS = 5_000;

/**
 * Whether this end and the recorded one belong together: of the same Pod, without a long pause, and no run between them was
 * ready. Kubernetes keeps the last end alone, so the operator may have missed some; since when the Pod is not ready it keeps.
 */
function follows(o: Observed, recorded: FailedStarts, restarts: number, startedAt: number): boolean {
  const conditions = o.pod.is === 'ours' ? o.pod.object.status?.conditions : undefined;
  const ready = conditions?.find(({ type }) => type === 'Ready');
  const notReadySince = Date.parse((ready?.status === 'False' && ready.lastTransitionTime) || '');
  const ended = Date.parse(recorded.finishedAt);
  return (
    restarts > recorded.restarts &&
    startedAt - ended < LOOP_WINDOW_MS &&
    (Number.isNaN(notReadySince) ? restarts === recorded.restarts + 1 : notReadySince <= ended + REPORTED_WITHIN_MS)
  );
}

/** The ends of etcd in a row since it last served, as recorded, with the newest one. One end can have many causes. */
export function failedStartsOf(o: Observed): FailedStarts | undefined {
  const recorded = o.member.status?.failedStarts;
  const container = etcdContainer(o);
  const end = container && lastTermination(container);
  if (container?.ready || o.etcd.is === 'answers') return undefined;
  if (!container || !end?.finishedAt) return recorded;
  const restarts = ordinalOf(container);
  if (end.finishedAt === recorded?.finishedAt && restarts === recorded.restarts) return recorded;
  if (!endedItself(end)) return undefined;
  const reason = findingIn(end)?.reason ?? 'Unknown';
  const started = Date.parse(end.startedAt ?? end.finishedAt);
  const before = recorded && follows(o, recorded, restarts, started) ? recorded : undefined;
  return {
    reason,
    count: before?.reason === reason ? before.count + 1 : 1,
    total: (before?.total ?? 0) + 1,
    restarts,
    finishedAt: end.finishedAt,
  };
}
