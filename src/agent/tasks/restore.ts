/**
 * Makes a member's data directory from a stored snapshot, before its etcd starts for the first time. An agent that is
 * killed at any point and run again finds either a complete directory or none: partial files have names that etcd does
 * not read, and the directory gets its final name last.
 */
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { FailureReason, Success } from '../../domain/agent-result.ts';
import { type RestoreTask, STATE_VARIABLE } from '../../domain/agent-task.ts';
import { present } from '../../lib/present.ts';
import { AgentFailure } from '../failure.ts';
import type { Manifest } from '../format/manifest.ts';
import { checkVersionCompat } from '../format/version-compat.ts';
import { mounted, secondSecretFile } from '../secrets.ts';
import { disableAuth } from './disable-auth.ts';
import { findEtcdutl, makeDataDirectory } from './etcdutl.ts';
import { fetchManifest, fetchSnapshot, wantedBy } from './fetch.ts';
import { isDamaged, newestFirst } from './latest.ts';
import type { Wanted } from './open-snapshot.ts';
import type { Folders } from './room.ts';

/** etcd's name for its data. */
const MEMBER = 'member';
/** Partial files; also those of the earlier operator, whose Pod may have started a restore on the same volume. */
const FILE = '.restore.db';
const FOLDER = '.restore';
const LEFTOVER = /^(\.restore(\.db)?|etcd-restore-.*\.db)$/;

export interface Restored {
  /** The data directory already existed. */
  readonly already: boolean;
  /** The snapshot's revision, if its manifest records it. */
  readonly revision?: number;
  /** Of the newest snapshot, where the task does not name one, and how many newer ones were damaged. */
  readonly key?: string;
  readonly passedOver?: number;
  readonly fromCopy?: boolean;
}

/** For the log of the container. */
const log = (line: string): void => void process.stderr.write(`${line}\n`);

async function removeLeftovers({ dataDir, scratch }: Pick<Target, 'dataDir' | 'scratch'>): Promise<void> {
  for (const folder of [dataDir, ...(scratch === undefined ? [] : [scratch])])
    for (const name of await readdir(folder))
      if (LEFTOVER.test(name)) await rm(join(folder, name), { recursive: true, force: true });
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** All files and their names: after a power cut, the name of an unwritten file must not remain. */
async function syncTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }))
    await syncPath(join(entry.parentPath, entry.name));
  await syncPath(folder);
}

export type Target = Pick<
  RestoreTask,
  | 'dataDir'
  | 'scratch'
  | 'member'
  | 'initialCluster'
  | 'token'
  | 'peerURL'
  | 'bumpRevision'
  | 'version'
  | 'resetRootPassword'
> & {
  /** Whether the operator can authenticate to a database with auth enabled. */
  readonly auth: boolean;
};

/**
 * After a restart of its node, a member that has long served runs this again. Whatever happened to its data, the
 * snapshot is no substitute: a voter would lose entries that it had voted for, and a single-member cluster acknowledged
 * writes.
 */
export async function restore(task: RestoreTask, signal: AbortSignal): Promise<Success> {
  if (process.env[STATE_VARIABLE] === 'existing') {
    log('the cluster is already bootstrapped: nothing is restored');
    return { ok: true, task: 'restore', already: true };
  }
  const target = { ...task, ...(task.scratch !== undefined && { scratch: mounted(task.scratch) }) };
  const restored = task.latest
    ? await restoreNewest(await wantedBy(task, signal), task.latest, target)
    : await restoreEither(task, target, signal);
  const { already, ...result } = restored;
  return { ok: true, task: 'restore', ...(already && { already }), ...result };
}

/** Failures of a location: the copy at another one may be whole, and it is the same, because its SHA-256 is demanded. */
const OF_LOCATION: readonly FailureReason[] = [
  'ObjectNotFound',
  'BucketNotFound',
  'AccessDenied',
  'StoreUnreachable',
  'ManifestDamaged',
  'SnapshotDamaged',
  'Misconfigured',
];

/** Also a location that cannot be opened, because its Secret was deleted, is one that is lost. */
async function restoreEither(task: RestoreTask, target: Target, signal: AbortSignal): Promise<Restored> {
  const { copy, sha256 } = task;
  try {
    return await restoreInto(await wantedBy(task, signal), target);
  } catch (error) {
    const isLost = error instanceof AgentFailure && OF_LOCATION.includes(error.reason);
    if (!copy || sha256 === undefined || !isLost || signal.aborted) throw error;
    log(`${error.message}; trying the copy`);
    const wanted = await wantedBy({ ...task, ...copy }, signal, secondSecretFile);
    const restored = await restoreInto(wanted, target).catch((second: unknown) => {
      if (!(second instanceof AgentFailure)) throw second;
      throw new AgentFailure(second.reason, `${error.message}. And of its copy: ${second.message}`);
    });
    return { ...restored, fromCopy: true };
  }
}

