/**
 * A database of 500 MiB to an S3 server on this machine: the agent's one stream against `etcdctl snapshot save` followed by
 * an upload with the AWS SDK, taking turns, each from the start of its program to its end. All files are in memory, so
 * that no disk is measured. Goals: their speed, and less than 200 MiB of memory, compressed and encrypted too.
 * On a machine with other load, processor time is a better figure than speed.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { build } from '../local/binaries.ts';
import { AGENT_RUNTIME } from '../src/domain/agent-runtime.ts';
import { MOUNTS, type SnapshotTask, TASK_VARIABLE } from '../src/domain/agent-task.ts';
import { ask, type EtcdLab, type Node, startLab } from '../test/support/servers/etcd.ts';
import { eventually, freePort, Processes } from '../test/support/servers/processes.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { bundle } from '../tools/image/bundle.ts';
import { root } from '../tools/paths.ts';

export const about = 'a snapshot of 500 MiB to S3, ours against etcdctl and an upload';

const DATABASE_MIB = Number(process.env['DATABASE_MIB'] ?? 500);
const RUNS = Number(process.env['RUNS'] ?? 3);
const MIB = 1024 ** 2;
const BUCKET = 'backups';
const LIMIT_MIB = 200;
const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench-secret' };

type Progress = (detail: string) => void;

interface Stage {
  readonly lab: EtcdLab;
  readonly node: Node;
  readonly endpoint: string;
  /** Where the server stores the bucket. */
  readonly bucket: string;
  readonly agent: string;
  readonly processes: Processes;
}

export async function measure(progress: Progress): Promise<readonly Figure[]> {
  const lab = await startLab({ parent: existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), versions: ['3.6.16'] });
  const processes = new Processes(lab.folder);
  try {
    const node = await lab.seed({ version: '3.6.16', flags: [`--quota-backend-bytes=${16 * 1024 ** 3}`] });
    progress(`filling a database of ${DATABASE_MIB} MiB`);
    await fill(lab, node);
    const agent = join(lab.folder, 'agent.mjs');
    writeFileSync(agent, (await bundle('src/bin/agent.ts', 'agent.mjs')).code);
    for (const [key, value] of Object.entries(CREDENTIALS)) mount(lab, MOUNTS.credentials, key, value);
    mount(lab, MOUNTS.encryption, 'key', randomBytes(32).toString('base64'));
    return await compare({ lab, node, agent, processes, ...(await startS3(lab, processes)) }, progress);
  } finally {
    await processes.stopAll();
    await lab.close();
  }
}

/** Hexadecimal numbers as text: they compress to half, like the JSON that etcd mostly holds. */
async function fill(lab: EtcdLab, node: Node): Promise<void> {
  for (let i = 0; i < DATABASE_MIB; i++) {
    const answer = await lab.client.kv.put(ask(node, 30_000), `key-${i}`, randomBytes(MIB / 2).toString('hex'));
    if (!answer.ok) throw new Error(answer.error.message);
  }
  // etcd streams free pages, too: without defragmentation both would stream more than what was written.
  await lab.client.maintenance.defragment(ask(node, 120_000));
}

const agentRoot = ({ folder }: EtcdLab): string => join(folder, 'root');

function mount(lab: EtcdLab, where: string, file: string, content: string): void {
  mkdirSync(join(agentRoot(lab), where), { recursive: true });
  writeFileSync(join(agentRoot(lab), where, file), content);
}

async function startS3(lab: EtcdLab, processes: Processes): Promise<Pick<Stage, 'endpoint' | 'bucket'>> {
  const { versitygw } = await build(['versitygw']);
  const folder = join(lab.folder, 's3');
  mkdirSync(folder);
  const address = `127.0.0.1:${await freePort()}`;
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = CREDENTIALS;
  const env = { ...process.env, ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey };
  const args = ['--port', address, '--keep-alive', '--quiet', 'posix', folder];
  const server = processes.start('versitygw', join(versitygw, 'versitygw'), args, env);
  const endpoint = `http://${address}`;
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
  await eventually('the S3 server serves', () => client.send(new CreateBucketCommand({ Bucket: BUCKET })), {
    seen: () => server.log().slice(-2000),
  });
  return { endpoint, bucket: join(folder, BUCKET) };
}

interface Reading {
  readonly ms: number;
  readonly cpuMs: number;
  readonly peakMiB: number;
}

const WAYS = { plain: {}, zstd: { compression: 'zstd' }, both: { compression: 'zstd', encrypted: true } } as const;
type Way = keyof typeof WAYS | 'theirs';

async function compare(stage: Stage, progress: Progress): Promise<readonly Figure[]> {
  const taken: Record<Way, Reading[]> = { plain: [], theirs: [], zstd: [], both: [] };
  for (let round = 0; round <= RUNS; round++) {
    for (const way of Object.keys(taken) as Way[]) {
      progress(`${way}, ${round === 0 ? 'warming up' : `run ${round} of ${RUNS}`}`);
      const reading = await (way === 'theirs' ? saveAndUpload(stage) : snapshot(stage, WAYS[way]));
      if (round > 0) taken[way].push(reading);
      // Only the objects: the server's own metadata of the bucket stays.
      for (const name of readdirSync(stage.bucket))
        if (!name.startsWith('.')) rmSync(join(stage.bucket, name), { recursive: true });
    }
  }
  return figures(taken);
}

