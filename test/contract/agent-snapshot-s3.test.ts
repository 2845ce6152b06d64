/** The agent stores snapshots of real members in an S3 server: once each, and nothing of an interrupted upload. */
import { describe, expect } from 'vitest';
import { openStore } from '../../src/agent/stores/store.ts';
import { sha256 } from '../support/servers/snapshot-files.ts';
import { reader, startS3 } from '../support/servers/stores.ts';
import { artifactOf, held, it, judged, MIB, PATIENCE_MS, reasonOf, VERSION } from './agent-snapshot-kit.ts';

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