/** How many damaged snapshots are passed over: with more of them, something else is wrong. */
const MAX_PASSED_OVER = 5;

/** The newest one that is intact. Each was written by the cluster itself, and losing its last hour is better than losing all. */
export async function restoreNewest(
  wanted: Wanted,
  latest: NonNullable<RestoreTask['latest']>,
  target: Target,
): Promise<Restored> {
  if (await hasData(target.dataDir)) return restoreInto(wanted, target);
  const keys = await newestFirst(wanted, latest);
  for (const [passedOver, key] of keys.entries()) {
    try {
      const restored = await restoreInto({ ...wanted, key }, target);
      return { ...restored, key, ...(passedOver > 0 && { passedOver }) };
    } catch (error) {
      if (!isDamaged(error) || passedOver === Math.min(MAX_PASSED_OVER, keys.length - 1)) throw error;
      log(`${error.message}; trying the one before it`);
    }
  }
  throw new AgentFailure('Internal', 'there is no snapshot to restore, which was checked');
}

const hasData = async (dataDir: string): Promise<boolean> =>
  (await readdir(dataDir).catch((): string[] => [])).includes(MEMBER);

export async function restoreInto(wanted: Wanted, target: Target): Promise<Restored> {
  const { dataDir } = target;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const there = await hasData(dataDir);
  await removeLeftovers(target);
  if (there) {
    log(`${dataDir} already has data: nothing to restore`);
    return { already: true };
  }
  try {
    return await restoreFresh(wanted, target);
  } catch (error) {
    await removeLeftovers(target);
    throw error;
  }
}

/** A snapshot on the disk, verified, and readable by the version of etcd that is to serve it. */
export interface FetchedSnapshot {
  readonly etcdutl: string;
  readonly file: string;
  readonly manifest: Manifest | undefined;
  readonly sizeBytes: number;
}

export async function fetchTo(
  wanted: Wanted,
  target: Pick<Target, 'version' | 'auth'>,
  folders: Folders,
): Promise<FetchedSnapshot> {
  const etcdutl = await findEtcdutl();
  const manifest = await fetchManifest(wanted);
  log(`fetching ${wanted.store.uri(wanted.key)}`);
  const { facts, sizeBytes, path: file } = await fetchSnapshot(wanted, manifest, folders, FILE);
  log(
    `fetched and verified: a database of ${sizeBytes} bytes, of etcd ${facts.storageVersion ?? facts.clusterVersion ?? '3.5 or earlier'}`,
  );
  checkVersionCompat(facts, target.version);
  if (facts.authEnabled && !target.auth)
    throw new AgentFailure(
      'AuthRequired',
      'auth is enabled in the snapshot, and the cluster has no spec.auth: the operator could not authenticate. Create the cluster with spec.auth and the root password of the snapshot, or with bootstrap.restore.resetRootPassword if that is unknown',
    );
  return { etcdutl, file, manifest, sizeBytes };
}

async function restoreFresh(wanted: Wanted, target: Target): Promise<Restored> {
  const folders = { data: target.dataDir, ...present({ scratch: target.scratch }) };
  const fetched = await fetchTo(wanted, target, folders);
  await makeData(fetched, target, wanted.signal);
  await removeLeftovers(target);
  const { manifest } = fetched;
  return { already: false, ...(manifest && { revision: manifest.revision + target.bumpRevision }) };
}

/** The folder of the data exists and has no data. */
export async function makeData({ etcdutl, file }: FetchedSnapshot, target: Target, signal: AbortSignal): Promise<void> {
  const { dataDir } = target;
  const folder = join(dataDir, FOLDER);
  const { member: name, initialCluster, token, peerURL, bumpRevision } = target;
  await makeDataDirectory(etcdutl, { file, folder, name, initialCluster, token, peerURL, bumpRevision }, signal);
  if (target.resetRootPassword === true) await disableAuth(folder);
  await syncTree(folder);
  await rename(join(folder, MEMBER), join(dataDir, MEMBER));
  await syncPath(dataDir);
  log(`restored into ${dataDir}`);
}