function figures({ plain, theirs, zstd, both }: Record<Way, readonly Reading[]>): readonly Figure[] {
  const speeds = (readings: readonly Reading[]): readonly number[] =>
    readings.map(({ ms }) => DATABASE_MIB / (ms / 1000));
  const ratios = (of: (reading: Reading) => number): readonly number[] =>
    plain.map((reading, i) => of(theirs[i] ?? reading) / of(reading));
  const peaks = (what: string, readings: readonly Reading[]): Figure => {
    const samples = readings.map(({ peakMiB }) => peakMiB);
    return summarise(what, samples, 'MiB', { atMost: LIMIT_MIB });
  };
  const cpu = (what: string, readings: readonly Reading[]): Figure => {
    const samples = readings.map(({ cpuMs }) => cpuMs);
    return summarise(what, samples, 'ms');
  };
  return [
    summarise('the agent', speeds(plain), 'MiB/s'),
    summarise('etcdctl snapshot save, then an upload', speeds(theirs), 'MiB/s'),
    summarise(
      'the agent’s speed to theirs',
      ratios(({ ms }) => ms),
      'times',
      { atLeast: 1 },
    ),
    summarise('compressed', speeds(zstd), 'MiB/s'),
    summarise('compressed and encrypted', speeds(both), 'MiB/s'),
    peaks('peak memory', plain),
    peaks('peak memory, compressed', zstd),
    peaks('peak memory, compressed and encrypted', both),
    cpu('processor time', plain),
    cpu('processor time of the two', theirs),
    cpu('processor time, compressed', zstd),
    cpu('processor time, compressed and encrypted', both),
  ];
}

async function snapshot(stage: Stage, how: Partial<SnapshotTask>): Promise<Reading> {
  const { lab, node, endpoint } = stage;
  const task: SnapshotTask = {
    task: 'snapshot',
    snapshot: { namespace: 'ns', name: 'bench', uid: 'bench' },
    cluster: { name: 'bench', uid: 'bench' },
    from: { member: node.name, endpoint: node.endpoint, auth: false },
    to: {
      kind: 's3',
      endpoint,
      bucket: BUCKET,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: 'secret',
      ca: false,
      checksums: 'whenRequired',
    },
    prefix: '',
    compression: 'none',
    encrypted: false,
    deadlineSeconds: 600,
    ...how,
  };
  const env = {
    ...process.env,
    ...Object.fromEntries(AGENT_RUNTIME.map(({ name, value }) => [name, value])),
    [TASK_VARIABLE]: JSON.stringify(task),
    AGENT_ROOT: agentRoot(lab),
    AGENT_RESULT: join(lab.folder, 'result'),
  };
  return timed(stage, process.execPath, [stage.agent, 'snapshot'], env);
}

async function saveAndUpload(stage: Stage): Promise<Reading> {
  const { lab, node, endpoint } = stage;
  const { 'etcd-3.6': folder } = await build(['etcd-3.6']);
  const file = join(lab.folder, 'saved.db');
  const program = join(root, 'bench', 'support', 'upload-file.ts');
  const arguments_ = [program, file, endpoint, BUCKET, 'saved.db'];
  const saved = await timed(stage, join(folder, 'etcdctl'), [`--endpoints=${node.endpoint}`, 'snapshot', 'save', file]);
  const sent = await timed(stage, process.execPath, arguments_, { ...process.env, ...CREDENTIALS });
  rmSync(file);
  return {
    ms: saved.ms + sent.ms,
    cpuMs: saved.cpuMs + sent.cpuMs,
    peakMiB: Math.max(saved.peakMiB, sent.peakMiB),
  };
}

const POLL_MS = 10;
/** Linux counts the CPU time of processes in hundredths of a second. */
const TICK_MS = 10;

async function timed(
  { processes }: Stage,
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<Reading> {
  const started = performance.now();
  const child = processes.start('timed', program, args, env);
  let seen = { cpuMs: 0, peakMiB: 0 };
  const timer = setInterval(() => (seen = usageOf(child.pid) ?? seen), POLL_MS);
  const code = await child.ended;
  const ms = performance.now() - started;
  clearInterval(timer);
  if (code !== 0) throw new Error(child.log());
  return { ms, ...seen };
}

/** `undefined` when the process has just ended: the previous sample lacks at most a hundredth of a second. */
function usageOf(pid: number): { readonly cpuMs: number; readonly peakMiB: number } | undefined {
  try {
    const [, peak = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    const behindName = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const ticks = Number(behindName[11]) + Number(behindName[12]);
    return peak === '0' ? undefined : { cpuMs: ticks * TICK_MS, peakMiB: Number(peak) / 1024 };
  } catch {
    return undefined;
  }
}
