/** What a store has of one schedule: snapshots, which have a manifest, and objects whose agent was killed before it wrote one. */
import { slotOf } from '../../api/names.ts';
import { MANIFEST, type PruneTask } from '../../domain/agent-task.ts';
import { present } from '../../lib/present.ts';
import type { Stored } from '../../lib/retention.ts';
import { AgentFailure } from '../failure.ts';
import { baseName, type ReadManifest, readManifest } from '../format/manifest.ts';
import type { KeyRing } from '../format/seal-key.ts';
import type { Store } from '../stores/store.ts';
import { inParallel } from './in-parallel.ts';

export interface Snapshot extends Stored {
  readonly manifest: ReadManifest;
  /** Why the manifest may be forged. */
  readonly doubt?: string;
}

/** Half a snapshot: what a killed agent left, or what is left of one that was lost. */
export interface Remnant extends Stored {
  readonly lacks: 'object' | 'manifest';
}

export interface History {
  readonly snapshots: readonly Snapshot[];
  /** Manifests without an object; and objects of this schedule without a manifest, where no agent writes one any more. */
  readonly remnants: readonly Remnant[];
  /** Objects of this schedule whose manifest cannot be read. */
  readonly withDamagedManifest: readonly string[];
}

/** Whose snapshots are read. */
type HistoryTask = Pick<
  PruneTask,
  'prefix' | 'cluster' | 'schedule' | 'restored' | 'recorded' | 'allRecordedFrom' | 'damaged' | 'now'
>;

export interface Reading {
  readonly store: Store;
  readonly task: HistoryTask;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
  /** Of an encrypted schedule. */
  readonly keys?: KeyRing | undefined;
}

/** One after the other, 8,700 manifests of an hourly schedule took 12 minutes after each snapshot. */
export const WIDTH = 16;
/** No agent writes for that long: a Job's deadline is half an hour and a second for each MiB. */
export const UNFINISHED_MS = 2 * 86_400_000;

/** Snapshots are named after their schedule, so others are not even listed. */
export const listedPrefix = ({ prefix, schedule }: HistoryTask): string =>
  `${prefix === '' ? '' : `${prefix}/`}${schedule.name}-`;

export async function historyOf(reading: Reading): Promise<History> {
  const { store, task, signal } = reading;
  const sizes = new Map<string, number>();
  for await (const { key, size } of store.list(listedPrefix(task))) {
    signal.throwIfAborted();
    if (isBeside(task, key)) sizes.set(key, size);
  }
  const keys = [...sizes.keys()];
  const described = keys.filter((key) => key.endsWith(MANIFEST)).map((key) => key.slice(0, -MANIFEST.length));
  const found = await inParallel(described, WIDTH, (key) => snapshotAt(reading, key, sizes.get(key)));
  const bare = keys.filter((key) => isUnfinished(task, key) && !sizes.has(`${key}${MANIFEST}`));
  const orphans = await inParallel(bare, WIDTH, async (key) =>
    (await isOrphan(reading, key)) ? [orphanAt(task, key)] : [],
  );
  return {
    snapshots: found.flatMap((each) => (each?.is === 'snapshot' ? [each.snapshot] : [])),
    remnants: [...found.flatMap((each) => (each?.is === 'remnant' ? [each.remnant] : [])), ...orphans.flat()],
    withDamagedManifest: found.flatMap((each) => (each?.is === 'withDamagedManifest' ? [each.key] : [])),
  };
}

/** In the folder itself, not in one below it. */
const isBeside = (task: HistoryTask, key: string): boolean => !key.slice(listedPrefix(task).length).includes('/');

type Described =
  | { readonly is: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly is: 'remnant'; readonly remnant: Remnant }
  | { readonly is: 'withDamagedManifest'; readonly key: string };

/** `undefined`: foreign, or unreadable. */
async function snapshotAt(
  reading: Reading,
  key: string,
  listedSize: number | undefined,
): Promise<Described | undefined> {
  const { store, task, say, signal } = reading;
  signal.throwIfAborted();
  const manifest = await manifestOf(reading, key);
  if (manifest === 'damaged')
    return (await store.head(key))?.schedule === task.schedule.uid ? { is: 'withDamagedManifest', key } : undefined;
  if (manifest?.cluster.uid !== task.cluster.uid || manifest.schedule?.uid !== task.schedule.uid) return undefined;
  // A listing may be stale: the object itself is read before it counts as deleted.
  const size = listedSize ?? (await store.head(key))?.size;
  const takenAt = timeOf(reading, manifest);
  if (size === undefined) return { is: 'remnant', remnant: { key, takenAt, good: false, lacks: 'object' } };
  if (size !== manifest.object.sizeBytes)
    say(`damaged: ${store.uri(key)} has ${size} bytes, and ${manifest.object.sizeBytes} were stored`);
  const doubt = doubtAbout(reading, manifest);
  if (doubt !== undefined) say(`not trusted: ${store.uri(key)}, because ${doubt}`);
  const { name, uid } = manifest.snapshot;
  const isDamaged = task.damaged?.some((each) => each.name === name && (each.uid ?? uid) === uid) === true;
  if (isDamaged) say(`damaged: a scrub found that ${store.uri(key)} cannot be restored`);
  const snapshot = {
    key,
    takenAt,
    good: size === manifest.object.sizeBytes && doubt === undefined && !isDamaged,
    certain: doubt === undefined && isKnown(task, name, manifest.authentic),
    restorable: isRestored(task, name, uid),
    manifest,
    ...present({ doubt }),
  };
  return { is: 'snapshot', snapshot };
}

