/** The agent takes snapshots of real members of each version, and etcd's own tools confirm what it stores and reports. */
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect } from 'vitest';
import { createCA } from '../../local/pki.ts';
import { decompress } from '../../src/agent/format/compress.ts';
import { type Identity, unseal } from '../../src/agent/format/seal.ts';
import { sealKey } from '../../src/agent/format/seal-key.ts';
import { MOUNTS, type ScrubTask, type SnapshotTask } from '../../src/domain/agent-task.ts';
import type { Run } from '../support/servers/agent.ts';
import { ask, ETCD_VERSIONS, initialCluster } from '../support/servers/etcd.ts';
import { eventually } from '../support/servers/processes.ts';
import { sha256, versionSettled } from '../support/servers/snapshot-files.ts';
import {
  artifactOf,
  filesIn,
  fill,
  it,
  judged,
  MIB,
  messageOf,
  PATIENCE_MS,
  reasonOf,
  storedIn,
  VERSION,
} from './agent-snapshot-kit.ts';
import { must } from './etcd-world.ts';

const PASSWORD = 'planted-password-of-root';
const SECRET_KEY = Buffer.alloc(32, 'k').toString('base64');
const SERVER_NAME = 'a.db.ns.svc';

it('a scrub of the agent accepts what it has stored, and detects a changed byte', { timeout: PATIENCE_MS }, async ({
  scene,
}) => {
  const { lab, agent, task } = scene;
  const node = await lab.seed({ version: VERSION });
  await fill(scene, node, 50);
  const schedule = { name: 'nightly', uid: 'uid-of-the-schedule' };
  const snapshot = { namespace: 'ns', name: 'nightly-202603010330', uid: 'uid-of-the-snapshot' };
  agent.mount(MOUNTS.encryption, { key: SECRET_KEY });
  const taking = task(node, { schedule, snapshot, compression: 'zstd', encrypted: true });
  expect((await agent.run(taking)).code).toBe(0);
  const { to: at, prefix, cluster } = taking;
  const names = { at, prefix, cluster, schedule, encrypted: true };
  const scrub: ScrubTask = { task: 'scrub', ...names, verified: [], bytesPerSecond: 2 ** 30, now: Date.now() };
  const file = join(scene.volume, 'backups', 'nightly-202603010330.db.zst.enc');
  const bytes = readFileSync(file);
  const about = {
    ok: true,
    task: 'scrub',
    snapshot: { name: snapshot.name, uid: snapshot.uid },
    sizeBytes: bytes.length,
  };
  expect((await agent.run(scrub)).result).toEqual(about);
  bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1;
  writeFileSync(file, bytes);
  const { code, result } = await agent.run(scrub);
  expect(code).toBe(0);
  expect(result).toEqual({
    ...about,
    damage: { reason: 'SnapshotDamaged', message: expect.stringContaining('authentication') },
  });
});

