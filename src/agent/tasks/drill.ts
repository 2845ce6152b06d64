/**
 * Restore drill: a stored snapshot is restored into an etcd that only this process can reach, and the data that it
 * serves is compared with the manifest. Revisions are not bumped, so that they can be compared.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Success } from '../../domain/agent-result.ts';
import { type DrillTask, MOUNTS } from '../../domain/agent-task.ts';
import { type Ask, EtcdClient } from '../../etcd/client.ts';
import type { Result } from '../../etcd/errors.ts';
import { AgentFailure } from '../failure.ts';
import type { Manifest } from '../format/manifest.ts';
import { mounted } from '../secrets.ts';
import { disableAuth } from './disable-auth.ts';
import { lastLines } from './etcdutl.ts';
import { fetchManifest, type Wanted, wantedBy } from './fetch.ts';
import { restoreInto, type Target } from './restore.ts';

/** For tests, which have no etcd image. */
const PATH_VARIABLE = 'ETCD_PATH';
const USUAL = '/usr/local/bin/etcd';
const NAME = 'drill';
const POLL_MS = 200;
const ASK_MS = 5_000;
/** For a call that reads the whole database. */
const READ_MS = 10 * 60_000;
/** etcd reads a database of some gigabytes before it serves it. */
const START_MS = 10 * 60_000;
const MAX_OUTPUT = 64 * 1024;

/** Loopback only. Tests, which run in parallel, use another address. */
const ADDRESS_VARIABLE = 'DRILL_ADDRESS';

type Drilled = Pick<Extract<Success, { readonly task: 'drill' }>, 'revision' | 'totalKeys' | 'hashCompared'>;

const failed = (message: string): AgentFailure =>
  new AgentFailure('DrillFailed', `${message}. Do not rely on this snapshot: take a new one, and find the cause`);

export async function drill(task: DrillTask, signal: AbortSignal): Promise<Success> {
  const began = performance.now();
  const drilled = await drillIn(mounted(MOUNTS.scratch), await wantedBy(task, signal), task.version);
  return { ok: true, task: 'drill', ...drilled, durationMilliseconds: Math.round(performance.now() - began) };
}

/** The folder may have the leftovers of an earlier attempt, which are removed. */
async function drillIn(folder: string, wanted: Wanted, version: string): Promise<Drilled> {
  const address = process.env[ADDRESS_VARIABLE] ?? '127.0.0.1';
  const dataDir = join(folder, 'data');
  await rm(dataDir, { recursive: true, force: true });
  const manifest = await fetchManifest(wanted);
  if (!manifest) throw failed(`${wanted.key} has no manifest, so there is nothing to compare it with`);
  const peerURL = `http://${address}:2380`;
  const target = { dataDir, member: NAME, initialCluster: `${NAME}=${peerURL}`, token: NAME, peerURL };
  await restoreInto(wanted, { ...target, bumpRevision: 0, version, auth: true });
  // The drill has no password, and a database with auth enabled serves nothing without one. This copy is discarded.
  await disableAuth(dataDir);
  const endpoint = `http://${address}:2379`;
  const etcd = startEtcd({ ...target, endpoint });
  const client = new EtcdClient(() => performance.now());
  try {
    await serves(client, endpoint, etcd, wanted.signal);
    return await compare(client, endpoint, manifest, wanted.signal);
  } finally {
    client.close();
    await etcd.stop();
  }
}

interface Etcd {
  readonly ended: () => string | undefined;
  stop(): Promise<void>;
}

function startEtcd(of: Pick<Target, 'dataDir' | 'initialCluster' | 'peerURL'> & { readonly endpoint: string }): Etcd {
  const program = process.env[PATH_VARIABLE] ?? USUAL;
  const child: ChildProcess = spawn(
    program,
    [
      `--name=${NAME}`,
      `--data-dir=${of.dataDir}`,
      `--listen-client-urls=${of.endpoint}`,
      `--advertise-client-urls=${of.endpoint}`,
      `--listen-peer-urls=${of.peerURL}`,
      `--initial-advertise-peer-urls=${of.peerURL}`,
      `--initial-cluster=${of.initialCluster}`,
      `--initial-cluster-token=${NAME}`,
      '--unsafe-no-fsync', // discarded after the drill
      '--log-level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let output = '';
  let ended: string | undefined;
  child.stderr?.on('data', (piece: Buffer) => {
    output = (output + piece.toString()).slice(-MAX_OUTPUT);
  });
  const end = once(child, 'close').then(
    ([code]) => {
      ended = `etcd ended with ${code}: ${lastLines(output)}`;
    },
    (error: Error) => {
      ended = `${program} cannot be started: ${error.message}`;
    },
  );
  return {
    ended: () => ended,
    stop: async () => {
      child.kill('SIGKILL');
      await end;
    },
  };
}

async function serves(client: EtcdClient, endpoint: string, etcd: Etcd, signal: AbortSignal): Promise<void> {
  const until = performance.now() + START_MS;
  for (;;) {
    const answer = await client.memberList({ endpoint, timeoutMs: ASK_MS, linearizable: true, signal });
    if (answer.ok) return;
    const ended = etcd.ended();
    if (ended !== undefined) throw failed(`etcd cannot serve the restored data: ${ended}`);
    if (performance.now() > until) throw failed(`etcd does not serve the restored data: ${answer.error.message}`);
    await sleep(POLL_MS, undefined, { signal });
  }
}

function must<T>(answer: Result<T>, what: string): T {
  if (answer.ok) return answer.value;
  throw failed(`the restored etcd does not report ${what}: ${answer.error.message}`);
}

const isCompacted = (answer: Result<unknown>): boolean => !answer.ok && answer.error.kind === 'compacted';

/**
 * Compactions continue while a snapshot is taken: it may be compacted beyond the revision that was read just before.
 */
async function compare(
  client: EtcdClient,
  endpoint: string,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<Drilled> {
  const ask = { endpoint, timeoutMs: READ_MS, signal };
  const { revision } = must(await client.status(ask), 'its revision');
  if (revision < manifest.revision)
    throw failed(`it has revision ${revision}, and revision ${manifest.revision} was acknowledged before it was taken`);
  const then = await client.kv.count(ask, { revision: BigInt(manifest.revision) });
  const count = must(isCompacted(then) ? await client.kv.count(ask) : then, 'how many keys it has');
  if (then.ok && count !== BigInt(manifest.totalKeys))
    throw failed(`it has ${count} keys at revision ${manifest.revision}, and there were ${manifest.totalKeys}`);
  const hashCompared = manifest.hash !== undefined && (await compareHash(client, ask, manifest.hash));
  return { revision: Number(revision), totalKeys: Number(count), hashCompared };
}

/** False where the snapshot is compacted beyond the revision that the member reported. */
async function compareHash(client: EtcdClient, ask: Ask, taken: NonNullable<Manifest['hash']>): Promise<boolean> {
  const answer = await client.maintenance.hashKV(ask, BigInt(taken.revision));
  if (isCompacted(answer)) return false;
  const { hash, compactRevision } = must(answer, 'the hash of its keys');
  if (compactRevision !== BigInt(taken.compactRevision)) return false;
  if (hash !== taken.hash)
    throw failed(`the hash of its keys at revision ${taken.revision} is ${hash}, and it was ${taken.hash}`);
  return true;
}
