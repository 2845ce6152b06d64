/** The agent restores real snapshots of each version with the tool of each version, refuses what it must, and survives kill -9. */
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readFacts } from '../../src/agent/bolt.ts';
import { exitCodeOf } from '../../src/api/agent-result.ts';
import { MOUNTS, type RestoreTask, STATE_VARIABLE } from '../../src/api/agent-task.ts';
import type { Access } from '../../src/etcd/client.ts';
import { run as runTool } from '../../tools/process.ts';
import { Agent, type Run } from '../support/agent.ts';
import {
  ask,
  ETCD_VERSIONS,
  type EtcdLab,
  type EtcdVersion,
  initialCluster,
  type Node,
  startLab,
} from '../support/etcd.ts';
import { eventually } from '../support/processes.ts';
import {
  asRoot,
  KEY,
  PASSWORD,
  store,
  type Taken,
  type TakenByAll,
  take,
  takeAll,
  toolsOf,
} from '../support/snapshot-files.ts';
import { kindOf, must } from './etcd-world.ts';

vi.setConfig({ testTimeout: 240_000 }); // each starts several programs, and many run side by side
const BUMP = 1_000_000;
const MIB = 1024 ** 2;
let lab: EtcdLab;
let taken: TakenByAll;
let agents = 0;

beforeAll(async () => {
  lab = await startLab();
  taken = await takeAll(lab);
}, 120_000);
afterAll(() => lab.close());

interface Scene {
  readonly agent: Agent;
  /** Of the version that restores; not started. */
  readonly node: Node;
  readonly task: (more?: Partial<RestoreTask>) => RestoreTask;
  readonly tools: Readonly<Record<string, string>>;
}

async function scene(version: EtcdVersion): Promise<Scene> {
  const name = `restored-${++agents}`;
  const folder = join(lab.folder, `agent-${agents}`);
  mkdirSync(folder);
  const node = lab.node(name, { version });
  return {
    agent: new Agent(folder),
    node,
    tools: await toolsOf(version),
    task: (more) => ({
      task: 'restore',
      from: { kind: 'pvc', root: MOUNTS.source },
      key: 'backups/x.db',
      encrypted: false,
      dataDir: node.folder,
      member: name,
      initialCluster: initialCluster([node]),
      token: 'a-token',
      peerURL: node.peerURL,
      bumpRevision: BUMP,
      version,
      auth: false,
      ...more,
    }),
  };
}

const start = async ({ node }: Scene): Promise<void> => {
  node.start({ initialCluster: initialCluster([node]), state: 'existing' });
  await node.ready();
};
const succeeded = ({ result, said }: Run) => {
  if (!result?.ok || result.task !== 'restore') throw new Error(`not restored: ${said}`);
  return result;
};
const failure = ({ code, result, said }: Run) => {
  if (!result || result.ok) throw new Error(`no failure: ${said}`);
  expect(code).toBe(exitCodeOf(result));
  return result;
};
const inside = ({ node }: Scene): readonly string[] =>
  existsSync(node.folder) ? readdirSync(node.folder).toSorted() : [];

async function expectKeys(at: Scene, { totalKeys }: Taken, access?: Access): Promise<void> {
  const asked = { ...ask(at.node), ...(access && { access }) };
  const { count } = must(await lab.client.kv.range(asked, { key: 'k', prefix: true, countOnly: true }));
  expect(Number(count)).toBe(totalKeys);
  expect(must(await lab.client.kv.range(asked, { key: 'k0' })).kvs[0]?.value).toEqual(
    new TextEncoder().encode('again'),
  );
}

describe.concurrent('what a file says about itself', () => {
  test.for(ETCD_VERSIONS)('etcd %s', async (version) => {
    for (const { bytes, authEnabled } of Object.values(taken[version])) {
      const read = (into: Uint8Array, position: number) => Promise.resolve(bytes.copy(into, 0, position));
      const minor = version.slice(0, 3);
      expect(await readFacts(read, bytes.length - 32)).toMatchObject({
        storageVersion: minor === '3.5' ? undefined : minor,
        clusterVersion: minor,
        authEnabled,
      });
    }
  });
});

