/** etcdutl accepts a snapshot file. Real versions only: the model's pages are no database. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import { run } from '../../tools/process.ts';
import { ask, ETCD_PARTS, ETCD_VERSIONS, startLab } from '../support/servers/etcd.ts';
import { must } from './etcd-world.ts';

test.concurrent.for(ETCD_VERSIONS)(
  'etcd %s: etcdutl reads and restores the saved snapshot',
  async (version, { onTestFinished }) => {
    const lab = await startLab();
    onTestFinished(() => lab.close());
    const node = await lab.seed({ version });
    const { kv, maintenance } = lab.client;
    for (let i = 0; i < 5; i++) must(await kv.put(ask(node), `k${i}`, new Uint8Array(1024 ** 2).fill(7)));
    const stream = maintenance.snapshot(ask(node, 30_000));
    const file = join(lab.folder, 'snapshot.db');
    await pipeline(Readable.from(stream), createWriteStream(file));
    const part = ETCD_PARTS[version];
    const { [part]: folder } = await build([part]);
    const status = await run(join(folder, 'etcdutl'), ['snapshot', 'status', file, '--write-out=json']);
    expect(JSON.parse(status.stdout)).toMatchObject({ revision: 6, totalSize: stream.totalBytes });
    await run(join(folder, 'etcdutl'), ['snapshot', 'restore', file, `--data-dir=${join(lab.folder, 'restored')}`]);
  },
);
