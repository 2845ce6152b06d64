/** Long-running processes of a local cluster: started detached, in the cluster's cgroup, each with its own log file. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { refuseWhenInterrupted } from '../tools/interrupt.ts';
import { Failure, seconds } from '../tools/terminal.ts';
import { cgroupPath } from './cgroup.ts';

export interface DaemonSpec {
  readonly name: string;
  readonly command: readonly string[];
  /** Groups below the cluster's own, e.g. ['etcd-operator-ab12', 'daemons']. */
  readonly cgroup: readonly string[];
  readonly log: string;
  /** Run in the network and mount namespaces of this process. */
  readonly inNamespacesOf?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Go servers take a quarter less CPU with more garbage; the machines of tests and demos are short of cores, not of memory. */
export const LESS_GC = { GOGC: '300' };

/** Joins the cgroup before it becomes the command, so that no child process can be outside. The pid stays the same through both exec calls. */
const JOIN_AND_EXEC = 'echo 0 > "$0" && exec "$@"';

export function startDaemon(spec: DaemonSpec): number {
  refuseWhenInterrupted();
  mkdirSync(dirname(spec.log), { recursive: true });
  const log = openSync(spec.log, 'a');
  const command = spec.inNamespacesOf ? [...enter(spec.inNamespacesOf), ...spec.command] : spec.command;
  const child = spawn('/bin/sh', ['-c', JOIN_AND_EXEC, join(cgroupPath(...spec.cgroup), 'cgroup.procs'), ...command], {
    detached: true,
    stdio: ['ignore', log, log],
    env: { PATH: process.env['PATH'], HOME: '/root', ...LESS_GC, ...spec.env },
    cwd: '/',
  });
  closeSync(log);
  child.unref();
  if (child.pid === undefined) throw new Failure(`${spec.name} could not be started.`);
  return child.pid;
}

/** `nsenter`, not `ip netns exec`: the latter mounts a new /sys, and kubelet then finds no cgroups. */
export const enter = (pid: number): readonly string[] => ['nsenter', '--net', '--mount', '--target', String(pid)];

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

/** Polls until the check succeeds. When the daemon ends meanwhile or the time runs out, it fails with the end of the daemon's log. */
export async function waitFor(
  what: string,
  ready: () => Promise<boolean>,
  options: { readonly timeoutMs: number; readonly daemon?: { readonly pid: number; readonly log: string } },
): Promise<void> {
  const { timeoutMs, daemon } = options;
  const logTail = (): string =>
    daemon && existsSync(daemon.log)
      ? `\n${readFileSync(daemon.log, 'utf8').trimEnd().split('\n').slice(-15).join('\n')}\n(log: ${daemon.log})`
      : '';
  const deadline = performance.now() + timeoutMs;
  while (!(await ready().catch(() => false))) {
    refuseWhenInterrupted();
    if (daemon && !isAlive(daemon.pid)) throw new Failure(`${what}: the process ended.${logTail()}`);
    if (performance.now() > deadline) throw new Failure(`${what}: not within ${seconds(timeoutMs)}.${logTail()}`);
    await sleep(100);
  }
}
