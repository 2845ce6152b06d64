/** The agent survives kill -9 and a volume that is too small, and never leaves a partial restore that looks complete. */

import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { MOUNTS, STATE_VARIABLE } from '../../src/domain/agent-task.ts';
import { run as runTool } from '../../tools/process.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { ask } from '../support/servers/etcd.ts';
import { eventually } from '../support/servers/processes.ts';
import { store, type Taken, take } from '../support/servers/snapshot-files.ts';
import { failure, inside, kitWith, type Scene, start, succeeded } from './agent-restore-kit.ts';
import { must } from './etcd-world.ts';

const MIB = 1024 ** 2;
const version = '3.6.16';
const kit = kitWith((lab) => take(lab, version));
const { scene, expectKeys } = kit;

describe.concurrent('killed with -9', () => {
  /** Replaces etcdutl by a script that knows the real etcdutl and can kill the agent. */
  const toolThat = (at: Scene, script: string): Readonly<Record<string, string>> => {
    const path = join(at.agent.root, 'etcdutl');
    writeFileSync(path, `#!/bin/sh\nreal=${at.tools['ETCDUTL_PATH']}\nfolder=${at.node.folder}/.restore\n${script}\n`);
    chmodSync(path, 0o755);
    return { ETCDUTL_PATH: path };
  };
  const again = async (at: Scene, source: Taken): Promise<void> => {
    expect(succeeded(await at.agent.run(at.task(), at.tools))).not.toHaveProperty('already');
    expect(inside(at)).toEqual(['member']);
    await start(at);
    await expectKeys(at, source);
    await at.node.stop('SIGKILL');
  };

  test.for([
    ['before etcdutl has started', 'kill -9 $PPID', ['.restore.db']],
    [
      'while etcdutl runs',
      'mkdir -p $folder/member/snap; echo x >$folder/member/snap/db; kill -9 $PPID',
      ['.restore', '.restore.db'],
    ],
    [
      'after etcdutl has finished, before its result is renamed',
      '$real "$@" >/dev/null 2>&1; kill -9 $PPID',
      ['.restore', '.restore.db'],
    ],
  ] as const)('%s', async ([, script, left]) => {
    const at = await scene(version);
    const source = kit.taken;
    await store(at.agent, 'backups/x.db', source);
    const { result } = await at.agent.run(at.task(), toolThat(at, script));
    expect(result).toBeUndefined();
    expect(inside(at)).toEqual(left);
    await again(at, source);
  });

  test('after the bootstrap of the cluster: the agent never replaces later data by the snapshot', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', kit.taken);
    const bootstrapped = { ...at.tools, [STATE_VARIABLE]: 'existing' };
    expect(succeeded(await at.agent.run(at.task(), bootstrapped))).toMatchObject({ already: true });
    expect(inside(at)).toEqual([]);
    const bootstrapping = { ...at.tools, [STATE_VARIABLE]: 'new' };
    expect(succeeded(await at.agent.run(at.task(), bootstrapping))).not.toHaveProperty('already');
    expect(inside(at)).toEqual(['member']);
  });

  test('after the rename, before temporary files are removed', async () => {
    const at = await scene(version);
    const source = kit.taken;
    await store(at.agent, 'backups/x.db', source);
    succeeded(await at.agent.run(at.task(), at.tools));
    mkdirSync(join(at.node.folder, '.restore'));
    writeFileSync(join(at.node.folder, '.restore.db'), 'x');
    expect(succeeded(await at.agent.run(at.task(), at.tools))).toMatchObject({ already: true });
    expect(inside(at)).toEqual(['member']);
    await start(at);
    await expectKeys(at, source);
    must(await kit.lab.client.kv.put(ask(at.node), 'written', 'x'));
    await at.node.stop();
    // A Pod that is recreated before the status records the bootstrap runs the agent again: it must keep later writes.
    succeeded(await at.agent.run(at.task(), at.tools));
    await start(at);
    expect(must(await kit.lab.client.kv.range(ask(at.node), { key: 'written' })).count, ABOUT_DATA).toBe(1n);
    await at.node.stop('SIGKILL');
  });

  test('during the download, several times', async () => {
    const at = await scene(version);
    const source = await take(kit.lab, version, { keys: 16, valueBytes: MIB });
    await store(at.agent, 'backups/x.db', source);
    const file = join(at.node.folder, '.restore.db');
    for (const megabytes of [0, 1, 8]) {
      const { process: child, ended } = at.agent.start(at.task(), at.tools);
      const far = () => (statSync(file, { throwIfNoEntry: false })?.size ?? -1) >= megabytes * MIB || undefined;
      const done = () => existsSync(join(at.node.folder, 'member')) || undefined; // the restore may finish between two polls
      await eventually('enough of the snapshot is downloaded', () => far() ?? done(), { everyMs: 1 });
      await child.stop('SIGKILL');
      await ended;
    }
    succeeded(await at.agent.run(at.task(), at.tools));
    expect(inside(at)).toEqual(['member']);
    await start(at);
    await expectKeys(at, source);
    await at.node.stop('SIGKILL');
  });
});