describe.concurrent('from each version to each', () => {
  const pairs = ETCD_VERSIONS.flatMap((from) => ETCD_VERSIONS.map((to) => [from, to] as const));
  const tooNew = ([from, to]: readonly [EtcdVersion, EtcdVersion]): boolean => from === '3.7.3' && to !== '3.7.3';

  test.for(pairs.filter((pair) => !tooNew(pair)))(
    '%s to %s: it serves, before and after a restart',
    async ([from, to]) => {
      const at = await scene(to);
      const source = taken[from].open;
      await store(at.agent, 'backups/x.db', source);
      expect(succeeded(await at.agent.run(at.task(), at.tools))).toEqual({
        ok: true,
        task: 'restore',
        revision: source.revision + BUMP,
      });
      expect(inside(at)).toEqual(['member']);
      await start(at);
      await expectKeys(at, source);
      must(await lab.client.kv.put(ask(at.node), 'after', 'x'));
      await at.node.stop('SIGKILL');
      await start(at);
      await expectKeys(at, source);
      await at.node.stop('SIGKILL');
    },
  );

  test.for(pairs.filter(tooNew))('%s to %s is refused, and nothing is left', async ([from, to]) => {
    const at = await scene(to);
    await store(at.agent, 'backups/x.db', taken[from].open);
    const { reason, message } = failure(await at.agent.run(at.task(), at.tools));
    expect([reason, message]).toEqual(['SnapshotTooNew', expect.stringContaining('set spec.version to 3.7 or later')]);
    expect(inside(at)).toEqual([]);
  });

  test('3.6 to 3.5 and then on to 3.6: the way up is not barred', async () => {
    const at = await scene('3.5.35');
    await store(at.agent, 'backups/x.db', taken['3.6.16'].open);
    succeeded(await at.agent.run(at.task(), at.tools));
    await start(at);
    must(await lab.client.kv.put(ask(at.node), 'on-3.5', 'x'));
    await at.node.stop();
    at.node.start({ initialCluster: initialCluster([at.node]), state: 'existing' }, '3.6.16');
    await at.node.ready();
    await expectKeys(at, taken['3.6.16'].open);
    await at.node.stop('SIGKILL');
  });
});

describe.concurrent.for(ETCD_VERSIONS)('etcd %s', (version) => {
  test('who watches from a revision that it has seen is told that it is gone, and never something else', async () => {
    const at = await scene(version);
    const source = taken[version].open;
    await store(at.agent, 'backups/x.db', source);
    succeeded(await at.agent.run(at.task(), at.tools));
    await start(at);
    const { kv, watches } = lab.client;
    expect(kindOf(await kv.range(ask(at.node), { key: 'k1', revision: BigInt(source.revision) }))).toBe('compacted');
    const items = await Array.fromAsync(
      watches.watch(ask(at.node), { key: 'k', prefix: true, fromRevision: BigInt(source.revision) }),
    );
    expect(items.at(-1)?.is).toBe('compacted');
    expect(Number(must(await kv.put(ask(at.node), 'next', 'x')))).toBeGreaterThan(source.revision + BUMP);
    await at.node.stop('SIGKILL');
  });

  test('without a bump, revisions go on where they were', async () => {
    const at = await scene(version);
    const source = taken[version].open;
    await store(at.agent, 'backups/x.db', source);
    succeeded(await at.agent.run(at.task({ bumpRevision: 0 }), at.tools));
    await start(at);
    expect(Number(must(await lab.client.kv.put(ask(at.node), 'next', 'x')))).toBe(source.revision + 1);
    await at.node.stop('SIGKILL');
  });

  test('log-ins stay as they were, with the password that root had', async () => {
    const at = await scene(version);
    const source = taken[version].guarded;
    await store(at.agent, 'backups/x.db', source);
    succeeded(await at.agent.run(at.task({ auth: true }), at.tools));
    at.node.start({ initialCluster: initialCluster([at.node]), state: 'existing' });
    const asked = { ...ask(at.node), access: asRoot(at.node) };
    const serves = async () => (await lab.client.kv.range(asked, { key: 'k1' })).ok || undefined;
    await eventually('root is let in', serves, { seen: () => at.node.process?.log().slice(-500) });
    expect(kindOf(await lab.client.kv.range(ask(at.node), { key: 'k1' }))).toBe('authRequired');
    await expectKeys(at, source, asRoot(at.node));
    await at.node.stop('SIGKILL');
  });

  test('log-ins that nobody asked for are refused', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', taken[version].guarded);
    expect(failure(await at.agent.run(at.task(), at.tools)).reason).toBe('AuthRequired');
    expect(inside(at)).toEqual([]);
  });
});

