/**
 * How fast a database is streamed, verified, to nowhere, against `etcdctl snapshot save` to a file in memory (it cannot
 * save to nowhere: it renames), taking turns, on loopback and over a wire of 2 ms round trip. Goals: 0.9 and 0.8 of its
 * throughput, and less than 200 MiB of memory.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from '../local/binaries.ts';
import { ask, type EtcdLab, type Node, startLab } from '../test/support/etcd.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { root } from '../tools/paths.ts';
import { run } from '../tools/process.ts';

export const about = 'a snapshot of 500 MiB, ours against etcdctl’s';

const DATABASE_MIB = 500;
const RUNS = 5;
const ONE_WAY_MS = 1;
const MIB = 1024 ** 2;

interface Reading {
  readonly bytes: number;
  readonly ms: number;
  readonly cpuMs: number;
  readonly peakMiB: number;
}

export async function measure(progress: (detail: string) => void): Promise<readonly Figure[]> {
  const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const lab = await startLab({ parent: memory });
  try {
    progress(`filling a database of ${DATABASE_MIB} MiB`);
    const node = await lab.seed({ version: '3.6.16', flags: [`--quota-backend-bytes=${4 * 1024 ** 3}`] });
    await fill(lab, node);
    const near = await compare('loopback', node.endpoint, lab, progress);
    const wire = await longWire(node);
    try {
      const trip = await roundTrip(lab, node.endpoint, wire.endpoint);
      return [...near, trip, ...(await compare('2 ms round trip', wire.endpoint, lab, progress))];
    } finally {
      wire.close();
    }
  } finally {
    await lab.close();
  }
}

async function fill(lab: EtcdLab, node: Node): Promise<void> {
  const value = randomBytes(MIB);
  for (let i = 0; i < DATABASE_MIB; i++) {
    const answer = await lab.client.kv.put(ask(node, 30_000), `key-${i}`, value);
    if (!answer.ok) throw new Error(answer.error.message);
  }
  // Free pages are copied, too: without them both would stream more than what was put in.
  await lab.client.maintenance.defragment(ask(node, 120_000));
}

async function compare(
  where: string,
  endpoint: string,
  lab: EtcdLab,
  progress: (detail: string) => void,
): Promise<readonly Figure[]> {
  const ours: Reading[] = [];
  const theirs: number[] = [];
  for (let round = 0; round <= RUNS; round++) {
    progress(`${where}, ${round === 0 ? 'warming up' : `run ${round} of ${RUNS}`}`);
    const mine = await read(endpoint);
    const etcdctl = await save(endpoint, join(lab.folder, 'saved.db'));
    if (round === 0) continue;
    ours.push(mine);
    theirs.push(mine.bytes / MIB / (etcdctl / 1000));
  }
  const speeds = ours.map(({ bytes, ms }) => bytes / MIB / (ms / 1000));
  return [
    summarise(`${where}: ours, verified`, speeds, 'MiB/s'),
    summarise(`${where}: etcdctl snapshot save`, theirs, 'MiB/s'),
    summarise(
      `${where}: ours to etcdctl`,
      speeds.map((speed, i) => speed / (theirs[i] ?? Number.NaN)),
      'times',
    ),
    summarise(
      `${where}: our peak memory`,
      ours.map(({ peakMiB }) => peakMiB),
      'MiB',
    ),
    summarise(
      `${where}: our processor time`,
      ours.map(({ cpuMs }) => cpuMs),
      'ms',
    ),
  ];
}

async function read(endpoint: string): Promise<Reading> {
  const { stdout } = await run(process.execPath, [join(root, 'bench/support/read-snapshot.ts'), endpoint]);
  return JSON.parse(stdout) as Reading;
}

/** By its own clock, which begins with the request: starting the program does not count on either side. */
async function save(endpoint: string, file: string): Promise<number> {
  const { 'etcd-3.6': folder } = await build(['etcd-3.6']);
  const { stderr } = await run(join(folder, 'etcdctl'), [`--endpoints=${endpoint}`, 'snapshot', 'save', file]);
  rmSync(file);
  const [, took = ''] = /"fetched snapshot".*?"took":"([^"]+)"/.exec(stderr) ?? [];
  const [, minutes = '0', seconds] = /^(?:(\d+)m)?([\d.]+)s$/.exec(took) ?? [];
  if (seconds === undefined) throw new Error(`etcdctl did not say how long it took: ${stderr}`);
  return (Number(minutes) * 60 + Number(seconds)) * 1000;
}

async function longWire(node: Node): Promise<{ readonly endpoint: string; readonly close: () => void }> {
  const child = spawn(
    process.execPath,
    [join(root, 'bench/support/delay.ts'), node.address, '2379', String(ONE_WAY_MS)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { endpoint: `http://127.0.0.1:${port.toString().trim()}`, close: () => void child.kill() };
}

/** What the wire really adds: a small question over it, less one without it. */
async function roundTrip(lab: EtcdLab, near: string, far: string): Promise<Figure> {
  const usual = async (endpoint: string): Promise<number> => {
    const samples: number[] = [];
    for (let i = 0; i < 100; i++) {
      const started = performance.now();
      await lab.client.status({ endpoint, timeoutMs: 5_000 });
      samples.push((performance.now() - started) * 1000);
    }
    return summarise(endpoint, samples).median;
  };
  const samples: number[] = [];
  for (let i = 0; i < 3; i++) samples.push((await usual(far)) - (await usual(near)));
  return summarise('2 ms round trip: what the wire adds to a call', samples, 'µs');
}
