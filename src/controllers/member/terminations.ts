/**
 * Why etcd exited, and what that proves. Only the line that ended the process counts: a healthy etcd logs "unexpected EOF"
 * whenever a peer is killed and `FreelistType` at every start, and intact data was condemned by such lines.
 */
import { DATA_INCONSISTENT, type EtcdMemberStatus, EVIDENCE, STORAGE_ERROR } from '../../api/etcd-member.ts';
import { LOOP_WINDOW_MS, NOT_READY_REPORTED_WITHIN_MS } from '../../domain/timing.ts';
import type { ContainerStateTerminated, ContainerStatus } from '../../gen/kube.ts';
import { printable } from '../../lib/printable.ts';
import type { Observed } from './observed.ts';

type FailedStarts = NonNullable<EtcdMemberStatus['failedStarts']>;

export interface Finding {
  readonly reason:
    | typeof EVIDENCE.dataInvalid
    | typeof EVIDENCE.volumeFull
    | typeof EVIDENCE.removed
    | typeof DATA_INCONSISTENT
    | typeof STORAGE_ERROR;
  readonly message: string;
}

/** Kubernetes keeps 2 KiB or 4 KiB. The patterns below take time quadratic in the length of the text. */
const MAX_MESSAGE = 4096;
const MAX_QUOTE = 300;

/**
 * What the line that ended etcd proves; the first match counts. Data that cannot be accessed may be intact: an operating system
 * error on a file (`read /path: …`) and a fault in memory mapped to one prove nothing.
 */
const FINDINGS: readonly (readonly [RegExp, Finding['reason'], string])[] = [
  [/no space left on device|disk quota exceeded/, EVIDENCE.volumeFull, 'the volume is full, and etcd cannot start'],
  [
    /\b\w+ \/[^\n:]*: \S|permission denied|operation not permitted|read-only file system|input\/output error|already locked|cannot allocate memory|out of memory|too many open files|^fatal error: fault|SIGBUS/i,
    STORAGE_ERROR,
    'etcd cannot access its data directory',
  ],
  [
    /found data inconsistency/,
    DATA_INCONSISTENT,
    'the data differs from that of a peer, and etcd does not report which of them is right',
  ],
  [/permanently removed from the cluster/, EVIDENCE.removed, 'etcd reports that the cluster has removed this member'],
  [
    /cannot fetch cluster info from peer urls|error validating peerURLs|has already been bootstrapped|tocommit\(\d+\) is out of range/,
    EVIDENCE.dataInvalid,
    'the data directory has been emptied',
  ],
  [
    /crc mismatch|wal: [^\n]*(corrupt|not found)|failed to (recover|restore|read|find)[^\n]*(wal|snapshot|backend|database)|invalid database|checksum error|file size too small|page \d+ already freed|freepages|assertion failed|page expected to be|go\.etcd\.io\/bbolt|data-dir used by this member must be removed/i,
    EVIDENCE.dataInvalid,
    'etcd cannot use its data directory',
  ],
];

export const etcdContainer = (o: Observed): ContainerStatus | undefined =>
  o.pod.is === 'ours' ? o.pod.object.status?.containerStatuses?.find(({ name }) => name === 'etcd') : undefined;

export const lastTermination = (container: ContainerStatus): ContainerStateTerminated | undefined =>
  container.state?.terminated ?? container.lastState?.terminated;

