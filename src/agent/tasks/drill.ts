/**
 * Restore drill: a stored snapshot is restored into an etcd that only this process can reach, twice. First with the revisions of
 * the source, and the data that it serves is compared with the manifest; then as a restore of the cluster would make it, with
 * raised revisions, and it has to accept a write. The second is what the time of a recovery is measured with.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Success } from '../../domain/agent-result.ts';
import { type DrillTask, MOUNTS } from '../../domain/agent-task.ts';
import type { Ask, EtcdClient } from '../../etcd/client.ts';
import type { Result } from '../../etcd/errors.ts';
import { present } from '../../lib/present.ts';
import type { Manifest } from '../format/manifest.ts';
import { mounted } from '../secrets.ts';
import { type DrillEtcd, drillFailed, withEtcd } from './drill-etcd.ts';
import { checkPages } from './etcdutl.ts';
import { wantedBy } from './fetch.ts';
import type { Wanted } from './open-snapshot.ts';
import { fetchTo, makeData } from './restore.ts';

const NAME = 'drill';
/** For a call that reads the whole database. */
const READ_MS = 10 * 60_000;
/** No client has it: keys of Kubernetes start with a slash. */
const WRITTEN_KEY = '\0etcd-operator-drill';

/** Loopback only. Tests, which run in parallel, use another address. */
const ADDRESS_VARIABLE = 'DRILL_ADDRESS';

type Drilled = Omit<Extract<Success, { readonly task: 'drill' }>, 'ok' | 'task' | 'durationMilliseconds'>;

export async function drill(task: DrillTask, signal: AbortSignal): Promise<Success> {
  const began = performance.now();
  try {
    const drilled = await drillIn(mounted(MOUNTS.scratch), await wantedBy(task, signal), task);
    return { ok: true, task: 'drill', ...drilled, durationMilliseconds: Math.round(performance.now() - began) };
  } catch (error) {
    // A drained node ends all calls: whatever they return then says nothing about the snapshot.
    throw signal.aborted ? signal.reason : error;
  }
}

/** The folder may have the leftovers of an earlier attempt, which are removed. */
async function drillIn(folder: string, wanted: Wanted, task: DrillTask): Promise<Drilled> {
  const { signal } = wanted;
  const address = process.env[ADDRESS_VARIABLE] ?? '127.0.0.1';
  const [room, dataDir] = [join(folder, 'fetched'), join(folder, 'data')];
  await rm(room, { recursive: true, force: true });
  await mkdir(room, { recursive: true });
  const began = performance.now();
  // Auth of the snapshot is disabled in these copies: the drill has no password.
  const fetched = await fetchTo(
    wanted,
    { version: task.version, auth: true },
    { data: room, ...present({ limitBytes: task.limitBytes }) },
  );
  const fetchMs = performance.now() - began;
  const { manifest, sizeBytes: databaseBytes } = fetched;
  if (!manifest) throw drillFailed(`${wanted.key} has no manifest, so there is nothing to compare it with`);
  await checkPages(fetched.etcdutl, fetched.file, signal);
  const peerURL = `http://${address}:2380`;
  const target = { dataDir, member: NAME, initialCluster: `${NAME}=${peerURL}`, token: NAME, peerURL };
  const restored = async <T>(bumpRevision: number, work: (etcd: DrillEtcd) => Promise<T>): Promise<T> => {
    await rm(dataDir, { recursive: true, force: true });
    await mkdir(dataDir, { mode: 0o700 });
    const options = { bumpRevision, version: task.version, auth: true, resetRootPassword: true };
    await makeData(fetched, { ...target, ...options }, signal);
    return withEtcd({ ...target, endpoint: `http://${address}:2379`, databaseBytes }, signal, work);
  };
  const compared = await restored(0, (etcd) => compare(etcd, manifest, signal));
  const again = performance.now();
  const writtenAt = await restored(task.bumpRevision, (etcd) =>
    write(etcd, manifest.revision + task.bumpRevision, signal),
  );
  return { ...compared, recoveryMilliseconds: Math.round(fetchMs + writtenAt - again) };
}

/** Returns when. Alarms are those of members of the source, and the operator disarms them in a restored cluster as well. */
async function write({ client, endpoint, must }: DrillEtcd, raisedTo: number, signal: AbortSignal): Promise<number> {
  const ask = { endpoint, timeoutMs: READ_MS, signal };
  for (const alarm of must(await client.maintenance.alarms(ask), 'its alarms'))
    must(await client.maintenance.disarm(ask, alarm), 'that an alarm is disarmed');
  const revision = must(await client.kv.put(ask, WRITTEN_KEY, 'x'), 'that it accepted a write');
  // Not one more: of a cluster without a single write, etcd counts from 0 when it is restored, and reports 1.
  if (revision < BigInt(raisedTo))
    throw drillFailed(`a write has revision ${revision}, and revisions were to be raised to ${raisedTo}`);
  return performance.now();
}

const isCompacted = (answer: Result<unknown>): boolean => !answer.ok && answer.error.kind === 'compacted';

/**
 * Compactions continue while a snapshot is taken: it may be compacted beyond the revision that was read just before.
 */
async function compare(
  { client, endpoint, must }: DrillEtcd,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<Omit<Drilled, 'recoveryMilliseconds'>> {
  const ask = { endpoint, timeoutMs: READ_MS, signal };
  const { revision } = must(await client.status(ask), 'its revision');
  if (revision < manifest.revision)
    throw drillFailed(
      `it has revision ${revision}, and revision ${manifest.revision} was acknowledged before it was taken`,
    );
  const then = await client.kv.count(ask, { revision: BigInt(manifest.revision) });
  const count = must(isCompacted(then) ? await client.kv.count(ask) : then, 'how many keys it has');
  if (then.ok && count !== BigInt(manifest.totalKeys))
    throw drillFailed(`it has ${count} keys at revision ${manifest.revision}, and there were ${manifest.totalKeys}`);
  const hashCompared = manifest.hash !== undefined && (await compareHash(client, ask, must, manifest.hash));
  return { revision: Number(revision), totalKeys: Number(count), hashCompared };
}

/** False where the snapshot is compacted beyond the revision that the member reported. */
async function compareHash(
  client: EtcdClient,
  ask: Ask,
  must: DrillEtcd['must'],
  taken: NonNullable<Manifest['hash']>,
): Promise<boolean> {
  const answer = await client.maintenance.hashKV(ask, BigInt(taken.revision));
  if (isCompacted(answer)) return false;
  const { hash, compactRevision } = must(answer, 'the hash of its keys');
  if (compactRevision !== BigInt(taken.compactRevision)) return false;
  if (hash !== taken.hash)
    throw drillFailed(`the hash of its keys at revision ${taken.revision} is ${hash}, and it was ${taken.hash}`);
  return true;
}
