/**
 * How fast a database is streamed, verified, to nowhere, against `etcdctl snapshot save` to a file in memory (it cannot
 * save to nowhere: it renames), taking turns, on loopback and from a network namespace at the end of a wire of 2 ms round
 * trip. Goals: 0.9 and 0.8 of its throughput, and less than 200 MiB of memory.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from '../local/binaries.ts';
import { ask, type EtcdLab, initialCluster, type Node, startLab } from '../test/support/servers/etcd.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { root } from '../tools/paths.ts';
import { run } from '../tools/process.ts';
import { startLongWire } from './support/long-wire.ts';

export const about = 'a snapshot of 500 MiB, ours against etcdctl’s';

const DATABASE_MIB = 500;
const RUNS = 5;
const ONE_WAY_MS = 1;
const MIB = 1024 ** 2;

/** Where both programs are run, and how they reach the member from there. */
interface Place {
  readonly name: string;
  readonly endpoint: string;
  readonly prefix: readonly string[];
}

interface Reading {
  readonly bytes: number;
  readonly ms: number;
  readonly cpuMs: number;
  readonly peakMiB: number;
}

export async function measure(progress: (detail: string) => void): Promise<readonly Figure[]> {
  const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const wire = await startLongWire(ONE_WAY_MS);
  const lab = await startLab({ parent: memory, versions: ['3.6.16'] });
  try {
    progress(`filling a database of ${DATABASE_MIB} MiB`);
    const flags = [`--quota-backend-bytes=${4 * 1024 ** 3}`];
    const node = lab.node('m0', { version: '3.6.16', flags });
    const far = { name: '2 ms round trip', endpoint: `http://${wire.address}:2379`, prefix: wire.farEnd };
    const near = { name: 'loopback', endpoint: node.endpoint, prefix: [] };
    flags.push(`--listen-client-urls=${near.endpoint},${far.endpoint}`); // the last flag wins
    node.start({ initialCluster: initialCluster([node]), state: 'new' });
    await node.ready();
    await fill(lab, node);
    const figures = await compare(near, lab, progress);
    return [...figures, await roundTrip(near, far), ...(await compare(far, lab, progress))];
  } finally {
    await lab.close();
    await wire.close();
  }
}

async function fill(lab: EtcdLab, node: Node): Promise<void> {
  const value = randomBytes(MIB);
  for (let i = 0; i < DATABASE_MIB; i++) {
    const answer = await lab.client.kv.put(ask(node, 30_000), `key-${i}`, value);
    if (!answer.ok) throw new Error(answer.error.message);
  }
  // etcd streams free pages, too: without defragmentation both would stream more than what was written.
  await lab.client.maintenance.defragment(ask(node, 120_000));
}

async function compare(place: Place, lab: EtcdLab, progress: (detail: string) => void): Promise<readonly Figure[]> {
  const { name: where } = place;
  const ours: Reading[] = [];
  const theirs: number[] = [];
  for (let round = 0; round <= RUNS; round++) {
    progress(`${where}, ${round === 0 ? 'warming up' : `run ${round} of ${RUNS}`}`);
    const mine = await read(place);
    const etcdctl = await save(place, join(lab.folder, 'saved.db'));
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

const runAt = ({ prefix }: Place, ...command: readonly string[]): ReturnType<typeof run> => {
  const [program = '', ...args] = [...prefix, ...command];
  return run(program, args);
};

async function asked<T>(place: Place, program: string): Promise<T> {
  const { stdout } = await runAt(place, process.execPath, join(root, 'bench', 'support', program), place.endpoint);
  return JSON.parse(stdout) as T;
}

const read = (place: Place): Promise<Reading> => asked<Reading>(place, 'read-snapshot.ts');

/** By its own clock, which starts with the request: the start of the program does not count on either side. */
async function save(place: Place, file: string): Promise<number> {
  const { 'etcd-3.6': folder } = await build(['etcd-3.6']);
  const etcdctl = [join(folder, 'etcdctl'), `--endpoints=${place.endpoint}`];
  const { stderr } = await runAt(place, ...etcdctl, 'snapshot', 'save', file);
  rmSync(file);
  const [, took = ''] = /"fetched snapshot".*?"took":"([^"]+)"/.exec(stderr) ?? [];
  const [, minutes = '0', seconds] = /^(?:(\d+)m)?([\d.]+)s$/.exec(took) ?? [];
  if (seconds === undefined) throw new Error(`etcdctl did not report how long it took: ${stderr}`);
  return (Number(minutes) * 60 + Number(seconds)) * 1000;
}

/** The latency that the wire really adds: a small request over it, minus one without it. */
async function roundTrip(near: Place, far: Place): Promise<Figure> {
  const samples: number[] = [];
  for (let i = 0; i < 3; i++)
    samples.push((await asked<number>(far, 'round-trip.ts')) - (await asked<number>(near, 'round-trip.ts')));
  return summarise('2 ms round trip: what the wire adds to a call', samples, 'µs');
}