/** A log line of level fatal or panic: of JSON its msg and error, of the console format the whole line. */
function fatalLine(line: string): string | undefined {
  if (/^[^\t{]+\t(fatal|panic|dpanic)\t/i.test(line)) return line;
  if (!/^\{"level":"(fatal|panic|dpanic)"/.test(line)) return undefined;
  try {
    const { msg, error }: { readonly msg?: unknown; readonly error?: unknown } = JSON.parse(line);
    return [msg, error].filter((text) => typeof text === 'string').join(': ');
  } catch {
    return undefined; // the kubelet has truncated it
  }
}

const isFrame = (line: string): boolean => /^\t\S+\.(go|s):\d+ /.test(line);
/** The Go runtime dumps every goroutine with its registers only for a runtime error: a fault, or no memory. */
const isOfRuntime = (line: string): boolean => /\b[fg]p=0x/.test(line);

/** The lines that ended the process; empty when the termination message lacks them. Of a long stack only the end is left. */
export function endingLines(message: string): readonly string[] {
  const lines = message.slice(-MAX_MESSAGE).split('\n');
  const logged = lines.flatMap((line) => fatalLine(line) ?? []).slice(-1);
  const header = lines.findIndex((line) => /^(panic|fatal error): /.test(line));
  if (lines[header]?.startsWith('panic')) return [...logged, ...lines.slice(header)];
  if (header >= 0) return [...logged, lines[header] ?? ''];
  if (logged.length > 0 || !lines.some(isFrame) || lines.some((line) => line.startsWith('{'))) return logged;
  return lines.some(isOfRuntime) ? ['fatal error: fault (only the end of the stacks is left)'] : lines;
}

/**
 * etcd exited by itself: it logs the error and exits with 1, or panics and exits with 2. It is PID 1 of its container, so a
 * SIGTERM (a liveness probe) ends it with 0, or with 2 and no message; above 128 it was a signal, an OOM kill or a node that
 * went down; 126 to 128: it was never started.
 */
export const endedItself = ({ exitCode, reason, message }: ContainerStateTerminated): boolean => {
  if (reason === 'OOMKilled' || exitCode < 1 || exitCode >= 126) return false;
  return exitCode === 1 || endingLines(message ?? '').length > 0;
};

const quote = (line: string): string => printable(line.length > MAX_QUOTE ? `${line.slice(0, MAX_QUOTE)}…` : line);

/** What the exit of etcd proves about its data directory; `undefined`: nothing. */
export function findingIn(end: ContainerStateTerminated): Finding | undefined {
  if (!endedItself(end)) return undefined;
  const lines = endingLines(end.message ?? '');
  for (const [pattern, reason, meaning] of FINDINGS) {
    const line = lines.find((each) => pattern.test(each));
    if (line !== undefined) return { reason, message: `${meaning}: ${quote(line)}` };
  }
  return undefined;
}

/** Why etcd exited, for users: the line that ended it, or else the last one. */
export const lastLine = (end: ContainerStateTerminated): string => {
  const message = (end.message ?? '').slice(-MAX_MESSAGE).trim();
  return quote(endingLines(message)[0] ?? message.split('\n').at(-1) ?? '') || (end.reason ?? '');
};

/** The number of this exit: the kubelet increments restartCount when it starts the next process. */
const ordinalOf = ({ restartCount, state }: ContainerStatus): number => restartCount - (state?.running ? 1 : 0);

/**
 * Whether this exit and the recorded one are in one row: the same Pod, no long pause, and no run between them was ready.
 * Kubernetes keeps only the last exit, so the operator may have missed some; it does keep since when the Pod is not ready.
 */
function follows(o: Observed, recorded: FailedStarts, restarts: number, startedAt: number): boolean {
  const conditions = o.pod.is === 'ours' ? o.pod.object.status?.conditions : undefined;
  const ready = conditions?.find(({ type }) => type === 'Ready');
  const notReadySince = Date.parse((ready?.status === 'False' && ready.lastTransitionTime) || '');
  const ended = Date.parse(recorded.finishedAt);
  return (
    restarts > recorded.restarts &&
    startedAt - ended < LOOP_WINDOW_MS &&
    (Number.isNaN(notReadySince)
      ? restarts === recorded.restarts + 1
      : notReadySince <= ended + NOT_READY_REPORTED_WITHIN_MS)
  );
}

/** The recorded exits of etcd in a row since it last served, plus the newest one. One exit can have many causes. */
export function failedStartsOf(o: Observed): FailedStarts | undefined {
  const recorded = o.member.status?.failedStarts;
  const container = etcdContainer(o);
  const end = container && lastTermination(container);
  if (container?.ready || o.etcd.is === 'answers') return undefined;
  if (!container || !end?.finishedAt) return recorded;
  const restarts = ordinalOf(container);
  if (end.finishedAt === recorded?.finishedAt && restarts === recorded.restarts) return recorded;
  const reason = findingIn(end)?.reason ?? 'Unknown';
  if (!endedItself(end) || reason === STORAGE_ERROR) return undefined;
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
