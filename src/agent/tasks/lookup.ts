/** Whether the store has a snapshot whose Job was deleted before the operator received its result. Takes none. */
import { createHash } from 'node:crypto';
import type { SnapshotResult } from '../../domain/agent-result.ts';
import { type LookupTask, manifestKey } from '../../domain/agent-task.ts';
import { DIGEST_BYTES } from '../../etcd/snapshot.ts';
import { AgentFailure } from '../failure.ts';
import { readManifest } from '../format/manifest.ts';
import { mountedKeys } from '../format/seal-key.ts';
import { openStore, type Store } from '../stores/store.ts';
import { resultOf } from './snapshot.ts';

export async function lookup(
  { uid, at, key, encrypted, withoutManifest = false }: LookupTask,
  signal: AbortSignal,
): Promise<SnapshotResult> {
  const keys = encrypted ? (await mountedKeys()).all : [];
  const store = await openStore(at);
  const [object, described] = [await store.head(key), await store.head(manifestKey(key))];
  if (object?.uid === uid && described?.uid === uid) {
    const manifest = await readManifest(store, key, signal, keys);
    if (manifest.snapshot.uid === uid && manifest.object.sizeBytes === object.size)
      return resultOf(store.uri(key), manifest);
  }
  if (withoutManifest && object?.uid === uid && !described) {
    const checksum = await checksumOf(store, key, signal);
    if (checksum !== undefined) return bareResult(store.uri(key), object.size, checksum);
  }
  throw new AgentFailure(
    'ObjectNotFound',
    `${store.uri(key)} is not there, or is not the whole snapshot of this EtcdSnapshot`,
  );
}

/** The SHA-256 of the object; `undefined` if it does not end with etcd's digest of everything before it. */
async function checksumOf(store: Store, key: string, signal: AbortSignal): Promise<string | undefined> {
  const { body } = await store.get(key, signal);
  const [whole, database] = [createHash('sha256'), createHash('sha256')];
  let end = Buffer.alloc(0);
  for await (const piece of body) {
    whole.update(piece);
    const held = Buffer.concat([end, piece]);
    const kept = Math.min(DIGEST_BYTES, held.length);
    database.update(held.subarray(0, held.length - kept));
    end = held.subarray(held.length - kept);
  }
  return database.digest().equals(end) ? whole.digest('hex') : undefined;
}

const bareResult = (uri: string, sizeBytes: number, checksum: string): SnapshotResult => ({
  ok: true,
  task: 'snapshot',
  artifact: {
    uri,
    sizeBytes,
    checksum: `sha256:${checksum}`,
    databaseBytes: sizeBytes,
    compression: 'None',
    encrypted: false,
  },
});
