/** The agent takes snapshots of real members, of each version, and what it stores and says is what etcd's own tools find. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import { createAuthority } from '../../local/pki.ts';
import { decompress } from '../../src/agent/compress.ts';
import { type Manifest, parseManifest } from '../../src/agent/manifest.ts';
import { sealKey, unseal } from '../../src/agent/seal.ts';
import { openStore } from '../../src/agent/store.ts';
import type { Success } from '../../src/api/agent-result.ts';
import { MOUNTS, type SnapshotTask } from '../../src/api/agent-task.ts';
import type { Access } from '../../src/etcd/client.ts';
import { run as runTool } from '../../tools/process.ts';
import { Agent, type Run } from '../support/agent.ts';
import {
  ask,
  ETCD_PARTS,
  ETCD_VERSIONS,
  type EtcdLab,
  type EtcdVersion,
  initialCluster,
  type Node,
  startLab,
} from '../support/etcd.ts';
import { heldWire } from '../support/held-wire.ts';
import { eventually } from '../support/processes.ts';
import { versionSettled } from '../support/snapshot-files.ts';
import { reader, startS3 } from '../support/stores.ts';
import { must } from './etcd-world.ts';

const MIB = 1024 ** 2;
/** Each run of the agent is a process that reads its sources: seconds, on a machine that does something else as well. */
const PATIENCE_MS = 240_000;
const PASSWORD = 'planted-password-of-root';
const SECRET_KEY = Buffer.alloc(32, 'k').toString('base64');
const SERVER_NAME = 'a.db.ns.svc';

interface Scene {
  readonly lab: EtcdLab;
  readonly agent: Agent;
  /** The volume. */
  readonly volume: string;
  readonly task: (node: Pick<Node, 'endpoint'>, more?: Partial<SnapshotTask>) => SnapshotTask;
}

const it = test.extend<{ scene: Scene }>({
  // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
  scene: async ({}, use) => {
    const lab = await startLab();
    const agent = new Agent(lab.folder);
    const volume = join(agent.root, MOUNTS.volume);
    mkdirSync(volume, { recursive: true });
    const task: Scene['task'] = ({ endpoint }, more) => ({
      task: 'snapshot',
      snapshot: { namespace: 'ns', name: 'nightly', uid: 'uid-of-the-snapshot' },
      cluster: { name: 'db', uid: 'uid-of-the-cluster' },
      from: { member: 'db-abcde', endpoint, login: false },
      to: { kind: 'pvc', root: MOUNTS.volume },
      prefix: 'backups',
      compression: 'none',
      encrypted: false,
      deadlineSeconds: 60,
      ...more,
    });
    await use({ lab, agent, volume, task });
    await agent.close();
    await lab.close();
  },
});

const artifactOf = ({ result, said }: Run) => {
  if (!result?.ok || result.task !== 'snapshot') throw new Error(`no snapshot: ${said}`);
  return (result satisfies Success).artifact;
};
const reasonOf = ({ code, result }: Run): string => `${code} ${result && !result.ok ? result.reason : 'ok'}`;
const messageOf = ({ result }: Run): string => (result && !result.ok ? result.message : '');
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

async function fill({ lab }: Scene, node: Node, count: number, size = 1000, access?: Access): Promise<void> {
  for (let i = 0; i < count; i++) {
    const value = new Uint8Array(size).fill(i % 251);
    must(await lab.client.kv.put({ ...ask(node, 30_000), ...(access && { access }) }, `key-${i}`, value));
  }
}

/** All files, below the volume. */
const filesIn = ({ volume }: Scene): string[] =>
  readdirSync(volume, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(volume.length + 1))
    .toSorted();

const storedIn = ({ volume }: Scene, file: string): { readonly bytes: Buffer; readonly manifest: Manifest } => ({
  bytes: readFileSync(join(volume, 'backups', file)),
  manifest: parseManifest(readFileSync(join(volume, 'backups', `${file}.manifest.json`)), file),
});

