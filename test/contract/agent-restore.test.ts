/** The agent restores real snapshots of each version with etcdutl of each version, and the restored member serves as before. */
import { describe, expect, test } from 'vitest';
import { readFacts } from '../../src/agent/format/bolt.ts';
import { MOUNTS } from '../../src/domain/agent-task.ts';
import { ask, ETCD_VERSIONS, type EtcdVersion, initialCluster } from '../support/servers/etcd.ts';
import { eventually } from '../support/servers/processes.ts';
import { asRoot, KEY, PASSWORD, store, takeAll } from '../support/servers/snapshot-files.ts';
import { BUMP, failure, inside, kitWith, start, succeeded } from './agent-restore-kit.ts';
import { kindOf, must } from './etcd-world.ts';

const kit = kitWith(takeAll);
const { scene, expectKeys } = kit;

describe.concurrent('the versions and the auth status in a snapshot file', () => {
  test.for(ETCD_VERSIONS)('etcd %s', async (version) => {
    for (const { bytes, authEnabled } of Object.values(kit.taken[version])) {
      const read = (into: Buffer, _: number, __: number, position: number) =>
        Promise.resolve({ bytesRead: bytes.copy(into, 0, position) });
      const minor = version.slice(0, 3);
      expect(await readFacts({ read }, bytes.length - 32)).toMatchObject({
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
      const source = kit.taken[from].open;
      await store(at.agent, 'backups/x.db', source);
      expect(succeeded(await at.agent.run(at.task(), at.tools))).toEqual({
        ok: true,
        task: 'restore',
        revision: source.revision + BUMP,
      });
      expect(inside(at)).toEqual(['member']);
      await start(at);
      await expectKeys(at, source);
      must(await kit.lab.client.kv.put(ask(at.node), 'after', 'x'));
      await at.node.stop('SIGKILL');
      await start(at);
      await expectKeys(at, source);
      await at.node.stop('SIGKILL');
    },
  );

  test.for(pairs.filter(tooNew))('%s to %s is refused, and leaves no files', async ([from, to]) => {
    const at = await scene(to);
    await store(at.agent, 'backups/x.db', kit.taken[from].open);
    const { reason, message } = failure(await at.agent.run(at.task(), at.tools));
    expect([reason, message]).toEqual(['SnapshotTooNew', expect.stringContaining('set spec.version to 3.7 or later')]);
    expect(inside(at)).toEqual([]);
  });

  test('3.6 to 3.5 and then on to 3.6: the upgrade is possible', async () => {
    const at = await scene('3.5.35');
    await store(at.agent, 'backups/x.db', kit.taken['3.6.16'].open);
    succeeded(await at.agent.run(at.task(), at.tools));
    await start(at);
    must(await kit.lab.client.kv.put(ask(at.node), 'on-3.5', 'x'));
    await at.node.stop();
    at.node.start({ initialCluster: initialCluster([at.node]), state: 'existing' }, '3.6.16');
    await at.node.ready();
    await expectKeys(at, kit.taken['3.6.16'].open);
    await at.node.stop('SIGKILL');
  });
});

describe.concurrent.for(ETCD_VERSIONS)('etcd %s', (version) => {
  test('a watch from an earlier revision gets `compacted`, and never wrong events', async () => {
    const at = await scene(version);
    const source = kit.taken[version].open;
    await store(at.agent, 'backups/x.db', source);
    succeeded(await at.agent.run(at.task(), at.tools));
    await start(at);
    const { client } = kit.lab;
    const { kv } = client;
    expect(kindOf(await kv.range(ask(at.node), { key: 'k1', revision: BigInt(source.revision) }))).toBe('compacted');
    const items = await Array.fromAsync(
      client.watch(ask(at.node), { key: 'k', prefix: true, fromRevision: BigInt(source.revision) }),
    );
    expect(items.at(-1)?.is).toBe('compacted');
    expect(Number(must(await kv.put(ask(at.node), 'next', 'x')))).toBeGreaterThan(source.revision + BUMP);
    await at.node.stop('SIGKILL');
  });

  test('without a bump, revisions continue from the snapshot', async () => {
    const at = await scene(version);
    const source = kit.taken[version].open;
    await store(at.agent, 'backups/x.db', source);
    succeeded(await at.agent.run(at.task({ bumpRevision: 0 }), at.tools));
    await start(at);
    expect(Number(must(await kit.lab.client.kv.put(ask(at.node), 'next', 'x')))).toBe(source.revision + 1);
    await at.node.stop('SIGKILL');
  });

  test('auth stays enabled, with the root password of the snapshot', async () => {
    const at = await scene(version);
    const source = kit.taken[version].guarded;
    await store(at.agent, 'backups/x.db', source);
    succeeded(await at.agent.run(at.task({ auth: true }), at.tools));
    at.node.start({ initialCluster: initialCluster([at.node]), state: 'existing' });
    const asked = { ...ask(at.node), access: asRoot(at.node) };
    const serves = async () => (await kit.lab.client.kv.range(asked, { key: 'k1' })).ok || undefined;
    await eventually('root can authenticate', serves, { seen: () => at.node.process?.log().slice(-500) });
    expect(kindOf(await kit.lab.client.kv.range(ask(at.node), { key: 'k1' }))).toBe('authRequired');
    await expectKeys(at, source, asRoot(at.node));
    await at.node.stop('SIGKILL');
  });

  test('a root whose password is unknown is replaced by one with a new password', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', kit.taken[version].guarded);
    succeeded(await at.agent.run(at.task({ auth: true, resetRootPassword: true }), at.tools));
    await start(at);
    const { auth } = kit.lab.client;
    expect(must(await auth.status(ask(at.node)))).toMatchObject({ enabled: false });
    // As the operator does where auth is to be enabled and is not.
    must(await auth.deleteUser(ask(at.node), 'root'));
    must(await auth.addUser(ask(at.node), 'root', 'a-new-password'));
    must(await auth.grantRole(ask(at.node), 'root', 'root'));
    must(await auth.enable(ask(at.node)));
    expect(kindOf(await auth.authenticate(ask(at.node), { user: 'root', password: PASSWORD }))).toBe('authFailed');
    must(await auth.authenticate(ask(at.node), { user: 'root', password: 'a-new-password' }));
    await at.node.stop('SIGKILL');
  });

  test('a snapshot with auth enabled is refused unless the spec enables auth', async () => {
    const at = await scene(version);
    await store(at.agent, 'backups/x.db', kit.taken[version].guarded);
    expect(failure(await at.agent.run(at.task(), at.tools)).reason).toBe('AuthRequired');
    expect(inside(at)).toEqual([]);
  });
});

test('no output contains a secret', async () => {
  const at = await scene('3.6.16');
  const secret = KEY.toString('base64');
  await store(at.agent, 'x.db.enc', kit.taken['3.6.16'].guarded, { key: KEY });
  at.agent.mount(MOUNTS.encryption, { key: secret });
  const { output, result } = await at.agent.run(at.task({ key: 'x.db.enc', encrypted: true }), at.tools);
  expect(JSON.stringify([output, result])).not.toContain(secret);
  expect(JSON.stringify([output, result])).not.toContain(PASSWORD);
});
