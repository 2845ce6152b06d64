/** The agent inside the etcd image: no libc, no Node, nothing but etcd's programs and the mounted tools. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { installTools, running } from '../../src/agent/tasks/install-tools.ts';
import { parseResult } from '../../src/domain/agent-result.ts';
import { type DrillTask, MOUNTS, type RestoreTask, TASK_VARIABLE, type Task } from '../../src/domain/agent-task.ts';
import { TOOLS_ENVIRONMENT, TOOLS_FOLDER, toolsCommand } from '../../src/domain/agent-tools.ts';
import { bundle } from '../../tools/image/bundle.ts';
import { run } from '../../tools/process.ts';
import { Agent } from '../support/servers/agent.ts';
import { type EtcdLab, startLab } from '../support/servers/etcd.ts';
import { store, type Taken, take, toolsOf } from '../support/servers/snapshot-files.ts';

const VERSION = '3.6.16';
let lab: EtcdLab;
let taken: Taken;
let folder: string;
/** Of the container. */
let image: string;

beforeAll(async () => {
  lab = await startLab({ versions: [VERSION] });
  taken = await take(lab, VERSION);
  folder = mkdtempSync(join(tmpdir(), 'agent-image-'));
  const agent = join(folder, 'agent.mjs');
  writeFileSync(agent, (await bundle('src/bin/agent.ts', 'agent.mjs')).code);
  const snapshots = new Agent(folder);
  image = snapshots.root;
  await store(snapshots, 'a/x.db.zst', taken, { compression: 'zstd' });
  await installTools({ ...running(), agent }, join(image, TOOLS_FOLDER));
  const { ETCDUTL_PATH, ETCD_PATH } = await toolsOf(VERSION);
  for (const program of [ETCDUTL_PATH, ETCD_PATH]) {
    const place = join(image, 'usr/local/bin', program.slice(dirname(program).length));
    mkdirSync(dirname(place), { recursive: true });
    await copyFile(program, place);
  }
  for (const each of ['proc', 'dev', 'var/lib/etcd', MOUNTS.scratch]) mkdirSync(join(image, each), { recursive: true });
  writeFileSync(join(image, 'dev/null'), '');
}, 180_000);
afterAll(async () => {
  await lab?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** In its own namespaces: its root is the image, and it is the first process. */
async function inImage(task: Task): Promise<ReturnType<typeof parseResult>> {
  const script = 'mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$0" "$@"';
  const variables = Object.fromEntries(TOOLS_ENVIRONMENT.map(({ name, value }) => [name, value]));
  const { address: DRILL_ADDRESS } = lab.node('drill', { version: VERSION });
  const env = { ...variables, DRILL_ADDRESS, [TASK_VARIABLE]: JSON.stringify(task), PATH: process.env['PATH'] ?? '' };
  const apart = ['--map-root-user', '--mount', '--pid', '--fork', '--kill-child', '/bin/sh', '-c', script, image];
  const log = join(image, 'dev/termination-log');
  rmSync(log, { force: true });
  await run('env', [
    '-i',
    ...Object.entries(env).map(([k, v]) => `${k}=${v}`),
    'unshare',
    ...apart,
    ...toolsCommand(),
    task.task,
  ]);
  return parseResult(existsSync(log) ? readFileSync(log, 'utf8') : undefined);
}

const source = {
  from: { kind: 'pvc', root: MOUNTS.source },
  key: 'a/x.db.zst',
  encrypted: false,
  version: VERSION,
} as const;

test('it restores with the tool of the image', { timeout: 180_000 }, async () => {
  const task: RestoreTask = {
    task: 'restore',
    ...source,
    dataDir: '/var/lib/etcd',
    member: 'm',
    initialCluster: 'm=http://127.0.0.1:2380',
    token: 't',
    peerURL: 'http://127.0.0.1:2380',
    bumpRevision: 1000,
    auth: false,
  };
  expect(await inImage(task)).toEqual({ ok: true, task: 'restore', revision: taken.revision + 1000 });
  expect(readdirSync(join(image, 'var/lib/etcd'))).toEqual(['member']);
  expect(await inImage(task)).toEqual({ ok: true, task: 'restore', already: true });
});

test('it runs a restore drill with the etcd of the image', { timeout: 180_000 }, async () => {
  const task: DrillTask = { task: 'drill', bumpRevision: 1_000, ...source };
  expect(await inImage(task)).toMatchObject({
    ok: true,
    task: 'drill',
    totalKeys: taken.totalKeys,
    hashCompared: true,
  });
});
