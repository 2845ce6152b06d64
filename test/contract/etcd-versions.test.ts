/** Upgrade and downgrade of etcd on the same data, on real processes and on the model. */
import { describe, expect } from 'vitest';
import { initialCluster } from '../support/servers/etcd.ts';
import { ask, type EtcdWorld, IMPLEMENTATIONS, inWorld, must, type WorldNode } from './etcd-world.ts';

const NEXT = {
  '3.5.35': { newer: '3.6.16', before: undefined, after: '3.6.0', older: '3.5.0' },
  '3.6.16': { newer: '3.7.3', before: '3.6.0', after: '3.7.0', older: '3.6.0' },
} as const;
const upgradable = IMPLEMENTATIONS.flatMap(({ version, ...rest }) =>
  version === '3.7.3' ? [] : [{ ...rest, version, ...NEXT[version] }],
);

describe.concurrent.each(upgradable)('etcd $name', ({ start, version, newer, before, after, older }) => {
  const it = inWorld(start);
  const written = (world: EtcdWorld, node: WorldNode, as: string | undefined) =>
    world.until(`the storage version is ${as}`, async () => {
      const status = await world.etcd.status(ask(node));
      return status.ok && status.value.storageVersion === as ? true : undefined;
    });

  it('upgrades by itself, and downgrades only after `downgrade enable`', async ({ world }) => {
    const seed = await world.seed();
    const { kv, maintenance } = world.etcd;
    const join = { initialCluster: initialCluster([seed]), state: 'new' } as const;
    must(await kv.put(ask(seed), 'k', 'v'));
    await written(world, seed, before);
    const restart = async (as: typeof version | typeof newer) => {
      await seed.stop('gently');
      seed.start(join, as);
    };
    await restart(newer);
    await seed.ready();
    expect(must(await maintenance.status(ask(seed))).version).toBe(newer);
    await written(world, seed, after);

    await restart(version);
    expect(await seed.ended()).toMatch(/lower than determined cluster version|version .* is not supported/);

    seed.start(join, newer);
    await seed.ready();
    must(await maintenance.downgrade(ask(seed), 'enable', older));
    await written(world, seed, older);
    await restart(version);
    await seed.ready();
    expect(must(await maintenance.status(ask(seed))).version).toBe(version);
    expect(must(await kv.range(ask(seed), { key: 'k' })).count).toBe(1n);
  });

  it('of three members is taken back without a downgrade while one runs the old minor', async ({ world }) => {
    const nodes = await world.together(3);
    const [first, second] = nodes;
    const join = { initialCluster: initialCluster(nodes), state: 'new' } as const;
    await written(world, first, before);
    const restart = async (node: WorldNode, as: typeof version | typeof newer) => {
      await node.stop('gently');
      node.start(join, as);
      await node.ready();
    };
    await restart(first, newer);
    await restart(second, newer);
    await world.pass(5_000); // etcd compares the versions of its members every four seconds
    await restart(first, version);
    await restart(second, version);
    expect(must(await world.etcd.maintenance.status(ask(first))).version).toBe(version);
  });

  it('of three members is downgraded one by one, and goes forward again after a cancellation', async ({ world }) => {
    const nodes = await world.together(3);
    const [first] = nodes;
    const { kv, maintenance } = world.etcd;
    const join = { initialCluster: initialCluster(nodes), state: 'new' } as const;
    const restart = async (node: WorldNode, as: typeof version | typeof newer) => {
      await node.stop('gently');
      node.start(join, as);
      await node.ready();
    };
    const all = async (as: string | undefined) => {
      for (const node of nodes) await written(world, node, as);
    };
    await all(before);
    for (const node of nodes) await restart(node, newer);
    await all(after);
    must(await kv.put(ask(first), 'k', 'v'));
    must(await maintenance.downgrade(ask(first), 'enable', older));
    await all(older);
    await restart(first, version);
    expect(must(await maintenance.status(ask(nodes[1]))).downgradeTo).toBe(older);

    must(await maintenance.downgrade(ask(nodes[1]), 'cancel'));
    await restart(first, newer);
    await all(after);

    must(await maintenance.downgrade(ask(first), 'enable', older));
    await all(older);
    for (const node of nodes) await restart(node, version);
    await all(before);
    expect(must(await kv.range(ask(first), { key: 'k' })).count).toBe(1n);
  });
});