async function mounted<T>(folder: string, megabytes: number, work: () => Promise<T>): Promise<T> {
  mkdirSync(folder, { recursive: true });
  await runTool('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', folder]);
  try {
    return await work();
  } finally {
    await runTool('umount', [folder]);
  }
}
const onVolume = <T>(at: Scene, megabytes: number, work: () => Promise<T>): Promise<T> =>
  mounted(at.node.folder, megabytes, work);

describe('a cluster that fills most of its volume', () => {
  let full: Taken;
  /** In MiB: the database takes 80 % of it. */
  let volume: number;
  beforeAll(async () => {
    full = await take(kit.lab, version, { keys: 520, valueBytes: MIB });
    volume = Math.ceil(full.bytes.length / MIB / 0.8);
  }, 240_000);

  test('is restored into a volume of the same size, and serves and accepts writes there', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', full);
    const scratch = join(at.agent.root, MOUNTS.fetched);
    mkdirSync(scratch);
    await onVolume(at, volume, async () => {
      succeeded(await at.agent.run(at.task({ scratch: MOUNTS.fetched }), at.tools));
      expect([inside(at), readdirSync(scratch)]).toEqual([['member'], []]);
      await start(at);
      await expectKeys(at, full);
      must(await kit.lab.client.kv.put(ask(at.node), 'after', 'x'));
      await at.node.stop('SIGKILL');
    });
  });

  test('is restored through its own volume when the disk of the node has no room, if that is large enough', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', full);
    const scratch = join(at.agent.root, MOUNTS.fetched);
    await mounted(scratch, 100, async () => {
      await onVolume(at, volume, async () => {
        const { reason, message } = failure(await at.agent.run(at.task({ scratch: MOUNTS.fetched }), at.tools));
        expect([reason, message]).toEqual([
          'NoSpace',
          expect.stringContaining('of the node’s disk, 85 MiB may be used'),
        ]);
        expect(inside(at)).toEqual([]);
      });
      await onVolume(at, 2 * volume, async () => {
        succeeded(await at.agent.run(at.task({ scratch: MOUNTS.fetched }), at.tools));
        expect(inside(at)).toEqual(['member']);
      });
    });
  });
});

describe('S6: on a volume that is too small', () => {
  test('the restore fails before the download, with the space that it needs', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', kit.taken);
    await onVolume(at, 100, async () => {
      const { reason, message } = failure(await at.agent.run(at.task(), at.tools));
      expect([reason, message]).toEqual(['NoSpace', expect.stringMatching(/145 MiB are needed .* 100 MiB are free/)]);
      expect(inside(at)).toEqual([]);
    });
  });

  test('a snapshot that outgrows the volume during decompression fails with NoSpace', async () => {
    const at = await scene(version);
    const bomb = { ...kit.taken, bytes: Buffer.alloc(200 * MIB) };
    await store(at.agent, 'x.db.zst', bomb, { compression: 'zstd', manifest: 'none' });
    await onVolume(at, 200, async () => {
      expect(failure(await at.agent.run(at.task({ key: 'x.db.zst' }), at.tools)).reason).toBe('NoSpace');
      expect(inside(at)).toEqual([]);
    });
  });

  test('another process fills the volume while etcdutl runs: the partial restore is removed, and a retry succeeds', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', kit.taken);
    const script = join(at.agent.root, 'etcdutl');
    const filler = join(at.node.folder, 'filler');
    writeFileSync(
      script,
      `#!/bin/sh\ndd if=/dev/zero of=${filler} bs=1M 2>/dev/null\nexec ${at.tools['ETCDUTL_PATH']} "$@"\n`,
    );
    chmodSync(script, 0o755);
    await onVolume(at, 200, async () => {
      expect(failure(await at.agent.run(at.task(), { ETCDUTL_PATH: script })).reason).toBe('NoSpace');
      expect(inside(at)).toEqual(['filler']);
      await runTool('rm', [filler]);
      succeeded(await at.agent.run(at.task(), at.tools));
      expect(inside(at)).toEqual(['member']);
    });
  });
});