const isRestored = ({ restored }: HistoryTask, name: string, uid?: string): boolean =>
  restored !== undefined && (restored.name === name || (uid !== undefined && restored.uid === uid));

export const slotIn = ({ schedule }: Pick<HistoryTask, 'schedule'>, snapshot: string): number | undefined =>
  slotOf(schedule.name, snapshot);

/**
 * By the operator's clock, which has set the minute in the name, or by that of the agent's node if that is later: by a
 * node whose clock is behind, a snapshot would be too old as soon as it is taken. The time in a manifest that any client may have
 * written does not count: forged ones would be newer than all real ones, and push them out.
 */
function timeOf({ task }: Pick<Reading, 'task'>, { takenAt, snapshot, authentic }: ReadManifest): number {
  const [time, slot] = [Date.parse(takenAt), slotIn(task, snapshot.name)];
  if (slot !== undefined && !isKnown(task, snapshot.name, authentic)) return slot;
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : Math.max(time, slot ?? time);
}

/** A manifest that no other client can have written, or that the operator can compare. */
const isKnown = (task: HistoryTask, snapshot: string, authentic: true | undefined): boolean =>
  authentic === true || recordOf(task, snapshot) !== undefined;

const recordOf = ({ recorded }: HistoryTask, snapshot: string) => recorded?.find(({ name }) => name === snapshot);

/**
 * Why a manifest may be forged. Who may only write to the bucket could otherwise push real snapshots out of the
 * retention with pairs of an object and a manifest, and have the agent, which may delete, delete them.
 */
export function doubtAbout(
  { task, keys }: Pick<Reading, 'task' | 'keys'>,
  { snapshot, object, authentic }: ReadManifest,
): string | undefined {
  const { recorded = [] } = task;
  const slot = slotIn(task, snapshot.name);
  const { allRecordedFrom = Math.min(...recorded.flatMap(({ name }) => slotIn(task, name) ?? [])) } = task;
  if (slot === undefined || !object.key.startsWith(`${snapshot.name}.db`))
    return 'its name is none that the schedule gives';
  const record = recordOf(task, snapshot.name);
  if (!record && authentic) return undefined;
  if (!record && keys) return 'its manifest is not authenticated with a key of the Secret';
  if (!record) return slot > allRecordedFrom ? 'the operator has no record of it' : undefined;
  const isSame = (record.uid ?? snapshot.uid) === snapshot.uid && record.sha256 === object.sha256;
  return isSame ? undefined : 'the operator has recorded another uid or SHA-256';
}

async function manifestOf(
  { store, say, signal, keys }: Reading,
  key: string,
): Promise<ReadManifest | 'damaged' | undefined> {
  try {
    return await readManifest(store, key, signal, keys?.all);
  } catch (error) {
    if (!(error instanceof AgentFailure) || !['ManifestDamaged', 'ObjectNotFound'].includes(error.reason)) throw error;
    say(`left alone: ${error.message}`);
    return error.reason === 'ManifestDamaged' ? 'damaged' : undefined;
  }
}

/** The EtcdSnapshot that the key of an object names. */
export const snapshotIn = (key: string): string => /^(.*)\.db(?:\.zst)?(?:\.enc)?$/.exec(baseName(key))?.[1] ?? '';

/** Its name has a minute that is long past. */
function isUnfinished(task: HistoryTask, key: string): boolean {
  const slot = slotIn(task, snapshotIn(key));
  return slot !== undefined && slot < task.now - UNFINISHED_MS;
}

/** A whole snapshot all the same, if it was its manifest that was lost: it is kept for as long as others of its age. */
function orphanAt(task: HistoryTask, key: string): Remnant {
  const name = snapshotIn(key);
  return { key, takenAt: slotIn(task, name) ?? 0, good: false, restorable: isRestored(task, name), lacks: 'manifest' };
}

/** The object itself says whose it is: a name alone may be that of a schedule in another namespace. */
export const isOrphan = async ({ store, task }: Pick<Reading, 'store' | 'task'>, key: string): Promise<boolean> =>
  (await store.head(key))?.schedule === task.schedule.uid && (await store.head(`${key}${MANIFEST}`)) === undefined;