describe.concurrent('however it is stored', () => {
  const version = '3.6.16';
  const open = (): Taken => taken[version].open;

  test.for([
    ['compressed', 'x.db.zst', { compression: 'zstd' as const }],
    ['encrypted', 'x.db.enc', { key: KEY }],
    ['compressed and encrypted', 'x.db.zst.enc', { compression: 'zstd' as const, key: KEY }],
    ['without a manifest, as etcdctl leaves it', 'x.db', { manifest: 'none' as const }],
    [
      'compressed and encrypted, and its manifest lost',
      'x.db.zst.enc',
      { compression: 'zstd' as const, key: KEY, manifest: 'none' as const },
    ],
  ] as const)('%s', async ([, key, as]) => {
    const at = await scene(version);
    await store(at.agent, key, open(), as);
    if ('key' in as) at.agent.mount(MOUNTS.encryption, { key: KEY.toString('base64') });
    succeeded(await at.agent.run(at.task({ key, encrypted: 'key' in as }), at.tools));
    await start(at);
    await expectKeys(at, open());
    await at.node.stop('SIGKILL');
  });

  const flipped = (bytes: Buffer): Buffer => {
    const other = Buffer.from(bytes);
    other[5000] = (other[5000] ?? 0) ^ 1;
    return other;
  };
  const changed = (change: (bytes: Buffer) => Buffer) => async (at: Scene) => {
    await store(at.agent, 'backups/x.db', { ...open(), bytes: change(open().bytes) }, { manifest: 'none' });
  };
  const beside = (change: (bytes: Buffer) => Buffer) => async (at: Scene) => {
    await store(at.agent, 'backups/x.db', open());
    at.agent.mount(MOUNTS.source, { 'backups/x.db': change(open().bytes) });
  };

  test.for<[string, (at: Scene) => Promise<void>, Partial<RestoreTask>, string, string]>([
    ['nothing is there', async (at) => at.agent.mount(MOUNTS.source, { 'backups/y.db': '' }), {}, 'ObjectNotFound', ''],
    ['one byte is another one', changed(flipped), {}, 'SnapshotDamaged', 'bytes of it have changed'],
    [
      'one byte is another one, and there is a manifest',
      beside(flipped),
      {},
      'SnapshotDamaged',
      'SHA-256 of its manifest',
    ],
    ['it was cut', changed((bytes) => bytes.subarray(0, 8192)), {}, 'SnapshotDamaged', 'no digest at its end'],
    [
      'it was cut, and there is a manifest',
      beside((bytes) => bytes.subarray(0, 8192)),
      {},
      'SnapshotDamaged',
      'its manifest says',
    ],
    ['it has no digest', changed((bytes) => bytes.subarray(0, -32)), {}, 'SnapshotDamaged', 'a copy of a member'],
    ['it is empty', changed(() => Buffer.alloc(0)), {}, 'SnapshotDamaged', 'no digest'],
    ['it is something else', changed(() => Buffer.from('hello'.repeat(1000))), {}, 'SnapshotDamaged', 'no digest'],
    [
      'it is somebody else’s snapshot under this name',
      async (at) => {
        await store(at.agent, 'backups/x.db', open());
        at.agent.mount(MOUNTS.source, { 'backups/x.db': taken['3.5.35'].open.bytes });
      },
      {},
      'SnapshotDamaged',
      'manifest',
    ],
    [
      'its manifest is damaged',
      async (at) => {
        await store(at.agent, 'backups/x.db', open());
        at.agent.mount(MOUNTS.source, { 'backups/x.db.manifest.json': '{}' });
      },
      {},
      'ManifestDamaged',
      '',
    ],
    [
      'the key is another one',
      async (at) => {
        await store(at.agent, 'x.db.enc', open(), { key: KEY });
        at.agent.mount(MOUNTS.encryption, { key: Buffer.alloc(32, 'o').toString('base64') });
      },
      { key: 'x.db.enc', encrypted: true },
      'WrongKey',
      'is encrypted with the key',
    ],
    [
      'no key was named',
      (at) => store(at.agent, 'x.db.enc', open(), { key: KEY }),
      { key: 'x.db.enc' },
      'WrongKey',
      'no key was named',
    ],
    [
      'a plain one stands where an encrypted one was',
      async (at) => {
        await store(at.agent, 'backups/x.db', open());
        at.agent.mount(MOUNTS.encryption, { key: KEY.toString('base64') });
      },
      { encrypted: true },
      'WrongKey',
      'not encrypted',
    ],
    [
      'the key leads out',
      async (at) => at.agent.mount(MOUNTS.source, { 'backups/y.db': '' }),
      { key: '../../etc/passwd' },
      'PathRefused',
      '',
    ],
  ])('refused: %s', async ([, arrange, more, reason, words]) => {
    const at = await scene(version);
    await arrange(at);
    const said = failure(await at.agent.run(at.task(more), at.tools));
    expect([said.reason, said.message]).toEqual([reason, expect.stringContaining(words)]);
    expect(inside(at)).toEqual([]);
  });

  test('an image without the tool is refused before anything is fetched', async () => {
    const at = await scene(version);
    const said = failure(await at.agent.run(at.task(), { ETCDUTL_PATH: '/nowhere/etcdutl' }));
    expect([said.reason, said.message]).toEqual([
      'RestoreToolFailed',
      expect.stringContaining('no etcdutl at /nowhere'),
    ]);
  });

  test('what the tool says when it fails is told', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', open());
    const said = failure(await at.agent.run(at.task({ initialCluster: 'somebody=http://else:1' }), at.tools));
    expect([said.reason, said.message]).toEqual(['RestoreToolFailed', expect.stringContaining('Error')]);
    expect(inside(at)).toEqual([]);
  });
});

