/** The agent stores snapshots of real members in an S3 server: once each, and nothing of an interrupted upload. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openStore } from '../../src/agent/stores/store.ts';
import { MOUNTS } from '../../src/domain/agent-task.ts';
import { ask } from '../support/servers/etcd.ts';
import { pause } from '../support/servers/processes.ts';
import { sha256 } from '../support/servers/snapshot-files.ts';
import { reader, startS3 } from '../support/servers/stores.ts';
import {
  artifactOf,
  fill,
  held,
  it,
  judged,
  MIB,
  PATIENCE_MS,
  reasonOf,
  type Scene,
  VERSION,
} from './agent-snapshot-kit.ts';
import { must } from './etcd-world.ts';

describe.concurrent('in a bucket', { timeout: PATIENCE_MS }, () => {
  it('a snapshot is stored once, and a broken stream leaves nothing', async ({ scene, onTestFinished }) => {
    const s3 = await startS3();
    onTestFinished(() => s3.close());
    for (const [file, content] of Object.entries(s3.secrets)) scene.agent.mount('/', { [file]: content });
    const { node, wire, at } = await held(scene);
    onTestFinished(() => wire.close());
    const store = await openStore(s3.place, reader(s3.secrets));
    const keys = async (): Promise<readonly string[]> =>
      (await Array.fromAsync(store.list(''))).map((object) => object.key);

    const { ended } = scene.agent.start(scene.task(at, { to: s3.place }));
    await wire.held;
    await wire.close();
    expect([reasonOf(await ended), await keys()]).toEqual(['1 StreamBroken', []]);

    const first = await scene.agent.run(scene.task(node, { to: s3.place }));
    expect(artifactOf(first)).toMatchObject({ uri: 's3://backups/backups/nightly.db', totalKeys: 32 });
    expect(await keys()).toEqual(['backups/nightly.db', 'backups/nightly.db.manifest.json']);
    const { body } = await store.get('backups/nightly.db', AbortSignal.timeout(30_000));
    const bytes = Buffer.concat(await Array.fromAsync(body));
    expect(artifactOf(first).checksum).toBe(`sha256:${sha256(bytes)}`);
    await judged(scene, VERSION, bytes);

    await node.stop();
    const sent = s3.relay?.sent() ?? 0;
    expect(artifactOf(await scene.agent.run(scene.task(node, { to: s3.place })))).toEqual(artifactOf(first));
    expect((s3.relay?.sent() ?? 0) - sent).toBeLessThan(MIB / 10);

    const other = { namespace: 'ns', name: 'nightly', uid: 'uid-of-another' };
    const refused = await scene.agent.run(scene.task(node, { to: s3.place, snapshot: other }));
    expect(reasonOf(refused)).toBe('2 ObjectExists');
    expect(await keys()).toEqual(['backups/nightly.db', 'backups/nightly.db.manifest.json']);
  });
});

describe('in a slow bucket', { timeout: 3 * PATIENCE_MS }, () => {
  /** A member whose database does not grow while it is written to, and what it has grown by at most since then. */
  async function busyMember(scene: Scene, { megabytes = 64, valueBytes = 65_536, everyMs = 200 } = {}) {
    const { client } = scene.lab;
    const node = await scene.lab.seed({ version: VERSION });
    await fill(scene, node, megabytes, MIB);
    const size = async () => must(await client.status(ask(node, 30_000))).dbSize;
    let [before, largest, stopped] = [0, 0, false];
    const write = async (i: number): Promise<void> => {
      const put = await client.kv.put(ask(node, 30_000), `busy-${i % 4}`, new Uint8Array(valueBytes).fill(i));
      if (!put.ok) return; // on a busy machine etcd may refuse one
      if (i % 4 === 0) await client.kv.compact(ask(node, 30_000), put.value);
      largest = Math.max(largest, await size());
    };
    for (let i = 0; i < 40; i++) await write(i);
    [before, largest] = [await size(), 0];
    const writing = (async () => {
      for (let i = 0; !stopped; i++) await Promise.all([write(i), pause(everyMs)]);
    })();
    const stop = async (): Promise<number> => {
      stopped = true;
      await writing;
      return (largest - before) / before;
    };
    return { node, stop };
  }

  const BUSY = { valueBytes: MIB / 4, everyMs: 100 };

  async function slowStore(scene: Scene) {
    const s3 = await startS3();
    for (const [file, content] of Object.entries(s3.secrets)) scene.agent.mount('/', { [file]: content });
    mkdirSync(join(scene.agent.root, MOUNTS.spool));
    s3.relay?.throttle(MIB);
    return s3;
  }

  it('a store of 1 MiB/s: the database of a busy member grows by less than 10 %, and the snapshot is stored', async ({
    scene,
    onTestFinished,
  }) => {
    const s3 = await slowStore(scene);
    onTestFinished(() => s3.close());
    const { node, stop } = await busyMember(scene);
    const task = scene.task(node, { to: s3.place, deadlineSeconds: 200, spoolBytes: 200 * MIB });
    const run = await scene.agent.run(task);
    const grown = await stop();
    process.stdout.write(`a store of 1 MiB/s: the database grew by ${(100 * grown).toFixed(1)} %\n`);
    expect(artifactOf(run).durationMilliseconds).toBeGreaterThan(30_000);
    expect(grown).toBeLessThan(0.1);
  });

  it('a store of 1 MiB/s, and a node without room: the snapshot is given up before the member grows further', async ({
    scene,
    onTestFinished,
  }) => {
    const s3 = await slowStore(scene);
    onTestFinished(() => s3.close());
    s3.relay?.throttle(MIB / 4);
    const { node, stop } = await busyMember(scene, { ...BUSY, megabytes: 160 });
    const run = await scene.agent.run(scene.task(node, { to: s3.place, deadlineSeconds: 400 }));
    const grown = await stop();
    process.stdout.write(`without room to spool: the database grew by ${(100 * grown).toFixed(1)} %\n`);
    expect(reasonOf(run)).toBe('1 SourceGrowing');
    expect(grown).toBeLessThan(0.2); // 16 MiB of about 176, and what is written until the next question
  });

  it.runIf(process.env['DEV_TEST_ALL'])(
    'of a database for which 16 MiB are less than 8 %, it is given up before it has grown by 10 %',
    async ({ scene, onTestFinished }) => {
      const s3 = await slowStore(scene);
      onTestFinished(() => s3.close());
      s3.relay?.throttle(MIB / 4);
      const { node, stop } = await busyMember(scene, { ...BUSY, megabytes: 320 });
      const run = await scene.agent.run(scene.task(node, { to: s3.place, deadlineSeconds: 400 }));
      const grown = await stop();
      process.stdout.write(`320 MiB without room to spool: the database grew by ${(100 * grown).toFixed(1)} %\n`);
      expect(reasonOf(run)).toBe('1 SourceGrowing');
      expect(grown).toBeGreaterThan(0.08);
      expect(grown).toBeLessThan(0.1);
    },
  );
});
