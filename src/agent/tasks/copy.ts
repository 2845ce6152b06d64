/**
 * Copies a stored snapshot and its manifest to a second location, byte by byte: it needs neither the key nor the disk of the
 * node. As with a snapshot, the manifest is written last, a task that is run again finds its leftovers, and a foreign object is
 * not touched.
 */
import { createHash } from 'node:crypto';
import type { Success } from '../../domain/agent-result.ts';
import { type CopyTask, manifestKey } from '../../domain/agent-task.ts';
import { AgentFailure } from '../failure.ts';
import { manifestBytes, parseManifest } from '../format/manifest.ts';
import { secondSecretFile } from '../secrets.ts';
import { openStore, type Store } from '../stores/store.ts';
import { inspectStore } from './snapshot.ts';

type Copied = Extract<Success, { readonly task: 'copy' }>;

/** The agent's task. */
export async function runCopy(task: CopyTask, signal: AbortSignal): Promise<Success> {
  const [from, to] = [await openStore(task.from), await openStore(task.to, secondSecretFile)];
  if (isSamePlace(task.from, task.to) && from.uri(task.key) === to.uri(task.toKey)) throw samePlace(to, task);
  try {
    return await copy(from, to, task, signal);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}

const samePlace = (to: Store, { toKey }: CopyTask): AgentFailure =>
  new AgentFailure(
    'Misconfigured',
    `copyTo.destination is where the snapshot already is, ${to.uri(toKey)}: name another bucket, folder or volume`,
  );

const endpointOf = (place: CopyTask['from']): string | undefined => ('endpoint' in place ? place.endpoint : undefined);

/** Volumes are mounted at paths of their own. A bucket of the same name at another endpoint is another one. */
const isSamePlace = (from: CopyTask['from'], to: CopyTask['to']): boolean =>
  from.kind === to.kind && endpointOf(from) === endpointOf(to);

export async function copy(from: Store, to: Store, task: CopyTask, signal: AbortSignal): Promise<Copied> {
  const { key, toKey, uid, schedule, sha256 } = task;
  const result = { ok: true, task: 'copy', uri: to.uri(toKey) } as const;
  const there = await inspectStore(to, toKey, { uid, keys: undefined, signal });
  if (there.object && (await isSameObject(from, to, task))) throw samePlace(to, task);
  if (there.done?.object.sha256 === sha256) return result;
  const content = await manifestBytes(from, key, signal);
  const { object, snapshot } = parseManifest(content, key);
  if (snapshot.uid !== uid || object.sha256 !== sha256)
    throw damaged(`the manifest of ${from.uri(key)} is not the one that was stored`);
  const { size, body } = await from.get(key, signal);
  if (size !== object.sizeBytes)
    throw damaged(`${from.uri(key)} has ${size} bytes, and ${object.sizeBytes} were stored`);
  const owner = { uid, schedule, signal };
  const unchanged = verified(body, from.uri(key), task);
  await to.put(toKey, unchanged, { ...owner, replace: there.object, expectedBytes: size });
  const described = { ...owner, replace: there.manifest, contentType: 'application/json' };
  await to.put(manifestKey(toKey), once(content), described);
  return result;
}

/** Two claims may name one volume, and two endpoints one bucket: the retention of the copies would delete the only copy. */
async function isSameObject(from: Store, to: Store, { key, toKey }: CopyTask): Promise<boolean> {
  const [first, second] = [await from.head(key), await to.head(toKey)];
  return first?.upload !== undefined && first.upload === second?.upload;
}

const damaged = (how: string): AgentFailure =>
  new AgentFailure('SnapshotDamaged', `${how}: there is nothing to copy. Take a new snapshot, and check the store`);

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Fails before its end unless these are the bytes that were stored: the copy does not become visible then. */
async function* verified(
  body: AsyncIterable<Uint8Array>,
  uri: string,
  { sha256 }: CopyTask,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  for await (const piece of body) {
    hash.update(piece);
    yield piece;
  }
  if (hash.digest('hex') !== sha256) throw damaged(`${uri} does not have the SHA-256 with which it was stored`);
}
