/** The etcd of a restore drill: on loopback, with data that is discarded afterwards; and what its end says about the snapshot. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { OUT_OF_MEMORY } from '../../domain/agent-result.ts';
import { EtcdClient } from '../../etcd/client.ts';
import type { EtcdError, Result } from '../../etcd/errors.ts';
import { AgentFailure } from '../failure.ts';
import { lastLines } from './etcdutl.ts';
import type { Target } from './restore.ts';

/** For tests, which have no etcd image. */
const PATH_VARIABLE = 'ETCD_PATH';
const USUAL = '/usr/local/bin/etcd';
const POLL_MS = 200;
const ASK_MS = 5_000;
/** etcd reads a database of some gigabytes before it serves it. */
const START_MS = 10 * 60_000;
const MAX_OUTPUT = 64 * 1024;
/** With etcd's default of 2 GiB, a larger database would accept no write. */
const MIN_QUOTA_BYTES = 2 * 2 ** 30;

export const drillFailed = (message: string): AgentFailure =>
  new AgentFailure('DrillFailed', `${message}. Do not rely on this snapshot: take a new one, and find the cause`);

interface End {
  readonly killed: boolean;
  readonly message: string;
}

export interface DrillEtcd {
  readonly client: EtcdClient;
  readonly endpoint: string;
  /** The value, or the failure of the drill: of the snapshot, or of the place where it runs. */
  readonly must: <T>(answer: Result<T>, what: string) => T;
}

export interface Served extends Pick<Target, 'dataDir' | 'member' | 'initialCluster' | 'token' | 'peerURL'> {
  readonly endpoint: string;
  readonly databaseBytes: number;
}

/** Runs etcd for as long as the work takes. */
export async function withEtcd<T>(
  served: Served,
  signal: AbortSignal,
  work: (etcd: DrillEtcd) => Promise<T>,
): Promise<T> {
  const client = new EtcdClient(() => performance.now());
  const { ended, stop } = start(served);
  const { endpoint } = served;
  const must: DrillEtcd['must'] = (answer, what) => {
    if (answer.ok) return answer.value;
    throw failureOf(answer.error, what, ended());
  };
  try {
    const until = performance.now() + START_MS;
    for (;;) {
      const answer = await client.memberList({ endpoint, timeoutMs: ASK_MS, linearizable: true, signal });
      if (answer.ok) break;
      if (ended() !== undefined || performance.now() > until) must(answer, 'its members');
      await sleep(POLL_MS, undefined, { signal });
    }
    return await work({ client, endpoint, must });
  } finally {
    client.close();
    await stop();
  }
}

/**
 * A kill is one of the kernel, at the memory limit, or of the Pod. Neither that nor a slow machine says anything about the
 * snapshot: only an etcd that exits by itself, or refuses, does.
 */
export function failureOf(error: EtcdError, what: string, end: End | undefined): AgentFailure {
  if (end?.killed === true)
    return new AgentFailure(
      OUT_OF_MEMORY,
      'the etcd of the drill was killed, mostly at the memory limit: raise drill.resources.limits.memory of the schedule',
    );
  if (end) return drillFailed(`etcd cannot serve the restored data: ${end.message}`);
  if (error.kind === 'timeout' || error.kind === 'unreachable' || error.kind === 'noLeader')
    return new AgentFailure(
      'TimedOut',
      `the restored etcd did not report ${what} within ${START_MS / 60_000} minutes: give the drill more CPU with drill.resources`,
    );
  return drillFailed(`the restored etcd does not report ${what}: ${error.message}`);
}

function start(served: Served): { readonly ended: () => End | undefined; readonly stop: () => Promise<void> } {
  const program = process.env[PATH_VARIABLE] ?? USUAL;
  const child: ChildProcess = spawn(
    program,
    [
      `--name=${served.member}`,
      `--data-dir=${served.dataDir}`,
      `--listen-client-urls=${served.endpoint}`,
      `--advertise-client-urls=${served.endpoint}`,
      `--listen-peer-urls=${served.peerURL}`,
      `--initial-advertise-peer-urls=${served.peerURL}`,
      `--initial-cluster=${served.initialCluster}`,
      `--initial-cluster-token=${served.token}`,
      `--quota-backend-bytes=${Math.max(MIN_QUOTA_BYTES, 2 * served.databaseBytes)}`,
      '--unsafe-no-fsync', // discarded after the drill
      '--log-level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let output = '';
  let ended: End | undefined;
  child.stderr?.on('data', (piece: Buffer) => {
    output = (output + piece.toString()).slice(-MAX_OUTPUT);
  });
  const end = once(child, 'close').then(
    ([code, by]) => {
      ended = { killed: by !== null, message: `etcd ended with ${code ?? by}: ${lastLines(output)}` };
    },
    (error: Error) => {
      ended = { killed: false, message: `${program} cannot be started: ${error.message}` };
    },
  );
  return {
    ended: () => ended,
    stop: async () => {
      child.kill('SIGKILL');
      await end;
    },
  };
}
