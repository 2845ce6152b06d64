/**
 * One snapshot: etcd → verified → zstd → encrypted → store, in one stream and little memory, and then the manifest,
 * which marks it complete. A task that is run again, because its Pod died, finds its leftovers: a snapshot with its
 * manifest is the result, one without is written again, and a foreign object is not touched.
 */
import { createHash } from 'node:crypto';
import type { FailureReason, SnapshotResult } from '../../domain/agent-result.ts';
import { joined, MOUNTS, manifestKey, objectKey, type SnapshotTask } from '../../domain/agent-task.ts';
import { DIGEST_BYTES, type SnapshotStream } from '../../etcd/snapshot.ts';
import { AgentFailure } from '../failure.ts';
import { compress } from '../format/compress.ts';
import { baseName, type Manifest, manifestText, parseManifest, readManifest } from '../format/manifest.ts';
import { type Identity, seal } from '../format/seal.ts';
import { type KeyRing, mountedKeys, type SealKey } from '../format/seal-key.ts';
import { mounted } from '../secrets.ts';
import { openStore, type PutOptions, type Store } from '../stores/store.ts';
import { type SpoolOptions, spooled } from '../transfer/spool.ts';
import { freeOnNode } from './room.ts';
import { type Facts, type From, openSource, piecesOf } from './source.ts';

export async function snapshot(task: SnapshotTask, ended: AbortSignal): Promise<SnapshotResult> {
  const late = AbortSignal.timeout(task.deadlineSeconds * 1000);
  const signal = AbortSignal.any([ended, late]);
  try {
    return await take(task, signal);
  } catch (error) {
    if (ended.aborted) throw ended.reason;
    if (late.aborted) throw tooLate(task);
    throw error;
  }
}

const tooLate = ({ deadlineSeconds }: SnapshotTask): AgentFailure =>
  new AgentFailure(
    'TimedOut',
    `the snapshot was not stored within ${deadlineSeconds} s, and nothing of it was left behind: check whether the store or the member is slow`,
  );

async function take(task: SnapshotTask, signal: AbortSignal): Promise<SnapshotResult> {
  const path = objectKey(task.folder ?? '', task.snapshot.name, task);
  const key = joined(task.prefix, path);
  const keys = task.encrypted ? await mountedKeys() : undefined;
  const sealing = keys?.current;
  const store = await openStore(task.to);
  const there = await inspectStore(store, key, { uid: task.snapshot.uid, keys: keys?.all, signal });
  if (there.done) return resultOf(store.uri(key), there.done);
  const [first, ...others] = [task.from, ...(task.others ?? [])];
  let from: From = first;
  for (const next of others) {
    try {
      return await takeFrom(task, from, { store, key, path, sealing, there, signal });
    } catch (error) {
      if (signal.aborted || !(error instanceof AgentFailure && OF_MEMBER.includes(error.reason))) throw error;
      process.stderr.write(`${error.message}; trying ${next.member}\n`);
    }
    from = next;
  }
  return takeFrom(task, from, { store, key, path, sealing, there, signal });
}

/** Failures that another member may not have. */
const OF_MEMBER: readonly FailureReason[] = ['NoMemberReachable', 'StreamBroken', 'DigestMismatch'];

async function takeFrom(
  task: SnapshotTask,
  from: From,
  at: {
    readonly store: Store;
    readonly key: string;
    readonly path: string;
    readonly sealing: SealKey | undefined;
    readonly there: There;
    readonly signal: AbortSignal;
  },
): Promise<SnapshotResult> {
  const { store, key, path, sealing, there, signal } = at;
  const source = await openSource(from, signal);
  try {
    const facts = await source.facts();
    const started = { takenAt: new Date().toISOString(), at: performance.now() };
    const stream = source.stream();
    const stored = await put(store, key, stream, {
      task,
      from,
      sealing,
      giveUp: () => source.growth(facts),
      identity: { path, uid: task.snapshot.uid, takenAt: started.takenAt },
      replace: there.object,
      signal,
      expectedBytes: facts.databaseBytes,
    });
    const durationMs = Math.round(performance.now() - started.at);
    const about = { ...stored, ...(await facts.hash), key, path, sealing, takenAt: started.takenAt, durationMs };
    const manifest = manifestOf(task, facts, stream, { ...about, member: from.member });
    await store.put(manifestKey(key), manifestBody(manifest, key, sealing), {
      uid: task.snapshot.uid,
      schedule: task.schedule?.uid,
      replace: there.manifest,
      signal,
      contentType: 'application/json',
    });
    return resultOf(store.uri(key), manifest);
  } finally {
    source.close();
  }
}

export interface There {
  /** An earlier run of this task succeeded. */
  readonly done?: Manifest;
  /** Leftovers of this task, which may be replaced. */
  readonly object: boolean;
  readonly manifest: boolean;
}