interface ToolStatus {
  readonly revision: number;
  readonly totalSize: number;
}

/** What etcd's own tool says of the file, after it has restored from it, which it only does when the digest is right. */
async function judged({ lab }: Scene, version: EtcdVersion, file: Buffer): Promise<ToolStatus> {
  const part = ETCD_PARTS[version];
  const { [part]: folder } = await build([part]);
  const saved = join(lab.folder, 'saved.db');
  writeFileSync(saved, file);
  const etcdutl = join(folder, 'etcdutl');
  await runTool(etcdutl, ['snapshot', 'restore', saved, `--data-dir=${join(lab.folder, 'restored')}`]);
  return JSON.parse((await runTool(etcdutl, ['snapshot', 'status', saved, '--write-out=json'])).stdout) as ToolStatus;
}

describe.concurrent.each(ETCD_VERSIONS)('etcd %s', { timeout: PATIENCE_MS }, (version) => {
  it('what is stored is what the manifest and the result say, and etcd takes it', async ({ scene }) => {
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

  it('it is compressed and encrypted, and is the same database when it is opened', async ({ scene }) => {
    const { lab, agent, task } = scene;
    const node = await lab.seed({ version });
    await fill(scene, node, 8, MIB);
    agent.mount(MOUNTS.encryption, { key: `${SECRET_KEY}\n` });
    const run = await agent.run(task(node, { compression: 'zstd', encrypted: true }));
    const { bytes, manifest } = storedIn(scene, 'nightly.db.zst.enc');
    const key = sealKey(Buffer.from(SECRET_KEY));
    const opened = Buffer.concat(await Array.fromAsync(decompress(unseal(key, Readable.from([bytes])))));
    expect(manifest).toMatchObject({
      object: { key: 'nightly.db.zst.enc', sizeBytes: bytes.length, sha256: sha256(bytes) },
      database: { sizeBytes: opened.length, sha256: sha256(opened) },
      compression: 'zstd',
      encryption: { algorithm: 'AES-256-GCM', keyId: key.id },
      revision: 9,
      totalKeys: 8,
    });
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

  it('with certificates on both sides and a log-in, nobody else gets anything', async ({ scene }) => {
    const { lab, agent, task } = scene;
    const authority = await createAuthority();
    const file = (name: string, content: string): string => {
      writeFileSync(join(lab.folder, name), content);
      return join(lab.folder, name);
    };
    const member = await authority.issue({ user: 'member' }, [SERVER_NAME]);
    const node = await lab.seed({
      version,
      scheme: 'https',
      flags: [
        `--cert-file=${file('member.crt', member.cert)}`,
        `--key-file=${file('member.key', member.key)}`,
        `--trusted-ca-file=${file('ca.crt', authority.cert)}`,
        '--client-cert-auth',
        '--bcrypt-cost=4',
      ],
    });
    const { cert, key } = await authority.issue({ user: 'operator' });
    const tls = () => ({ ca: authority.cert, cert, key, serverName: SERVER_NAME });
    const plain = { ...ask(node), access: { cluster: 'before', tls } };
    must(await lab.client.auth.addUser(plain, 'root', PASSWORD));
    must(await lab.client.auth.grantRole(plain, 'root', 'root'));
    must(await lab.client.auth.enable(plain));
    const logins = () => [{ user: 'root', password: PASSWORD }];
    await fill(scene, node, 5, 1000, { cluster: 'as root', tls, logins });

    const from = { member: 'a', endpoint: node.endpoint, tls: { serverName: SERVER_NAME, client: true }, login: true };
    const attempt = (more: Partial<SnapshotTask['from']>): Promise<Run> =>
      agent.run(task(node, { from: { ...from, ...more } }));
    expect(messageOf(await attempt({}))).toBe(
      'the Secret with what is trusted at members has no "ca.crt": add it to the Secret',
    );
    agent.mount(MOUNTS.etcdCa, { 'ca.crt': authority.cert });
    agent.mount(MOUNTS.etcdClient, { 'tls.crt': cert, 'tls.key': key });
    agent.mount(MOUNTS.etcdRoot, { password: `${PASSWORD}-not` });
    const wrong = {
      password: await attempt({}),
      nobody: await attempt({ login: false }),
      name: await attempt({ tls: { serverName: 'b.db.ns.svc', client: true } }),
      'no certificate': await attempt({ tls: { serverName: SERVER_NAME, client: false } }),
    };
    expect(Object.fromEntries(Object.entries(wrong).map(([what, run]) => [what, reasonOf(run)]))).toEqual({
      password: '1 LoginRefused',
      nobody: '1 LoginRefused',
      name: '1 NoMemberReachable',
      'no certificate': '1 NoMemberReachable',
    });
    expect(messageOf(wrong.name)).toContain('do not trust each other');
    expect(filesIn(scene)).toEqual([]);

    agent.mount(MOUNTS.etcdRoot, { password: PASSWORD });
    const run = await attempt({});
    expect(artifactOf(run)).toMatchObject({ totalKeys: 5, revision: 6 });
    expect(storedIn(scene, 'nightly.db').manifest).toMatchObject({ authEnabled: true });
    for (const each of [...Object.values(wrong), run]) {
      const told = JSON.stringify(each);
      for (const secret of [PASSWORD, ...key.split('\n').filter((line) => line.length > 40)])
        expect(told).not.toContain(secret);
    }
  });

  it('while others write, it has all keys of the revision that it names', async ({ scene }) => {
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

  it('a learner is not asked for data that it may not have', async ({ scene }) => {
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

const VERSION = '3.6.16';

/** A member with 32 MiB, and a wire to it on which a quarter of them passes. */
async function held(scene: Scene) {
  const node = await scene.lab.seed({ version: VERSION });
  await fill(scene, node, 32, MIB);
  const wire = await heldWire({ host: node.address, port: 2379 }, 8 * MIB);
  return { node, wire, at: { endpoint: `http://127.0.0.1:${wire.port}` } };
}

describe.concurrent('in a bucket', { timeout: PATIENCE_MS }, () => {
  it('it is stored once, and what a broken stream leaves is nothing', async ({ scene, onTestFinished }) => {
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

describe.concurrent('what goes wrong', { timeout: PATIENCE_MS }, () => {
  it('a member that stops in the middle is told, and nothing is stored', async ({ scene, onTestFinished }) => {
    const { node, wire, at } = await held(scene);
    onTestFinished(() => wire.close());
    const { ended } = scene.agent.start(scene.task(at, { compression: 'zstd' }));
    await wire.held;
    await node.stop('SIGKILL');
    wire.release();
    const run = await ended;
    expect([reasonOf(run), filesIn(scene)]).toEqual(['1 StreamBroken', []]);
    expect(messageOf(run)).toContain('member db-abcde');
  });

  it('one that is killed in the middle leaves nothing that looks whole, and the next one stores it', async ({
    scene,
    onTestFinished,
  }) => {
    const { node, wire, at } = await held(scene);
    onTestFinished(() => wire.close());
    const { process, ended } = scene.agent.start(scene.task(at));
    await wire.held;
    await process.stop('SIGKILL');
    expect(await ended).toMatchObject({ result: undefined });
    expect(existsSync(join(scene.volume, 'backups', 'nightly.db'))).toBe(false);
    artifactOf(await scene.agent.run(scene.task(node)));
    expect(filesIn(scene)).toEqual([
      'backups/nightly.db',
      'backups/nightly.db.manifest.json',
      'backups/nightly.db.manifest.json.uid',
      'backups/nightly.db.uid',
    ]);
    await judged(scene, VERSION, storedIn(scene, 'nightly.db').bytes);
  });

  it.for([['told to end', 600, /interrupted/] as const, ['too slow', 3, /not stored within 3 s/] as const])(
    'one that is %s in the middle says so and cleans up',
    async ([how, deadlineSeconds, words], { scene, onTestFinished }) => {
      const { wire, at } = await held(scene);
      onTestFinished(() => wire.close());
      const { process, ended } = scene.agent.start(scene.task(at, { deadlineSeconds }));
      if (how === 'told to end') await wire.held.then(() => process.stop('SIGTERM'));
      const run = await ended;
      expect([reasonOf(run), filesIn(scene)]).toEqual(['1 TimedOut', []]);
      expect(messageOf(run)).toMatch(words);
    },
  );

  it('nobody there: it says so at once', async ({ scene }) => {
    const started = performance.now();
    const run = await scene.agent.run(scene.task({ endpoint: 'http://127.0.0.1:9' }));
    expect(performance.now() - started).toBeLessThan(30_000); // and not when its time is over
    expect([reasonOf(run), filesIn(scene)]).toEqual(['1 NoMemberReachable', []]);
    expect(run.said).toContain('http://127.0.0.1:9');
  });

  it('run again after it was done, it tells the same and touches nothing', async ({ scene }) => {
    const { lab, agent, task, volume } = scene;
    const node = await lab.seed({ version: VERSION });
    const first = await agent.run(task(node));
    const before = filesIn(scene).map((file) => statSync(join(volume, file)).mtimeMs);
    await fill(scene, node, 3);
    await node.stop(); // it does not even need the member
    const second = await agent.run(task(node));
    expect(artifactOf(second)).toEqual(artifactOf(first));
    expect(filesIn(scene).map((file) => statSync(join(volume, file)).mtimeMs)).toEqual(before);
  });

  it.for(['without its manifest', 'with one that is damaged', 'of another size'] as const)(
    'what an earlier run left %s is replaced',
    async (how, { scene }) => {
      const { lab, agent, task, volume } = scene;
      const node = await lab.seed({ version: VERSION });
      const file = join(volume, 'backups', 'nightly.db');
      const uid = 'uid-of-the-snapshot';
      const { artifact } = { artifact: artifactOf(await agent.run(task(node))) };
      if (how === 'of another size') writeFileSync(file, 'half');
      if (how === 'with one that is damaged') writeFileSync(`${file}.manifest.json`, '{');
      if (how === 'without its manifest') {
        const other = join(volume, 'elsewhere');
        mkdirSync(other);
        writeFileSync(join(other, 'nightly.db'), 'half');
        writeFileSync(join(other, 'nightly.db.uid'), uid);
      }
      await fill(scene, node, 3);
      const again = artifactOf(
        await agent.run(task(node, how === 'without its manifest' ? { prefix: 'elsewhere' } : {})),
      );
      expect(again.revision).toBe((artifact.revision ?? 0) + 3);
      const stored = readFileSync(how === 'without its manifest' ? join(volume, 'elsewhere', 'nightly.db') : file);
      expect(again.checksum).toBe(`sha256:${sha256(stored)}`);
    },
  );

  it.for(['nightly.db', 'nightly.db.manifest.json'])(
    'what somebody else has put at %s is not touched',
    async (name, { scene }) => {
      const { lab, agent, task, volume } = scene;
      const node = await lab.seed({ version: VERSION });
      mkdirSync(join(volume, 'backups'));
      writeFileSync(join(volume, 'backups', name), 'precious');
      const run = await agent.run(task(node));
      expect([reasonOf(run), filesIn(scene)]).toEqual(['2 ObjectExists', [`backups/${name}`]]);
      expect(readFileSync(join(volume, 'backups', name), 'utf8')).toBe('precious');
      expect(messageOf(run)).toContain(name);
    },
  );

  it('what it is told must fit', async ({ scene }) => {
    const { agent, task } = scene;
    const node = { endpoint: 'http://127.0.0.1:9' };
    agent.mount(MOUNTS.encryption, { key: 'planted-but-too-short' });
    const run = await agent.run(task(node, { encrypted: true }));
    expect(reasonOf(run)).toBe('2 Misconfigured');
    expect(messageOf(run)).toContain('openssl rand -base64 32');
    expect(JSON.stringify(run)).not.toContain('planted-but-too-short');
  });
});
