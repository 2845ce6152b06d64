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
});