export async function inspectStore(
  store: Store,
  key: string,
  {
    uid,
    keys,
    signal,
  }: { readonly uid: string; readonly keys: KeyRing['all'] | undefined; readonly signal: AbortSignal },
): Promise<There> {
  const isOurs = async (at: string): Promise<number | undefined> => {
    const found = await store.head(at);
    if (found && found.uid !== uid)
      throw new AgentFailure(
        'ObjectExists',
        `${store.uri(at)} exists and does not belong to this snapshot: nothing was changed. Use another name, or move the object`,
      );
    return found?.size;
  };
  const size = await isOurs(key);
  const manifestSize = await isOurs(manifestKey(key));
  const there = { object: size !== undefined, manifest: manifestSize !== undefined };
  if (size === undefined || manifestSize === undefined) return there;
  // Our own manifest, but damaged: it is written again.
  const done = await readManifest(store, key, signal, keys).catch((error: unknown) => {
    if (!(error instanceof AgentFailure) || error.reason !== 'ManifestDamaged') throw error;
  });
  return done?.snapshot.uid === uid && done.object.sizeBytes === size ? { ...there, done } : there;
}

interface Stored {
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** Streams the database into the store. */
async function put(
  store: Store,
  key: string,
  stream: SnapshotStream,
  how: Pick<PutOptions, 'replace' | 'signal' | 'expectedBytes'> & {
    readonly task: SnapshotTask;
    readonly from: From;
    readonly sealing: SealKey | undefined;
    readonly giveUp: SpoolOptions['giveUp'];
    readonly identity: Identity;
  },
): Promise<Stored> {
  const { task, from, sealing, giveUp, identity, ...options } = how;
  const asItIs = task.compression === 'none' && !sealing;
  const hash = createHash('sha256');
  let sizeBytes = 0;
  async function* body(): AsyncGenerator<Uint8Array> {
    const database = piecesOf(from, stream);
    const small = task.compression === 'zstd' ? compress(database) : database;
    for await (const piece of sealing ? seal(sealing, identity, small) : small) {
      sizeBytes += piece.length;
      if (!asItIs) hash.update(piece); // otherwise the digest of the stream is used
      yield piece;
    }
  }
  const room = await spoolRoom(task);
  const owner = { uid: task.snapshot.uid, schedule: task.schedule?.uid };
  await store.put(key, spooled(body(), { ...room, giveUp }), { ...options, ...owner });
  return { sizeBytes, sha256: asItIs ? fileDigestOf(stream) : hash.digest('hex') };
}

/** On the disk of the node, of which a part stays free; without it, a slow store holds the member up. */
async function spoolRoom({ spoolBytes = 0 }: SnapshotTask): Promise<Pick<SpoolOptions, 'folder' | 'maxBytes'>> {
  if (spoolBytes === 0) return { maxBytes: 0 };
  const folder = mounted(MOUNTS.spool);
  return { folder, maxBytes: Math.min(spoolBytes, await freeOnNode(folder)) };
}

/** A store that reports success although the stream was not read to its end has stored something else. */
function fileDigestOf({ fileDigest }: SnapshotStream): string {
  if (fileDigest === undefined) throw new AgentFailure('Internal', 'the store finished before the stream ended');
  return fileDigest;
}

function manifestOf(
  { snapshot: { namespace, name, uid }, cluster, schedule, compression }: SnapshotTask,
  { clusterId, reported }: Facts,
  stream: SnapshotStream,
  stored: Stored &
    Pick<Manifest, 'hash' | 'takenAt' | 'durationMs' | 'member'> & {
      readonly key: string;
      readonly path: string;
      readonly sealing: SealKey | undefined;
    },
): Manifest {
  const { hash, path, sealing, takenAt, durationMs, member } = stored;
  const storageVersion = reported.storageVersion ?? stream.storageVersion;
  return {
    version: 1,
    object: { key: baseName(stored.key), ...(sealing && { path }), sizeBytes: stored.sizeBytes, sha256: stored.sha256 },
    database: { sizeBytes: stream.receivedBytes + DIGEST_BYTES, sha256: fileDigestOf(stream) },
    snapshot: { namespace, name, uid },
    cluster: { name: cluster.name, uid: cluster.uid, id: clusterId },
    ...(schedule && { schedule: { name: schedule.name, uid: schedule.uid } }),
    ...reported,
    ...(hash && { hash }),
    ...(storageVersion !== undefined && { storageVersion }),
    member,
    compression,
    ...(sealing && { encryption: { algorithm: 'AES-256-GCM', keyId: sealing.id } }),
    takenAt,
    durationMs,
  };
}

/**
 * Parsed before it is written: an unreadable manifest would make the next run take the snapshot again, and no restore
 * could use it.
 */
async function* manifestBody(manifest: Manifest, key: string, sealing?: SealKey): AsyncGenerator<Uint8Array> {
  const content = Buffer.from(manifestText(manifest, sealing));
  parseManifest(content, key);
  yield content;
}

export const resultOf = (uri: string, manifest: Manifest): SnapshotResult => ({
  ok: true,
  task: 'snapshot',
  artifact: {
    uri,
    sizeBytes: manifest.object.sizeBytes,
    checksum: `sha256:${manifest.object.sha256}`,
    databaseBytes: manifest.database.sizeBytes,
    revision: manifest.revision,
    totalKeys: manifest.totalKeys,
    etcdVersion: manifest.etcdVersion,
    clusterID: manifest.cluster.id,
    member: manifest.member,
    compression: manifest.compression === 'zstd' ? 'Zstd' : 'None',
    encrypted: manifest.encryption !== undefined,
    takenAt: manifest.takenAt,
    durationMilliseconds: manifest.durationMs,
  },
});
