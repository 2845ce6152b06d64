/** Whether the store has a snapshot whose Job was deleted before the operator received its result. Takes none. */
import type { SnapshotResult } from '../../domain/agent-result.ts';
import { type LookupTask, manifestKey } from '../../domain/agent-task.ts';
import { AgentFailure } from '../failure.ts';
import { readManifest } from '../format/manifest.ts';
import { mountedKeys } from '../format/seal-key.ts';
import { openStore } from '../stores/store.ts';
import { resultOf } from './snapshot.ts';

export async function lookup({ uid, at, key, encrypted }: LookupTask, signal: AbortSignal): Promise<SnapshotResult> {
  const keys = encrypted ? (await mountedKeys()).all : [];
  const store = await openStore(at);
  const [object, described] = [await store.head(key), await store.head(manifestKey(key))];
  if (object?.uid === uid && described?.uid === uid) {
    const manifest = await readManifest(store, key, signal, keys);
    if (manifest.snapshot.uid === uid && manifest.object.sizeBytes === object.size)
      return resultOf(store.uri(key), manifest);
  }
  throw new AgentFailure(
    'ObjectNotFound',
    `${store.uri(key)} is not there, or is not the whole snapshot of this EtcdSnapshot`,
  );
}
