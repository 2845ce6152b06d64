/** The agent restores a real snapshot in every storage format, and refuses an object that is not the expected snapshot. */
import { describe, expect, test } from 'vitest';
import { MOUNTS, type RestoreTask } from '../../src/domain/agent-task.ts';
import { filesOf, KEY, sha256, store, type Taken, take } from '../support/servers/snapshot-files.ts';
import { failure, inside, kitWith, type Scene, start, succeeded } from './agent-restore-kit.ts';

const version = '3.6.16';
const kit = kitWith(async (lab) => {
  const [open, another] = await Promise.all([take(lab, version), take(lab, '3.5.35')]);
  return { open, another };
});
const PREVIOUS = Buffer.alloc(32, 'p');
const { scene, expectKeys } = kit;
const withKey = (at: Scene): void => at.agent.mount(MOUNTS.encryption, { key: KEY.toString('base64') });
const ENCRYPTED = { key: 'x.db.enc', encrypted: true };
const open = (): Taken => kit.taken.open;

describe.concurrent('in every storage format', () => {
  test.for([
    ['compressed', 'x.db.zst', { compression: 'zstd' as const }],
    ['encrypted', 'x.db.enc', { key: KEY }],
    ['compressed and encrypted', 'x.db.zst.enc', { compression: 'zstd' as const, key: KEY }],
    ['encrypted in format 1, by an earlier operator', 'x.db.enc', { key: KEY, identity: 'none' as const }],
    ['encrypted with a previous key', 'x.db.enc', { key: PREVIOUS }],
    ['without a manifest, as etcdctl leaves it', 'x.db', { manifest: 'none' as const }],
    [
      'compressed and encrypted, with a lost manifest',
      'x.db.zst.enc',
      { compression: 'zstd' as const, key: KEY, manifest: 'none' as const },
    ],
  ] as const)('%s', async ([, key, as]) => {
    const at = await scene(version);
    await store(at.agent, key, open(), as);
    const ring = { key: KEY.toString('base64'), 'key-2025': PREVIOUS.toString('base64') };
    if ('key' in as) at.agent.mount(MOUNTS.encryption, ring);
    succeeded(await at.agent.run(at.task({ key, encrypted: 'key' in as }), at.tools));
    await start(at);
    await expectKeys(at, open());
    await at.node.stop('SIGKILL');
  });

  test.for<[string, (bytes: Buffer) => Buffer | undefined]>([
    ['lost', () => undefined],
    ['damaged', (bytes) => flipped(bytes)],
  ])('the copy at a second location, when the first one is %s', async ([, first]) => {
    const at = await scene(version);
    const copy = { from: { kind: 'pvc', root: MOUNTS.copy } as const, key: 'copies/x.db' };
    const { bytes } = open();
    const there = first(bytes);
    at.agent.mount(MOUNTS.source, there ? { 'backups/x.db': there } : { 'backups/other.db': '' });
    at.agent.mount(MOUNTS.copy, { 'copies/x.db': bytes });
    const task = at.task({ key: 'backups/x.db', sha256: sha256(bytes), copy });
    expect(succeeded(await at.agent.run(task, at.tools))).toMatchObject({ fromCopy: true });
    await start(at);
    await expectKeys(at, open());
    await at.node.stop('SIGKILL');
  });

  test('no other snapshot in the place of the copy, and the failures of both locations are reported', async () => {
    const at = await scene(version);
    const copy = { from: { kind: 'pvc', root: MOUNTS.copy } as const, key: 'x.db' };
    at.agent.mount(MOUNTS.source, { 'other.db': '' });
    at.agent.mount(MOUNTS.copy, { 'x.db': kit.taken.another.bytes });
    const { message } = failure(
      await at.agent.run(at.task({ key: 'x.db', sha256: sha256(open().bytes), copy }), at.tools),
    );
    expect(message).toMatch(/there is no .*And of its copy: .*has the checksum/);
    expect(inside(at)).toEqual([]);
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
    [
      'there is no such object',
      async (at) => at.agent.mount(MOUNTS.source, { 'backups/y.db': '' }),
      {},
      'ObjectNotFound',
      '',
    ],
    ['one byte was changed', changed(flipped), {}, 'SnapshotDamaged', 'it is corrupt'],
    ['one byte was changed, with a manifest', beside(flipped), {}, 'SnapshotDamaged', 'SHA-256 in its manifest'],
    ['it was truncated', changed((bytes) => bytes.subarray(0, 8192)), {}, 'SnapshotDamaged', 'no digest at its end'],
    [
      'it was truncated, with a manifest',
      beside((bytes) => bytes.subarray(0, 8192)),
      {},
      'SnapshotDamaged',
      'its manifest records',
    ],
    ['it has no digest', changed((bytes) => bytes.subarray(0, -32)), {}, 'SnapshotDamaged', 'a copy of a member'],
    ['it is empty', changed(() => Buffer.alloc(0)), {}, 'SnapshotDamaged', 'no digest'],
    ['it is no snapshot', changed(() => Buffer.from('hello'.repeat(1000))), {}, 'SnapshotDamaged', 'no digest'],
    [
      'it is a foreign snapshot under this name',
      async (at) => {
        await store(at.agent, 'backups/x.db', open());
        at.agent.mount(MOUNTS.source, { 'backups/x.db': kit.taken.another.bytes });
      },
      {},
      'SnapshotDamaged',
      'manifest',
    ],
    [
      'it and its manifest were replaced by an older snapshot, and the spec has the checksum',
      (at) => store(at.agent, 'backups/x.db', kit.taken.another),
      { sha256: sha256(Buffer.from('the one that was meant')) },
      'SnapshotDamaged',
      'source.checksum is another',
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
      'the key is wrong',
      async (at) => {
        await store(at.agent, 'x.db.enc', open(), { key: KEY });
        at.agent.mount(MOUNTS.encryption, { key: Buffer.alloc(32, 'o').toString('base64') });
      },
      { key: 'x.db.enc', encrypted: true },
      'WrongKey',
      'is encrypted with the key',
    ],
    [
      'an older snapshot of the same key is in its place, with an adapted manifest',
      async (at) => {
        withKey(at);
        const files = await filesOf('x.db.enc', open(), { key: KEY, identity: { path: 'older.db.enc' } });
        at.agent.mount(MOUNTS.source, files);
      },
      ENCRYPTED,
      'SnapshotDamaged',
      'is the snapshot older.db.enc of 2026-01-01T00:00:00Z',
    ],
    [
      'another snapshot of the same path is in its place',
      (at) => {
        withKey(at);
        return store(at.agent, 'x.db.enc', open(), { key: KEY, identity: { uid: 'uid-of-another' } });
      },
      ENCRYPTED,
      'SnapshotDamaged',
      'the manifest of another snapshot',
    ],
    [
      'its manifest was changed by a client without the key',
      async (at) => {
        withKey(at);
        const files = await filesOf('x.db.enc', open(), { key: KEY });
        const manifest = JSON.parse(String(files['x.db.enc.manifest.json'])) as object;
        const changed = JSON.stringify({ ...manifest, revision: 1 });
        at.agent.mount(MOUNTS.source, { ...files, 'x.db.enc.manifest.json': changed });
      },
      ENCRYPTED,
      'ManifestDamaged',
      'authentication code',
    ],
    [
      'its manifest was replaced by one without authentication',
      async (at) => {
        withKey(at);
        const files = await filesOf('x.db.enc', open(), { key: KEY });
        const { mac: _, ...manifest } = JSON.parse(String(files['x.db.enc.manifest.json'])) as { readonly mac: string };
        at.agent.mount(MOUNTS.source, { ...files, 'x.db.enc.manifest.json': JSON.stringify(manifest) });
      },
      ENCRYPTED,
      'SnapshotDamaged',
      'one that was changed',
    ],
    [
      'no encryption key was set',
      (at) => store(at.agent, 'x.db.enc', open(), { key: KEY }),
      { key: 'x.db.enc' },
      'WrongKey',
      'no encryption key was set',
    ],
    [
      'a plain object has replaced an encrypted one',
      async (at) => {
        await store(at.agent, 'backups/x.db', open());
        at.agent.mount(MOUNTS.encryption, { key: KEY.toString('base64') });
      },
      { encrypted: true },
      'WrongKey',
      'not encrypted',
    ],
    [
      'the object key escapes the volume',
      async (at) => at.agent.mount(MOUNTS.source, { 'backups/y.db': '' }),
      { key: '../../etc/passwd' },
      'PathRefused',
      '',
    ],
  ])('refused: %s', async ([, arrange, more, reason, words]) => {
    const at = await scene(version);
    await arrange(at);
    const result = failure(await at.agent.run(at.task(more), at.tools));
    expect([result.reason, result.message]).toEqual([reason, expect.stringContaining(words)]);
    expect(inside(at)).toEqual([]);
  });

  test('an image without etcdutl is refused before the download', async () => {
    const at = await scene(version);
    const result = failure(await at.agent.run(at.task(), { ETCDUTL_PATH: '/nowhere/etcdutl' }));
    expect([result.reason, result.message]).toEqual([
      'RestoreToolFailed',
      expect.stringContaining('no etcdutl at /nowhere'),
    ]);
  });

  test('the error of etcdutl is reported', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', open());
    const result = failure(await at.agent.run(at.task({ initialCluster: 'other=http://other:1' }), at.tools));
    expect([result.reason, result.message]).toEqual(['RestoreToolFailed', expect.stringContaining('Error')]);
    expect(inside(at)).toEqual([]);
  });
});
