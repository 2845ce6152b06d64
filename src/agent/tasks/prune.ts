/**
 * Removes stored snapshots of one schedule that its retention does not keep. Only manifests identify them: an object
 * without one, or with one of another cluster or schedule, is not touched.
 */
import type { Success } from '../../domain/agent-result.ts';
import { MANIFEST, type PruneTask } from '../../domain/agent-task.ts';
import { parseDuration } from '../../lib/duration.ts';
import { type RetentionPolicy, retain, type Stored } from '../../lib/retention.ts';
import { AgentFailure, misconfigured } from '../failure.ts';
import { baseName, type Manifest, readManifest } from '../format/manifest.ts';
import { openStore, type Store } from '../stores/store.ts';

interface Snapshot extends Stored {
  readonly manifest: Manifest;
}

type Pruned = Pick<Extract<Success, { readonly task: 'prune' }>, 'kept' | 'removed'>;

/** The agent's task. */
export async function runPrune(task: PruneTask, signal: AbortSignal): Promise<Success> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  return { ok: true, task: 'prune', ...(await prune(await openStore(task.at), task, say, signal)) };
}

export async function prune(
  store: Store,
  task: PruneTask,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Pruned> {
  const policy = policyOf(task.retention);
  const history = await historyOf(store, task, say, signal);
  const { keep, remove } = retain(history, policy, task.now);
  for (const { entry, because } of keep) say(`kept: ${store.uri(entry.key)} (${because.join(', ')})`);
  let removed = 0;
  for (const entry of remove) {
    signal.throwIfAborted();
    if (await removeOne(store, entry, say)) removed += 1;
  }
  return { kept: keep.length + (remove.length - removed), removed };
}

function policyOf({ maxAge, ...counts }: PruneTask['retention']): RetentionPolicy {
  const age = maxAge === undefined ? undefined : parseDuration(maxAge);
  if (maxAge !== undefined && age === undefined)
    throw misconfigured(`retention.maxAge "${maxAge}" is not a duration: write it like 720h`);
  return { ...counts, maxAge: age };
}

/** All snapshots of this schedule. They are named after it, so others are not even listed. */
async function historyOf(
  store: Store,
  { prefix, cluster, schedule, restored }: PruneTask,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly Snapshot[]> {
  const folder = prefix === '' ? '' : `${prefix}/`;
  const sizes = new Map<string, number>();
  for await (const { key, size } of store.list(`${folder}${schedule.name}-`)) sizes.set(key, size);
  const found: Snapshot[] = [];
  for (const manifestKey of sizes.keys()) {
    signal.throwIfAborted();
    const key = manifestKey.slice(0, -MANIFEST.length);
    if (!manifestKey.endsWith(MANIFEST) || key !== `${folder}${baseName(key)}`) continue;
    const manifest = await manifestOf(store, key, say, signal);
    if (manifest?.cluster.uid !== cluster.uid || manifest.schedule?.uid !== schedule.uid) continue;
    // A listing may be stale: the object itself is read before it counts as deleted.
    const size = sizes.get(key) ?? (await store.head(key))?.size;
    if (size === undefined) {
      say(`removed: the manifest of ${store.uri(key)}, which no longer exists`);
      await store.delete(manifestKey);
      continue;
    }
    const takenAt = Date.parse(manifest.takenAt);
    const good = size === manifest.object.sizeBytes;
    if (!good) say(`damaged: ${store.uri(key)} has ${size} bytes, and ${manifest.object.sizeBytes} were stored`);
    const { name, uid } = manifest.snapshot;
    const restorable = restored !== undefined && (restored.name === name || restored.uid === uid);
    found.push({
      key,
      takenAt: Number.isNaN(takenAt) ? Number.POSITIVE_INFINITY : takenAt,
      good,
      restorable,
      manifest,
    });
  }
  return found;
}

async function manifestOf(
  store: Store,
  key: string,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Manifest | undefined> {
  try {
    return await readManifest(store, key, signal);
  } catch (error) {
    if (!(error instanceof AgentFailure) || !['ManifestDamaged', 'ObjectNotFound'].includes(error.reason)) throw error;
    say(`left alone: ${error.message}`);
    return undefined;
  }
}

/**
 * The object first: one without a manifest would never be found again. Not when it belongs to another snapshot by now.
 */
async function removeOne(store: Store, { key, manifest }: Snapshot, say: (line: string) => void): Promise<boolean> {
  const there = await store.head(key);
  if (there && there.uid !== undefined && there.uid !== manifest.snapshot.uid) {
    say(`left alone: ${store.uri(key)} is not the snapshot that its manifest describes`);
    return false;
  }
  await store.delete(key);
  await store.delete(`${key}${MANIFEST}`);
  say(`removed: ${store.uri(key)}`);
  return true;
}
