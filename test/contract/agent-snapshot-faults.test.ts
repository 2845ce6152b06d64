/** Failures while the agent takes snapshots of real members: what it reports, and what it leaves behind. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { MOUNTS } from '../../src/domain/agent-task.ts';
import { sha256 } from '../support/servers/snapshot-files.ts';
import {
  artifactOf,
  filesIn,
  fill,
  held,
  it,
  judged,
  messageOf,
  PATIENCE_MS,
  reasonOf,
  storedIn,
  VERSION,
} from './agent-snapshot-kit.ts';

describe.concurrent('failures', { timeout: PATIENCE_MS }, () => {
  it('a member that is killed during the stream is reported, and nothing is stored', async ({
    scene,
    onTestFinished,
  }) => {
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

  it.for(['does not respond', 'is lost during the stream'] as const)(
    'the snapshot is taken from the next member when the first %s',
    async (how, { scene, onTestFinished }) => {
      const { node, wire, at } = await held(scene);
      onTestFinished(() => wire.close());
      const others = [{ member: 'db-second', endpoint: node.endpoint, auth: false }];
      const first = how === 'does not respond' ? { endpoint: 'http://127.0.0.1:9' } : at;
      const { ended } = scene.agent.start(scene.task(first, { others }));
      if (how !== 'does not respond') await wire.held.then(() => wire.close());
      expect(artifactOf(await ended)).toMatchObject({ member: 'db-second', totalKeys: 32 });
      const { bytes, manifest } = storedIn(scene, 'nightly.db');
      expect(manifest.member).toBe('db-second');
      await judged(scene, VERSION, bytes);
    },
  );

  it('an agent that is killed during the upload leaves no complete object, and the next one stores it', async ({
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

  it.for([['terminated', 600, /interrupted/] as const, ['too slow', 3, /not stored within 3 s/] as const])(
    'an agent that is %s during the upload reports it and cleans up',
    async ([how, deadlineSeconds, words], { scene, onTestFinished }) => {
      const { wire, at } = await held(scene);
      onTestFinished(() => wire.close());
      const { process, ended } = scene.agent.start(scene.task(at, { deadlineSeconds }));
      if (how === 'terminated') await wire.held.then(() => process.stop('SIGTERM'));
      const run = await ended;
      expect([reasonOf(run), filesIn(scene)]).toEqual(['1 TimedOut', []]);
      expect(messageOf(run)).toMatch(words);
    },
  );

  it('an unreachable member is reported immediately', async ({ scene }) => {
    const started = performance.now();
    const run = await scene.agent.run(scene.task({ endpoint: 'http://127.0.0.1:9' }));
    expect(performance.now() - started).toBeLessThan(30_000); // and not only at its deadline
    expect([reasonOf(run), filesIn(scene)]).toEqual(['1 NoMemberReachable', []]);
    expect(run.output).toContain('http://127.0.0.1:9');
  });

  it('a second run reports the same result and changes nothing', async ({ scene }) => {
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
    'an object that an earlier run left %s is replaced',
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
    'a foreign object at %s is not changed',
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

  it('an invalid encryption key is refused and not reported', async ({ scene }) => {
    const { agent, task } = scene;
    const node = { endpoint: 'http://127.0.0.1:9' };
    agent.mount(MOUNTS.encryption, { key: 'planted-but-too-short' });
    const run = await agent.run(task(node, { encrypted: true }));
    expect(reasonOf(run)).toBe('2 Misconfigured');
    expect(messageOf(run)).toContain('openssl rand -base64 32');
    expect(JSON.stringify(run)).not.toContain('planted-but-too-short');
  });
});
