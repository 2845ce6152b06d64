/**
 * Tries a location before the first snapshot is due: writes a small object, reads it, lists and deletes it. Each call is one
 * that snapshots, retention and restores make, so that a missing permission has the message that they would have.
 */
import { randomUUID } from 'node:crypto';
import { MAX_DAMAGE_MESSAGE, type Success } from '../../domain/agent-result.ts';
import { joined, type ProbeTask } from '../../domain/agent-task.ts';
import { printable } from '../../lib/printable.ts';
import { AgentFailure } from '../failure.ts';
import { mountedKeys } from '../format/seal-key.ts';
import { withoutSecrets } from '../secrets.ts';
import { openStore, type Store } from '../stores/store.ts';

type Probed = Extract<Success, { readonly task: 'probe' }>;

const CONTENT = Buffer.from(
  'Written by etcd-operator to find out whether snapshots can be stored here. It can be deleted.\n',
);

/** The agent's task. */
export async function runProbe(task: ProbeTask, signal: AbortSignal): Promise<Success> {
  if (task.encrypted === true) await mountedKeys();
  return probe(await openStore(task.at), task, signal);
}

export async function probe(store: Store, { prefix, schedule }: ProbeTask, signal: AbortSignal): Promise<Probed> {
  // Of this schedule alone, so that what is listed is bounded by what earlier probes have left behind.
  const own = joined(prefix, `etcd-operator-probe-${schedule.uid}-`);
  const key = `${own}${randomUUID()}`;
  await store.put(key, once(CONTENT), { uid: schedule.uid, schedule: schedule.uid, replace: false, signal });
  const cannotList = await refusal(() => requireListed(store, own, key));
  const read = await readAll(store, key, signal);
  if (!read.equals(CONTENT))
    throw new AgentFailure(
      'StoreUnreachable',
      `${store.uri(key)} was written, and other bytes were read: check the service, and proxies before it`,
    );
  const cannotDelete = await refusal(() => deleteAll(store, own, key, cannotList !== undefined));
  return {
    ok: true,
    task: 'probe',
    ...(cannotList !== undefined && { cannotList }),
    ...(cannotDelete !== undefined && { cannotDelete }),
  };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function readAll(store: Store, key: string, signal: AbortSignal): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of (await store.get(key, signal)).body) {
    pieces.push(piece);
    if (pieces.length > CONTENT.length) break; // it is another object
  }
  return Buffer.concat(pieces);
}

async function requireListed(store: Store, own: string, key: string): Promise<void> {
  for await (const object of store.list(own)) if (object.key === key) return;
  throw new AgentFailure(
    'Misconfigured',
    `${store.uri(key)} was written and is not listed: retention and restores of the newest snapshot would not find any. Check the service`,
  );
}

/** Also what killed agents have left behind. A lock is the user's wish: the object is deleted by a later probe. */
async function deleteAll(store: Store, own: string, key: string, isBlind: boolean): Promise<void> {
  const keys = isBlind ? [key] : (await Array.fromAsync(store.list(own))).map((object) => object.key);
  for (const each of keys)
    await store.delete(each).catch((error: unknown) => {
      if (!(error instanceof AgentFailure) || error.reason !== 'ObjectLocked') throw error;
    });
}

/** Snapshots can be stored by a user who may neither list nor delete: then stolen credentials cannot delete what is stored. */
async function refusal(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!(error instanceof AgentFailure) || error.reason !== 'AccessDenied') throw error;
    return printable(withoutSecrets(error.message)).slice(0, MAX_DAMAGE_MESSAGE);
  }
}
