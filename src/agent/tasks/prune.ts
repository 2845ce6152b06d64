/**
 * Removes stored snapshots of one schedule that its retention does not keep. Only manifests identify them: an object
 * with a manifest of another cluster or schedule is not touched, and one without only if it says itself that it is an
 * unfinished one of this schedule.
 */
import type { Success } from '../../domain/agent-result.ts';
import { MANIFEST, type PruneTask } from '../../domain/agent-task.ts';
import { parseDuration } from '../../lib/duration.ts';
import { type RetentionPolicy, retain } from '../../lib/retention.ts';
import { AgentFailure, misconfigured } from '../failure.ts';
import { type KeyRing, mountedKeys } from '../format/seal-key.ts';
import { type Deletion, openStore, type Store } from '../stores/store.ts';
import { inParallel } from './in-parallel.ts';
import {
  historyOf,
  isOrphan,
  listedPrefix,
  type Reading,
  type Remnant,
  type Snapshot,
  UNFINISHED_MS,
  WIDTH,
} from './stored-history.ts';

type Pruned = Omit<Extract<Success, { readonly task: 'prune' }>, 'ok' | 'task'>;
type Removal = Deletion | 'locked' | 'foreign';

/** The agent's task. */
export async function runPrune(task: PruneTask, signal: AbortSignal): Promise<Success> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const keys = task.encrypted === true ? await mountedKeys() : undefined;
  return { ok: true, task: 'prune', ...(await prune(await openStore(task.at), task, say, signal, keys)) };
}

export async function prune(
  store: Store,
  task: PruneTask,
  say: (line: string) => void,
  signal: AbortSignal,
  keys?: KeyRing,
): Promise<Pruned> {
  const reading = { store, task, say, signal, keys };
  const policy = policyOf(task.retention);
  const { snapshots, remnants } = await historyOf(reading);
  const { keep, remove } = retain<Snapshot | Remnant>([...snapshots, ...remnants], policy, task.now);
  for (const { entry, because } of keep) say(`kept: ${store.uri(entry.key)}${lackOf(entry)} (${because.join(', ')})`);
  const removals = await inParallel(remove.filter(isSnapshot), WIDTH, (entry) => removeSnapshot(reading, entry));
  for (const entry of remove) if (!isSnapshot(entry)) await removeRemnant(reading, entry);
  const uploads = await store.removeUnfinished(listedPrefix(task), task.now - UNFINISHED_MS);
  if (uploads > 0) say(`removed: ${uploads} unfinished uploads`);
  const count = (...of: readonly Removal[]): number => removals.filter((each) => of.includes(each)).length;
  const [removed, locked, hidden] = [count('deleted', 'hidden'), count('locked'), count('hidden')];
  return {
    kept: snapshots.length - removed,
    removed,
    ...(locked > 0 && { locked }),
    ...(hidden > 0 && { hidden }),
  };
}

const isSnapshot = (entry: Snapshot | Remnant): entry is Snapshot => !('lacks' in entry);
const lackOf = (entry: Snapshot | Remnant): string => ('lacks' in entry ? `, which has no ${entry.lacks}` : '');

function policyOf({ maxAge, ...counts }: PruneTask['retention']): RetentionPolicy {
  const age = maxAge === undefined ? undefined : parseDuration(maxAge);
  if (maxAge !== undefined && age === undefined)
    throw misconfigured(`retention.maxAge "${maxAge}" is not a duration: write it like 720h`);
  return { ...counts, maxAge: age };
}

/**
 * The object first: one without a manifest would never be found again. Not when the object does not say itself that it
 * belongs to this snapshot: a forged manifest beside a foreign object would have it deleted.
 */
async function removeSnapshot({ store, task, say, signal }: Reading, { key, manifest }: Snapshot): Promise<Removal> {
  signal.throwIfAborted();
  const there = await store.head(key);
  const isOurs = there?.uid === manifest.snapshot.uid && (there.schedule ?? task.schedule.uid) === task.schedule.uid;
  if (there && !isOurs) {
    say(`left alone: ${store.uri(key)} is not the snapshot that its manifest describes`);
    return 'foreign';
  }
  const removal = await removeObject(store, key, say);
  if (removal !== 'locked') await store.delete(`${key}${MANIFEST}`);
  return removal;
}

/** One locked object must not keep all younger ones. */
async function removeObject(store: Store, key: string, say: (line: string) => void): Promise<Removal> {
  try {
    const removal = await store.delete(key);
    say(`removed: ${store.uri(key)}${removal === 'hidden' ? ', and the bucket keeps it as an older version' : ''}`);
    return removal;
  } catch (error) {
    if (!(error instanceof AgentFailure) || error.reason !== 'ObjectLocked') throw error;
    say(`locked: ${error.message}`);
    return 'locked';
  }
}

/** What the retention would have kept stays: a scrub reports what is lost, and an object alone can still be restored. */
async function removeRemnant(reading: Reading, { key, lacks }: Remnant): Promise<void> {
  const { store, say } = reading;
  if (lacks === 'object') {
    say(`removed: the manifest of ${store.uri(key)}, which no longer exists`);
    await store.delete(`${key}${MANIFEST}`);
  } else if (await isOrphan(reading, key)) {
    // Asked again: a copy of an old snapshot has its manifest a moment after its object.
    say(`unfinished: ${store.uri(key)} has no manifest`);
    await removeObject(store, key, say);
  }
}
