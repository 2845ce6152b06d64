/**
 * Reads one stored snapshot from end to end: bytes decay, and a bucket loses objects, without anybody reading them until the
 * worst day. Nothing is written, neither to the store nor to the disk of the node. Only snapshots of one schedule are read, by
 * their manifests, and of those the one that was not verified for the longest time.
 */
import { DAMAGE, type Damage, MAX_ABSENT, MAX_DAMAGE_MESSAGE, type Success } from '../../domain/agent-result.ts';
import type { ScrubTask } from '../../domain/agent-task.ts';
import { present } from '../../lib/present.ts';
import { printable } from '../../lib/printable.ts';
import { AgentFailure } from '../failure.ts';
import type { ReadManifest } from '../format/manifest.ts';
import { type KeyRing, mountedKeys } from '../format/seal-key.ts';
import { withoutSecrets } from '../secrets.ts';
import { openStore, type Store } from '../stores/store.ts';
import { openSnapshot, storedBytes } from './open-snapshot.ts';
import { type History, historyOf, type Snapshot, slotIn, snapshotIn } from './stored-history.ts';

type Scrubbed = Extract<Success, { readonly task: 'scrub' }>;

interface Candidate {
  readonly key: string;
  readonly name: string;
  readonly uid?: string;
  /** When it was stored, as far as its manifest says so. */
  readonly takenAt: number;
  readonly sizeBytes?: number;
  /** Known without reading it. */
  readonly isLost?: true;
  /** Throws unless the snapshot is as it was when it was stored. */
  readonly verify: () => Promise<void>;
}

export interface Scrubbing {
  readonly store: Store;
  readonly task: ScrubTask;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
  readonly keys?: KeyRing | undefined;
}

/** The agent's task. */
export async function runScrub(task: ScrubTask, signal: AbortSignal): Promise<Success> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const keys = task.encrypted === true ? await mountedKeys() : undefined;
  try {
    return await scrub({ store: await openStore(task.at), task, say, signal, keys });
  } catch (error) {
    // A drained node ends all calls: whatever they return then says nothing about the snapshot.
    throw signal.aborted ? signal.reason : error;
  }
}

export async function scrub(scrubbing: Scrubbing): Promise<Scrubbed> {
  const { store, task, say, signal } = scrubbing;
  const history = await historyOf(scrubbing);
  const candidates = [...candidatesOf(scrubbing, history), ...(await newestLost(scrubbing, history))];
  const absent = absentOf(task, candidates, history);
  const result = { ok: true, task: 'scrub', ...(absent.length > 0 && { absent }) } as const;
  const [chosen] = candidates.toSorted(
    (a, b) =>
      Number(isNews(task, b)) - Number(isNews(task, a)) ||
      verifiedAt(task, a) - verifiedAt(task, b) ||
      a.takenAt - b.takenAt ||
      (a.key < b.key ? -1 : 1),
  );
  if (!chosen) return result;
  const { name, uid, sizeBytes } = chosen;
  say(`reading ${store.uri(chosen.key)}`);
  const about = { ...result, snapshot: { name, ...present({ uid }) }, ...present({ sizeBytes }) };
  try {
    await chosen.verify();
    return about;
  } catch (error) {
    const reason = error instanceof AgentFailure ? DAMAGE.find((each) => each === error.reason) : undefined;
    if (signal.aborted || reason === undefined) throw error;
    const { message } = error as AgentFailure;
    say(`damaged: ${message}`);
    return { ...about, damage: { reason, message: printable(withoutSecrets(message)).slice(0, MAX_DAMAGE_MESSAGE) } };
  }
}

/** What the manifest says is no reason to verify a snapshot later: a forged one would otherwise keep all others from being read. */
function candidatesOf(
  scrubbing: Scrubbing,
  { snapshots, remnants, withDamagedManifest }: History,
): readonly Candidate[] {
  const withoutObject = remnants.filter(({ lacks }) => lacks === 'object');
  return [
    ...snapshots.flatMap((snapshot) => candidateOf(scrubbing, snapshot) ?? []),
    ...withoutObject.map(({ key }) =>
      lost(scrubbing, key, 'ObjectNotFound', 'no longer exists, and its manifest does: find out what deleted it'),
    ),
    ...withDamagedManifest.map((key) =>
      lost(scrubbing, key, 'ManifestDamaged', 'has a manifest that cannot be read: take a new snapshot'),
    ),
  ].filter(({ name }) => slotIn(scrubbing.task, name) !== undefined);
}