describe.concurrent('killed with -9', () => {
  const version = '3.6.16';
  /** In place of the tool: a script that knows the tool and the agent that runs it. */
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
    ['before the tool has begun', 'kill -9 $PPID', ['.restore.db']],
    [
      'in the middle of the tool',
      'mkdir -p $folder/member/snap; echo x >$folder/member/snap/db; kill -9 $PPID',
      ['.restore', '.restore.db'],
    ],
    [
      'when the tool is done, and its work has not got its name',
      '$real "$@" >/dev/null 2>&1; kill -9 $PPID',
      ['.restore', '.restore.db'],
    ],
  ] as const)('%s', async ([, script, left]) => {
    const at = await scene(version);
    const source = taken[version].open;
    await store(at.agent, 'backups/x.db', source);
    const { result } = await at.agent.run(at.task(), toolThat(at, script));
    expect(result).toBeUndefined();
    expect(inside(at)).toEqual(left);
    await again(at, source);
  });

  test('when its member has begun the cluster: what became of its data since then, no snapshot can replace', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', taken[version].open);
    const begun = { ...at.tools, [STATE_VARIABLE]: 'existing' };
    expect(succeeded(await at.agent.run(at.task(), begun))).toMatchObject({ already: true });
    expect(inside(at)).toEqual([]);
    const beginning = { ...at.tools, [STATE_VARIABLE]: 'new' };
    expect(succeeded(await at.agent.run(at.task(), beginning))).not.toHaveProperty('already');
    expect(inside(at)).toEqual(['member']);
  });

  test('when it has its name, and what was needed for it has not been removed', async () => {
    const at = await scene(version);
    const source = taken[version].open;
    await store(at.agent, 'backups/x.db', source);
    succeeded(await at.agent.run(at.task(), at.tools));
    mkdirSync(join(at.node.folder, '.restore'));
    writeFileSync(join(at.node.folder, '.restore.db'), 'x');
    expect(succeeded(await at.agent.run(at.task(), at.tools))).toMatchObject({ already: true });
    expect(inside(at)).toEqual(['member']);
    await start(at);
    await expectKeys(at, source);
    must(await lab.client.kv.put(ask(at.node), 'written', 'x'));
    await at.node.stop();
    // A Pod that is made again before the cluster is recorded runs it once more: what was written since stays.
    succeeded(await at.agent.run(at.task(), at.tools));
    await start(at);
    expect(must(await lab.client.kv.range(ask(at.node), { key: 'written' })).count).toBe(1n);
    await at.node.stop('SIGKILL');
  });

  test('while it fetches, several times', async () => {
    const at = await scene(version);
    const source = await take(lab, version, { keys: 16, valueBytes: MIB });
    await store(at.agent, 'backups/x.db', source);
    const file = join(at.node.folder, '.restore.db');
    for (const megabytes of [0, 1, 8]) {
      const { process: child, ended } = at.agent.start(at.task(), at.tools);
      const far = () => (statSync(file, { throwIfNoEntry: false })?.size ?? -1) >= megabytes * MIB || undefined;
      const done = () => existsSync(join(at.node.folder, 'member')) || undefined; // sooner than we could look
      await eventually('it has fetched so much', () => far() ?? done(), { everyMs: 1 });
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

describe('on a volume that is too small', () => {
  const version = '3.6.16';

  async function onVolume<T>(at: Scene, megabytes: number, work: () => Promise<T>): Promise<T> {
    mkdirSync(at.node.folder, { recursive: true });
    await runTool('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', at.node.folder]);
    try {
      return await work();
    } finally {
      await runTool('umount', [at.node.folder]);
    }
  }

  test('it is known before anything is fetched, and said how much is needed', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', taken[version].open);
    await onVolume(at, 100, async () => {
      const { reason, message } = failure(await at.agent.run(at.task(), at.tools));
      expect([reason, message]).toEqual(['NoSpace', expect.stringMatching(/145 MiB are needed .* 100 MiB are free/)]);
      expect(inside(at)).toEqual([]);
    });
  });

  test('what grows beyond it while it is decompressed ends in time', async () => {
    const at = await scene(version);
    const bomb = { ...taken[version].open, bytes: Buffer.alloc(200 * MIB) };
    await store(at.agent, 'x.db.zst', bomb, { compression: 'zstd', manifest: 'none' });
    await onVolume(at, 200, async () => {
      expect(failure(await at.agent.run(at.task({ key: 'x.db.zst' }), at.tools)).reason).toBe('NoSpace');
      expect(inside(at)).toEqual([]);
    });
  });

  test('somebody else fills it while the tool works: all of it is taken away, and there is a next time', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', taken[version].open);
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

test('nothing that is secret is said', async () => {
  const at = await scene('3.6.16');
  const secret = KEY.toString('base64');
  await store(at.agent, 'x.db.enc', taken['3.6.16'].guarded, { key: KEY });
  at.agent.mount(MOUNTS.encryption, { key: secret });
  const { said, result } = await at.agent.run(at.task({ key: 'x.db.enc', encrypted: true }), at.tools);
  expect(JSON.stringify([said, result])).not.toContain(secret);
  expect(JSON.stringify([said, result])).not.toContain(PASSWORD);
});
