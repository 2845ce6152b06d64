/** How members start, end and restart, on each real version and on the model: which data is accepted, and which is lost. */
import { describe, expect } from 'vitest';
import { initialCluster } from '../support/servers/etcd.ts';
import { inKit, type Kit } from './etcd-kit.ts';
import { ask, IMPLEMENTATIONS, kindOf, must, type WorldNode } from './etcd-world.ts';

/** How long the test waits for a member that must never serve. */
const LONG_MS = 3_000;

describe.concurrent.each(IMPLEMENTATIONS)('etcd $name', ({ start }) => {
  const it = inKit(start);
  const alone = (seed: WorldNode, token = 'one') =>
    ({ initialCluster: initialCluster([seed]), state: 'new', token }) as const;

  it('a seed that was killed during its first start never has a leader, until its data is deleted', async ({ kit }) => {
    const seed = kit.node('a');
    await seed.startAndKill(alone(seed));
    seed.start(alone(seed));
    const asked = async () => kindOf(await kit.etcd.status(ask(seed, 500)));
    await kit.until('it listens', async () => (await asked()) !== 'unreachable' || undefined);
    await kit.pass(LONG_MS);
    expect(await asked()).toBe('timeout');
    await seed.stop();
    seed.wipe();
    seed.start(alone(seed));
    await seed.ready();
  });

  it('a seed with state `existing` continues with its data, and ends without it', async ({ kit }) => {
    const seed = await kit.seed();
    const id = await kit.idOf(seed);
    await seed.stop();
    const goesOn = { initialCluster: initialCluster([seed]), state: 'existing' } as const;
    seed.start(goesOn);
    await seed.ready();
    expect(await kit.idOf(seed)).toBe(id);
    await seed.stop();
    seed.wipe();
    seed.start(goesOn);
    expect(await seed.ended()).toMatch(/cannot fetch cluster info from peer urls/);
  });

  it('a member that is killed during its first start joins at the second', async ({ kit }) => {
    const seed = await kit.seed();
    const node = kit.node('n');
    const { added } = must(await kit.etcd.members.add(ask(seed), [node.peerURL], { learner: true }));
    const join = { initialCluster: initialCluster([seed, node]), state: 'existing' } as const;
    await node.startAndKill(join);
    node.start(join);
    await node.ready();
    expect(await kit.idOf(node)).toBe(added.id);
  });

  it('a member that restarts serves no client before there is a quorum', async ({ kit }) => {
    const nodes = await kit.together(3);
    const [a, b] = nodes;
    for (const node of nodes) await node.stop();
    a.start({ initialCluster: initialCluster(nodes), state: 'existing' });
    const asked = async () => kindOf(await kit.etcd.status(ask(a, 500)));
    await kit.until('it listens', async () => (await asked()) !== 'unreachable' || undefined);
    await kit.pass(LONG_MS);
    expect(await asked()).toBe('timeout');
    b.start({ initialCluster: initialCluster(nodes), state: 'existing' });
    await a.ready();
    expect(kindOf(await kit.etcd.status(ask(a)))).toBe('ok');
  });

  it('a member without a quorum still reports its own status', async ({ kit }) => {
    const [a, b, c] = await kit.together(3);
    await b.stop();
    await c.stop();
    const { maintenance, kv, members } = kit.etcd;
    await kit.until('it notices', async () =>
      must(await maintenance.status(ask(a))).leader === 0n ? true : undefined,
    );
    expect(must(await maintenance.status(ask(a))).leader).toBe(0n);
    expect(kindOf(await kv.range(ask(a), { key: 'k', serializable: true }))).toBe('ok');
    expect(must(await members.list(ask(a), { linearizable: false })).members).toHaveLength(3);
    expect(['timeout', 'noLeader']).toContain(kindOf(await members.list(ask(a, 1_000), { linearizable: true })));
  });

  /** A cluster that has grown from a seed to three; on a busy machine the leader may change meanwhile. */
  const grown = async (kit: Kit): Promise<readonly [WorldNode, WorldNode]> => {
    const seed = kit.node('seed');
    seed.start(alone(seed));
    await seed.ready();
    const second = await kit.grow(seed, 'second');
    const third = await kit.grow(seed, 'third', [second]);
    const { maintenance } = kit.etcd;
    await kit.until('the seed leads', async () => {
      const { leader, memberId } = must(await maintenance.status(ask(seed)));
      if (leader === memberId) return true;
      for (const each of [second, third]) await maintenance.moveLeader(ask(each), memberId); // only the leader accepts it
      return undefined;
    });
    return [seed, second];
  };

  it('an emptied seed of a grown cluster that bootstraps again: as the leader it is accepted, as a follower it ends', async ({
    kit,
  }) => {
    const [seed, second] = await grown(kit);
    const { kv, maintenance } = kit.etcd;
    const id = await kit.idOf(seed);
    must(await kv.put(ask(second), 'k', 'v'));
    await seed.stop();
    seed.wipe();
    await kit.accepted('a new leader', () => kv.put(ask(second, 1_000), 'k', 'w'));
    seed.start(alone(seed));
    await kit.until('it has the keys', async () => {
      const answer = await kv.range(ask(seed, 1_000), { key: 'k', serializable: true });
      return (answer.ok && answer.value.count === 1n) || undefined;
    });
    expect(await kit.idOf(seed)).toBe(id);
    expect(must(await maintenance.status(ask(seed))).leader).not.toBe(id);

    await seed.stop();
    seed.wipe();
    seed.start(alone(seed));
    expect(await seed.ended()).toMatch(/Was the raft log corrupted, truncated, or lost/);
  });

  it('with another token an emptied member bootstraps another cluster, and the others continue without it', async ({
    kit,
  }) => {
    const [a, b] = await kit.ledBy();
    const { kv, maintenance } = kit.etcd;
    const { clusterId } = must(await maintenance.status(ask(a)));
    await b.stop();
    b.wipe();
    b.start(alone(b, 'another'));
    await b.ready();
    expect(must(await maintenance.status(ask(b))).clusterId).not.toBe(clusterId);
    must(await kv.put(ask(b), 'k', 'theirs'));
    must(await kv.put(ask(a), 'k', 'ours'));
    const access = { cluster: 'the first', clusterId };
    expect(kindOf(await maintenance.status({ ...ask(b), access }))).toBe('wrongCluster');
  });

  it('an emptied leader and a lagging follower lose committed entries', async ({ kit }) => {
    const nodes = await kit.ledBy();
    const [leader, second, behind] = nodes;
    const { kv } = kit.etcd;
    must(await kv.put(ask(leader), 'early', 'v'));
    must(await kv.range(ask(behind), { key: 'early' })); // it has received it
    await behind.stop();
    must(await kv.put(ask(leader), 'late', 'v'));
    await second.stop();
    await leader.stop();
    leader.wipe();
    const join = { initialCluster: initialCluster(nodes), state: 'existing' } as const;
    behind.start(join);
    await kit.pass(3 * LONG_MS); // a joining member reads the list from it, and gives up when it does not listen yet
    leader.start(join);
    await behind.ready();
    const has = async (key: string) => must(await kv.range(ask(behind), { key })).count;
    expect([await has('early'), await has('late')]).toEqual([1n, 0n]);
  });
});