describe.concurrent.each(ETCD_VERSIONS)('etcd %s', { timeout: PATIENCE_MS }, (version) => {
  it('what the Go operator stored, which has no manifest, is found by its uid, if it is whole', async ({ scene }) => {
    const { lab, agent, task, volume } = scene;
    const node = await lab.seed({ version });
    await fill(scene, node, 5);
    const { sizeBytes, checksum, uri } = artifactOf(await agent.run(task(node)));
    const file = join(volume, 'backups', 'nightly.db');
    for (const own of ['.manifest.json', '.manifest.json.uid']) rmSync(`${file}${own}`);
    const { to, snapshot } = task(node);
    const search = { task: 'lookup', uid: snapshot.uid, at: to, key: 'backups/nightly.db', encrypted: false } as const;
    const found = artifactOf(await agent.run({ ...search, withoutManifest: true }));
    expect(found).toEqual({
      uri,
      sizeBytes,
      checksum,
      databaseBytes: sizeBytes,
      compression: 'None',
      encrypted: false,
    });
    expect(reasonOf(await agent.run(search))).toBe('2 ObjectNotFound');
    expect(reasonOf(await agent.run({ ...search, uid: 'another', withoutManifest: true }))).toBe('2 ObjectNotFound');
    truncateSync(file, (sizeBytes ?? 0) - 1);
    expect(reasonOf(await agent.run({ ...search, withoutManifest: true }))).toBe('2 ObjectNotFound');
  });

  it('the stored object matches its manifest and the result, and etcd accepts it', async ({ scene }) => {
    const { lab, agent, task } = scene;
    const node = await lab.seed({ version });
    await fill(scene, node, 50);
    must(await lab.client.kv.delete(ask(node), { key: 'key-0' }));
    const schedule = { name: 'every-night', uid: 'uid-of-the-schedule' };
    await versionSettled(lab, version, ask(node));
    const run = await agent.run(task(node, { schedule }));
    expect(run.code).toBe(0);
    expect(filesIn(scene)).toEqual([
      'backups/nightly.db',
      'backups/nightly.db.manifest.json',
      'backups/nightly.db.manifest.json.uid',
      'backups/nightly.db.uid',
    ]);
    const { bytes, manifest } = storedIn(scene, 'nightly.db');
    const status = must(await lab.client.status(ask(node)));
    const { hash, compactRevision } = must(await lab.client.maintenance.hashKV(ask(node), 52n));
    const storageVersion = version === '3.5.35' ? {} : { storageVersion: status.storageVersion };
    expect(manifest).toEqual({
      version: 1,
      object: { key: 'nightly.db', sizeBytes: bytes.length, sha256: sha256(bytes) },
      database: { sizeBytes: bytes.length, sha256: sha256(bytes) },
      snapshot: { namespace: 'ns', name: 'nightly', uid: 'uid-of-the-snapshot' },
      cluster: { name: 'db', uid: 'uid-of-the-cluster', id: status.clusterId.toString(16).padStart(16, '0') },
      schedule,
      revision: 52,
      totalKeys: 49,
      hash: { revision: 52, hash, compactRevision: Number(compactRevision) },
      etcdVersion: version,
      ...storageVersion,
      authEnabled: false,
      member: 'db-abcde',
      compression: 'none',
      takenAt: expect.stringMatching(/^20\d\d-/),
      durationMs: expect.any(Number),
    });
    expect(artifactOf(run)).toEqual({
      uri: 'file:///snapshot/data/backups/nightly.db',
      sizeBytes: bytes.length,
      checksum: `sha256:${sha256(bytes)}`,
      databaseBytes: bytes.length,
      revision: 52,
      totalKeys: 49,
      etcdVersion: version,
      clusterID: manifest.cluster.id,
      member: 'db-abcde',
      compression: 'None',
      encrypted: false,
      takenAt: manifest.takenAt,
      durationMilliseconds: manifest.durationMs,
    });
    expect(await judged(scene, version, bytes)).toMatchObject({ revision: 52, totalSize: bytes.length - 32 });
  });

  it('a compressed and encrypted snapshot decrypts to the same database', async ({ scene }) => {
    const { lab, agent, task } = scene;
    const node = await lab.seed({ version });
    await fill(scene, node, 8, MIB);
    agent.mount(MOUNTS.encryption, { key: `${SECRET_KEY}\n` });
    const run = await agent.run(task(node, { compression: 'zstd', encrypted: true }));
    const { bytes, manifest } = storedIn(scene, 'nightly.db.zst.enc');
    const key = sealKey(Buffer.from(SECRET_KEY));
    let identity: Identity | undefined;
    const opened = Buffer.concat(
      await Array.fromAsync(decompress(unseal([key], Readable.from([bytes]), (about) => (identity = about)))),
    );
    expect(manifest).toMatchObject({
      object: { key: 'nightly.db.zst.enc', sizeBytes: bytes.length, sha256: sha256(bytes) },
      database: { sizeBytes: opened.length, sha256: sha256(opened) },
      compression: 'zstd',
      encryption: { algorithm: 'AES-256-GCM', keyId: key.id },
      mac: expect.stringMatching(/^[0-9a-f]{64}$/),
      revision: 9,
      totalKeys: 8,
    });
    expect(identity).toEqual({ path: 'nightly.db.zst.enc', uid: 'uid-of-the-snapshot', takenAt: manifest.takenAt });
    expect(bytes.length).toBeLessThan(opened.length / 10);
    expect(artifactOf(run)).toMatchObject({
      sizeBytes: bytes.length,
      checksum: `sha256:${sha256(bytes)}`,
      databaseBytes: opened.length,
      compression: 'Zstd',
      encrypted: true,
    });
    expect(await judged(scene, version, opened)).toMatchObject({ revision: 9, totalSize: opened.length - 32 });
  });

  it('with mTLS and auth, only a client with both gets a snapshot', async ({ scene }) => {
    const { lab, agent, task } = scene;
    const ca = await createCA();
    const file = (name: string, content: string): string => {
      writeFileSync(join(lab.folder, name), content);
      return join(lab.folder, name);
    };
    const member = await ca.issue({ user: 'member' }, [SERVER_NAME]);
    const node = await lab.seed({
      version,
      scheme: 'https',
      flags: [
        `--cert-file=${file('member.crt', member.cert)}`,
        `--key-file=${file('member.key', member.key)}`,
        `--trusted-ca-file=${file('ca.crt', ca.cert)}`,
        '--client-cert-auth',
        '--bcrypt-cost=4',
      ],
    });
    const { cert, key } = await ca.issue({ user: 'operator' });
    const tls = () => ({ ca: ca.cert, cert, key, serverName: SERVER_NAME });
    const plain = { ...ask(node), access: { cluster: 'before', tls } };
    must(await lab.client.auth.addUser(plain, 'root', PASSWORD));
    must(await lab.client.auth.grantRole(plain, 'root', 'root'));
    must(await lab.client.auth.enable(plain));
    const passwords = () => [{ user: 'root', password: PASSWORD }];
    await fill(scene, node, 5, 1000, { cluster: 'as root', tls, passwords });

    const from = { member: 'a', endpoint: node.endpoint, tls: { serverName: SERVER_NAME, client: true }, auth: true };
    const attempt = (more: Partial<SnapshotTask['from']>): Promise<Run> =>
      agent.run(task(node, { from: { ...from, ...more } }));
    expect(messageOf(await attempt({}))).toBe(
      'the Secret with the CA bundle of the members has no "ca.crt": add it to the Secret',
    );
    agent.mount(MOUNTS.etcdCa, { 'ca.crt': ca.cert });
    agent.mount(MOUNTS.etcdClient, { 'tls.crt': cert, 'tls.key': key });
    agent.mount(MOUNTS.etcdRoot, { password: `${PASSWORD}-not` });
    const wrong = {
      password: await attempt({}),
      noPassword: await attempt({ auth: false }),
      name: await attempt({ tls: { serverName: 'b.db.ns.svc', client: true } }),
      'no certificate': await attempt({ tls: { serverName: SERVER_NAME, client: false } }),
    };
    expect(Object.fromEntries(Object.entries(wrong).map(([what, run]) => [what, reasonOf(run)]))).toEqual({
      password: '1 LoginRefused',
      noPassword: '1 LoginRefused',
      name: '1 NoMemberReachable',
      'no certificate': '1 NoMemberReachable',
    });
    expect(messageOf(wrong.name)).toContain('TLS handshake');
    expect(filesIn(scene)).toEqual([]);

    agent.mount(MOUNTS.etcdRoot, { password: PASSWORD });
    const run = await attempt({});
    expect(artifactOf(run)).toMatchObject({ totalKeys: 5, revision: 6 });
    expect(storedIn(scene, 'nightly.db').manifest).toMatchObject({ authEnabled: true });
    for (const each of [...Object.values(wrong), run]) {
      const reported = JSON.stringify(each);
      for (const secret of [PASSWORD, ...key.split('\n').filter((line) => line.length > 40)])
        expect(reported).not.toContain(secret);
    }
  });

  it('during writes, the snapshot has all keys of its revision', async ({ scene }) => {
    const { lab, agent, task } = scene;
    const node = await lab.seed({ version });
    await fill(scene, node, 20, MIB);
    let writing = true;
    let writes = 0;
    const writer = (async () => {
      for (; writing; writes++) must(await lab.client.kv.put(ask(node, 30_000), `written-${writes}`, 'v'));
    })();
    await eventually('there are writes', () => writes > 10 || undefined);
    const artifact = artifactOf(await agent.run(task(node)));
    writing = false;
    await writer;
    const revision = artifact.revision ?? 0;
    expect(revision).toBeGreaterThan(21 + 10);
    const all = { key: '', prefix: true, countOnly: true, revision: BigInt(revision) };
    expect(artifact.totalKeys).toBe(Number(must(await lab.client.kv.range(ask(node), all)).count));
    const status = await judged(scene, version, storedIn(scene, 'nightly.db').bytes);
    expect(status.revision).toBeGreaterThanOrEqual(revision);
    expect(status.revision).toBeLessThanOrEqual(21 + writes);
  });

  it('no snapshot is taken from a learner, which may lag behind', async ({ scene }) => {
    const { lab, agent, task } = scene;
    const seed = await lab.seed({ version });
    const learner = lab.node('learner', { version });
    must(await lab.client.members.add(ask(seed), [learner.peerURL], { learner: true }));
    learner.start({ initialCluster: initialCluster([seed, learner]), state: 'existing' });
    await learner.ready();
    const run = await agent.run(task(learner));
    expect([reasonOf(run), filesIn(scene)]).toEqual(['1 NoMemberReachable', []]);
    expect(messageOf(run)).toContain('is a learner');
  });
});
