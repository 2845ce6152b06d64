/** etcdutl, from the etcd image of the version that will serve the data. */
import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import type { RestoreTask } from '../../domain/agent-task.ts';
import { AgentFailure } from '../failure.ts';

/** For tests, which have no etcd image. */
const PATH_VARIABLE = 'ETCDUTL_PATH';
const USUAL = '/usr/local/bin/etcdutl';
const MAX_OUTPUT = 64 * 1024;

export interface Ended {
  readonly code: number | undefined;
  /** The end of its stdout and stderr. */
  readonly output: string;
}

export function run(program: string, args: readonly string[], signal: AbortSignal): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' });
    let output = '';
    const append = (piece: Buffer): void => {
      output = (output + piece.toString()).slice(-MAX_OUTPUT);
    };
    child.stdout.on('data', append);
    child.stderr.on('data', append);
    child.on('error', (error) => {
      const message = `${program} cannot be started: ${error.message}`;
      reject(signal.aborted ? signal.reason : new AgentFailure('RestoreToolFailed', message));
    });
    child.on('close', (code) => resolve({ code: code ?? undefined, output }));
  });
}

/** Searched before anything is downloaded. */
export async function findEtcdutl(): Promise<string> {
  const path = process.env[PATH_VARIABLE] ?? USUAL;
  try {
    await access(path, constants.X_OK);
  } catch {
    throw new AgentFailure(
      'RestoreToolFailed',
      `the etcd image has no etcdutl at ${path}: official images have it from 3.5 on. Use such an image`,
    );
  }
  return path;
}

/** The last line of the output is the cause. etcdutl writes JSON lines, or a line that begins with Error. */
export function lastLines(output: string): string {
  const lines = output.trim().split('\n');
  const error = lines.findLast((line) => /^Error|panic:|"error"|fatal/i.test(line)) ?? lines.at(-1) ?? '';
  return error.length > 400 ? `${error.slice(0, 400)}…` : error;
}

export interface NewIdentity extends Pick<RestoreTask, 'initialCluster' | 'token' | 'peerURL' | 'bumpRevision'> {
  readonly file: string;
  /** Must not exist. */
  readonly folder: string;
  readonly name: string;
}

/**
 * bbolt walks every page when etcdutl opens the file, and panics or faults on a damaged one. A member streams such a
 * database with a matching digest, so nothing before this detects it; lack of memory makes the file unreadable as well.
 */
const isDamaged = (output: string): boolean =>
  /^panic: |^fatal error: fault|invalid database|checksum error|file size too small|integrity check failed/m.test(
    output,
  ) && !/cannot allocate memory|out of memory/.test(output);

/** Makes a data directory of a new cluster with one member. etcdutl verifies the digest, too. */
export async function makeDataDirectory(etcdutl: string, to: NewIdentity, signal: AbortSignal): Promise<void> {
  const args = [
    'snapshot',
    'restore',
    to.file,
    `--data-dir=${to.folder}`,
    `--name=${to.name}`,
    `--initial-cluster=${to.initialCluster}`,
    `--initial-cluster-token=${to.token}`,
    `--initial-advertise-peer-urls=${to.peerURL}`,
    ...(to.bumpRevision > 0 ? [`--bump-revision=${to.bumpRevision}`, '--mark-compacted'] : []),
  ];
  const { code, output } = await run(etcdutl, args, signal);
  if (code === 0) return;
  if (/no space left on device|disk quota exceeded/i.test(output))
    throw new AgentFailure(
      'NoSpace',
      'the volume became full while the data directory was made. Set a larger storage.size, or storageSize of the drill',
    );
  if (/unknown flag: --(bump-revision|mark-compacted)/.test(output))
    throw new AgentFailure(
      'RestoreToolFailed',
      'this version of etcd cannot raise revisions: restore into 3.5.10 or later, or set bumpRevision to 0',
    );
  throw toolFailure('restore', { code, output });
}

function toolFailure(command: string, { code, output }: Ended): AgentFailure {
  if (isDamaged(output))
    return new AgentFailure(
      'SnapshotDamaged',
      `the database in the snapshot is damaged: etcdutl snapshot ${command} failed with "${lastLines(output)}". Restore another snapshot, and check the disk of the member that this one was taken from`,
    );
  const how = code === undefined ? 'was killed, perhaps out of memory' : `ended with ${code}`;
  return new AgentFailure('RestoreToolFailed', `etcdutl snapshot ${command} ${how}: ${lastLines(output)}`);
}

/** Reads every page, as bbolt checks them; a restore follows only those that lead to free pages. */
export async function checkPages(etcdutl: string, file: string, signal: AbortSignal): Promise<void> {
  const ended = await run(etcdutl, ['snapshot', 'status', file], signal);
  if (ended.code !== 0) throw toolFailure('status', ended);
}