const lost = ({ store, task }: Scrubbing, key: string, reason: Damage, how: string): Candidate => ({
  key,
  name: snapshotIn(key),
  takenAt: slotIn(task, snapshotIn(key)) ?? 0,
  isLost: true,
  verify: () => Promise.reject(new AgentFailure(reason, `${store.uri(key)} ${how}`)),
});

/** A bucket that was emptied has nothing that could be read: only the operator knows what has to be there. */
async function newestLost(scrubbing: Scrubbing, history: History): Promise<readonly Candidate[]> {
  const { store, task } = scrubbing;
  const { name, uid, key } = task.newest ?? {};
  if (name === undefined || key === undefined || storedIn(history).has(name) || (await store.head(key))) return [];
  const how = 'no longer exists, nor does its manifest, and retention never deletes the newest one: find out what did';
  return [{ ...lost(scrubbing, key, 'ObjectNotFound', how), name, ...present({ uid }) }];
}

/** Reported before anything is read: one that is lost is one too many, and a scrub reports one. */
const isNews = ({ damaged = [] }: ScrubTask, { name, isLost }: Candidate): boolean =>
  isLost === true && !damaged.some((each) => each.name === name);

/** `undefined`: the schedule has not taken it, as far as anything shows. One that differs from the operator's record was replaced. */
function candidateOf(scrubbing: Scrubbing, { key, takenAt, manifest, doubt }: Snapshot): Candidate | undefined {
  const { name, uid } = manifest.snapshot;
  const isRecorded = scrubbing.task.recorded?.some((each) => each.name === name) === true;
  if (doubt !== undefined && !isRecorded) return undefined;
  const verify = async (): Promise<void> => {
    if (doubt !== undefined)
      throw new AgentFailure('ManifestDamaged', `${scrubbing.store.uri(key)} was replaced: ${doubt}`);
    await readWhole(scrubbing, key, manifest);
  };
  return { key, name, uid, takenAt, sizeBytes: manifest.object.sizeBytes, verify };
}

/** A schedule that encrypts no longer has no key for its earlier snapshots: only what is stored is compared then. */
async function readWhole(
  { store, task: { bytesPerSecond }, signal, keys }: Scrubbing,
  key: string,
  manifest: ReadManifest,
): Promise<void> {
  const isSealed = manifest.encryption !== undefined;
  const wanted = { store, key, signal, bytesPerSecond, ...(isSealed && keys && { keys }) };
  const bytes = isSealed && !keys ? storedBytes(wanted, manifest) : (await openSnapshot(wanted, manifest)).pages;
  for await (const _ of bytes) signal.throwIfAborted();
}

function verifiedAt({ verified }: ScrubTask, { name, uid, takenAt }: Candidate): number {
  const times = verified.flatMap((each) => (each.name === name && (each.uid ?? uid) === uid ? each.time : []));
  return Math.max(takenAt, ...times);
}

/** A snapshot that retention or a user has deleted is no longer a damaged one. */
function absentOf({ damaged = [] }: ScrubTask, candidates: readonly Candidate[], history: History): readonly string[] {
  const known = new Set([...storedIn(history), ...candidates.map(({ name }) => name)]);
  return damaged.flatMap(({ name }) => (known.has(name) ? [] : [name])).slice(0, MAX_ABSENT);
}

const storedIn = ({ snapshots, remnants, withDamagedManifest }: History): ReadonlySet<string> =>
  new Set([
    ...snapshots.map(({ manifest }) => manifest.snapshot.name),
    ...[...remnants.map(({ key }) => key), ...withDamagedManifest].map(snapshotIn),
  ]);
