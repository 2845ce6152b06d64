/** A Pod on its node, and the status of its container. */
import type { ContainerStatus, Pod, PodStatus } from '../../../src/gen/kube.ts';
import type { ModelNode } from '../model/etcd.ts';
import type { Group } from '../model/etcd-group.ts';
import type { Volume } from './volumes.ts';

export interface Ending {
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
}

/** Lines that a healthy etcd logs: at every start, and whenever a peer is killed. */
export const ORDINARY_LINES = [
  '{"level":"info","msg":"Opening db file with mode -rw------- and with options: {NoFreelistSync: true, FreelistType: hashmap}"}',
  '{"level":"warn","msg":"lost TCP streaming connection with remote peer","error":"unexpected EOF"}',
].join('\n');

/** The last log lines of an etcd that cannot continue. */
export const fatal = (error: string): string =>
  `${ORDINARY_LINES}\n${JSON.stringify({ level: 'fatal', msg: 'discovery failed', error })}`;

/** A cluster was bootstrapped on an empty data directory. */
export interface Bootstrap {
  /** With the data of a snapshot. */
  readonly restored: boolean;
  readonly member: string;
  readonly token: string;
  readonly group: Group;
  readonly at: number;
}

/** A Pod on its node. */
export interface Run {
  readonly uid: string;
  readonly name: string;
  readonly node: string;
  ip: string;
  /** Its member had a previous Pod, and with it another IP. */
  readonly moved: boolean;
  readonly volume: Volume;
  process: ModelNode | undefined;
  /** The progress of the init containers. They run again only with the whole Pod. */
  prepared: 'no' | 'running' | 'failed' | 'done';
  /** How often the init containers failed, for the back-off. */
  unprepared: number;
  state: 'starting' | 'running' | 'ended' | 'stopping' | 'over';
  ready: boolean;
  restarts: number;
  /** Failures in a row, for the back-off. */
  failures: number;
  startedAt: number;
  lastEnd: (Ending & { readonly startedAt: string; readonly finishedAt: string }) | undefined;
  probing: boolean;
}

export const restores = (pod: Pod): boolean =>
  pod.spec?.initContainers?.some(({ name }) => name === 'restore') === true;

const PREPARING: Readonly<Record<Run['prepared'], ContainerStatus['state']>> = {
  no: { waiting: { reason: 'PodInitializing' } },
  running: { running: {} },
  failed: { terminated: { exitCode: 1, reason: 'Error', message: '' } },
  done: { terminated: { exitCode: 0, reason: 'Completed' } },
};
const preparing = ({ prepared }: Run): ContainerStatus => ({
  name: 'restore',
  image: '',
  imageID: '',
  ready: prepared === 'done',
  restartCount: 0,
  state: PREPARING[prepared] ?? {},
});

/** `since` is when the process was started. */
function containerStatus(run: Run, since: string): ContainerStatus {
  const { lastEnd, restarts, ready } = run;
  const waits =
    lastEnd && run.failures > 1
      ? { waiting: { reason: 'CrashLoopBackOff', message: 'back-off restarting failed container' } }
      : undefined;
  const ended = lastEnd && { terminated: lastEnd };
  const state =
    run.state === 'running'
      ? { running: { startedAt: since } }
      : (waits ?? ended ?? { waiting: { reason: 'ContainerCreating' } });
  return {
    name: 'etcd',
    image: '',
    imageID: '',
    ready,
    restartCount: restarts,
    state,
    ...(lastEnd && { lastState: { terminated: lastEnd } }),
  };
}

interface Times {
  readonly now: string;
  /** When the process was started. */
  readonly since: string;
}

export function podStatus(run: Run, pod: Pod, { now, since }: Times, over?: 'Failed' | 'Succeeded'): PodStatus {
  const waits = restores(pod) && run.prepared !== 'done';
  const { ready, ip } = run;
  const condition = (type: string, so: boolean) => {
    const status = so ? 'True' : 'False';
    const before = pod.status?.conditions?.find((c) => c.type === type);
    const kept = before?.status === status ? before.lastTransitionTime : undefined;
    return { type, status, lastTransitionTime: kept ?? now };
  };
  return {
    phase: over ?? (waits ? 'Pending' : 'Running'),
    podIP: ip,
    startTime: pod.status?.startTime ?? now,
    conditions: [condition('PodScheduled', true), condition('Ready', ready), condition('ContainersReady', ready)],
    ...(restores(pod) && { initContainerStatuses: [preparing(run)] }),
    containerStatuses: [containerStatus(run, since)],
  };
}

/** What /readyz reports: it is not being defragmented, a leader is known, it is a voter, and there is no CORRUPT alarm. */
export function isHealthy({ serving, isolated, disk, defragmentsUntil }: ModelNode): boolean {
  if (!serving || isolated || !disk || defragmentsUntil > 0) return false;
  const { leader, members, state } = disk.group;
  const corrupt = state.alarms.all.some(({ alarm }) => alarm === 'corrupt');
  return leader !== undefined && members.get(disk.id)?.isLearner === false && !corrupt;
}

/** How long etcd runs after its Pod was deleted, before the kubelet sends it SIGTERM. */
export const preStopMs = (pod: Pod | undefined): number =>
  1_000 * (pod?.spec?.containers.find(({ name }) => name === 'etcd')?.lifecycle?.preStop?.sleep?.seconds ?? 0);
