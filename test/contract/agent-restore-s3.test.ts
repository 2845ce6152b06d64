/** The agent restores from an S3 server with the mounted credentials and CA, and reports what the server refuses. */

import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../src/agent/stores/store.ts';
import type { Place, RestoreTask } from '../../src/domain/agent-task.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { Agent, type Run } from '../support/servers/agent.ts';
import { ask, type EtcdLab, initialCluster, startLab } from '../support/servers/etcd.ts';
import { filesOf, type Taken, take, toolsOf } from '../support/servers/snapshot-files.ts';
import { reader, type Secrets, startS3, type TestPlace } from '../support/servers/stores.ts';
import { must } from './etcd-world.ts';

const VERSION = '3.7.3';
const KEY = 'a/x.db.zst';
let lab: EtcdLab;
let s3: TestPlace;
let taken: Taken;
let scenes = 0;

beforeAll(async () => {
  [lab, s3] = await Promise.all([startLab({ versions: [VERSION] }), startS3()]);
  taken = await take(lab, VERSION);
  const store = await openStore(s3.place, reader(s3.secrets));
  const { signal } = new AbortController();
  for (const [key, content] of Object.entries(await filesOf(KEY, taken, { compression: 'zstd' }))) {
    const body = (async function* () {
      yield Buffer.from(content);
    })();
    await store.put(key, body, { uid: 'uid', replace: false, signal });
  }
}, 120_000);
afterAll(async () => {
  await lab?.close();
  await s3?.close();
});

async function restore(more: Partial<RestoreTask> = {}, secrets: Secrets = s3.secrets) {
  const folder = join(lab.folder, `agent-${++scenes}`);
  mkdirSync(folder);
  const agent = new Agent(folder);
  for (const [path, content] of Object.entries(secrets)) agent.mount('/', { [path]: content });
  const node = lab.node(`restored-${scenes}`, { version: VERSION });
  const task: RestoreTask = {
    task: 'restore',
    from: s3.place,
    key: KEY,
    encrypted: false,
    dataDir: node.folder,
    member: node.name,
    initialCluster: initialCluster([node]),
    token: 't',
    peerURL: node.peerURL,
    bumpRevision: 1000,
    version: VERSION,
    auth: false,
    ...more,
  };
  return { node, run: await agent.run(task, await toolsOf(VERSION)) };
}
const reasonOf = ({ result, output }: Run): string => (result && !result.ok ? result.reason : output);

test('a snapshot in the bucket is restored and served', async () => {
  const { node, run } = await restore();
  expect(run.result, run.output).toMatchObject({ ok: true, revision: taken.revision + 1000 });
  node.start({ initialCluster: initialCluster([node]), state: 'existing' });
  await node.ready();
  const { count } = must(await lab.client.kv.range(ask(node), { key: '', prefix: true, countOnly: true }));
  expect(Number(count), ABOUT_DATA).toBe(taken.totalKeys);
});

const elsewhere = (change: object): Place => ({ ...s3.place, ...change });
test.for<[string, () => Partial<RestoreTask>, () => Secrets, string]>([
  ['credentials of another account', () => ({}), () => s3.wrongSecrets ?? {}, 'AccessDenied'],
  ['no credentials', () => ({}), () => ({}), 'Misconfigured'],
  ['another bucket', () => ({ from: elsewhere({ bucket: 'nowhere' }) }), () => s3.secrets, 'BucketNotFound'],
  ['another key', () => ({ key: 'a/y.db' }), () => s3.secrets, 'ObjectNotFound'],
])('fails and leaves no files: %s', async ([, more, secrets, reason]) => {
  const { node, run } = await restore(more(), secrets());
  expect(reasonOf(run)).toBe(reason);
  expect(existsSync(node.folder) ? readdirSync(node.folder) : []).toEqual([]);
});
