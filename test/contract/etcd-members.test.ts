/** How etcd's membership behaves, on each real version and on the model: what the operator relies on. */
import { describe, expect } from 'vitest';
import { initialCluster } from '../support/servers/etcd.ts';
import { inKit } from './etcd-kit.ts';
import { ask, IMPLEMENTATIONS, kindOf, must, type WorldNode } from './etcd-world.ts';

describe.concurrent.each(IMPLEMENTATIONS)('etcd $name', ({ version, start }) => {
  const it = inKit(start);

  it('a seed is a cluster of one voter, and its ids are derived from its URL and the token', async ({ kit }) => {
    const seed = kit.node('a');
    const join = { initialCluster: initialCluster([seed]), state: 'new' } as const;
    const idsWith = async (token: string) => {
      seed.start({ ...join, token });
      await seed.ready();
      const { clusterId, memberId } = must(await kit.etcd.maintenance.status(ask(seed)));
      await seed.stop();
      seed.wipe();
      return { clusterId, memberId };
    };
    const first = await idsWith('one');
    expect(await idsWith('one')).toEqual(first); // an emptied seed comes back with the same ids: no client would notice
    const other = await idsWith('other');
    expect(other.clusterId).not.toBe(first.clusterId);
  });

  it('a learner is listed without a name until it starts, and can be promoted only when it is in sync', async ({
    kit,
  }) => {
    const seed = await kit.seed();
    const { members, maintenance } = kit.etcd;
    const node = kit.node('b');
    const { added } = must(await members.add(ask(seed), [node.peerURL], { learner: true }));
    expect(await kit.list(seed)).toMatchObject([{ id: added.id, name: '', isLearner: true }, { name: 'a' }]);
    expect(kindOf(await members.promote(ask(seed), added.id))).toBe('learnerNotReady');

    node.start({ initialCluster: initialCluster([seed, node]), state: 'existing' });
    await node.ready();
    expect(must(await maintenance.status(ask(node)))).toMatchObject({ memberId: added.id, isLearner: true });
    await kit.until('promotion', async () => (await members.promote(ask(seed), added.id)).ok || undefined);
    expect((await kit.list(seed)).map(({ name, isLearner }) => ({ name, isLearner }))).toEqual([
      { name: 'a', isLearner: false },
      { name: 'b', isLearner: false },
    ]);
    expect(kindOf(await members.promote(ask(seed), added.id))).toBe('notLearner');
  });

  it('a learner that has published its name can be promoted, whether it serves clients yet or not', async ({ kit }) => {
    const seed = await kit.seed();
    const { members, kv } = kit.etcd;
    for (let n = 0; n < 200; n++) must(await kv.put(ask(seed), 'k', String(n))); // enough that 3.6 sends a snapshot instead of the log
    const node = kit.node('b');
    const { added } = must(await members.add(ask(seed), [node.peerURL], { learner: true }));
    node.start({ initialCluster: initialCluster([seed, node]), state: 'existing' });
    await kit.until('its name', async () => (await kit.list(seed)).some(({ name }) => name === 'b') || undefined);
    await kit.accepted('promotion', () => members.promote(ask(seed), added.id));
    must(await kv.put(ask(seed), 'k', 'agreed by both'));
  });

  it('a learner serves its status and serializable reads, and refuses everything else', async ({ kit }) => {
    const seed = await kit.seed();
    const { members, maintenance, kv, auth } = kit.etcd;
    must(await kv.put(ask(seed), 'k', 'v'));
    const node = kit.node('b');
    must(await members.add(ask(seed), [node.peerURL], { learner: true }));
    node.start({ initialCluster: initialCluster([seed, node]), state: 'existing' });
    await node.ready();
    expect(kindOf(await maintenance.status(ask(node)))).toBe('ok');
    await kit.until('the key has arrived', async () => {
      const answer = must(await kv.range(ask(node), { key: 'k', serializable: true }));
      return answer.count === 1n || undefined;
    });
    await Array.fromAsync(maintenance.snapshot(ask(node)));
    const id = await kit.idOf(seed);
    const refused = [
      await kv.range(ask(node), { key: 'k' }),
      await kv.put(ask(node), 'k', 'w'),
      await kv.compact(ask(node), 1n),
      await members.list(ask(node), { linearizable: true }),
      await members.list(ask(node), { linearizable: false }),
      await members.add(ask(node), ['http://127.9.9.9:2380'], { learner: true }),
      await members.remove(ask(node), id),
      await members.promote(ask(node), await kit.idOf(node)),
      await maintenance.alarms(ask(node)),
      await maintenance.hashKV(ask(node), 0n),
      await maintenance.defragment(ask(node)),
      await maintenance.moveLeader(ask(node), id),
      await auth.status(ask(node)),
    ];
    expect(refused.map(kindOf)).toEqual(refused.map(() => 'learnerRefused'));
  });

  it('a second learner is refused', async ({ kit }) => {
    const seed = await kit.seed();
    const { members } = kit.etcd;
    must(await members.add(ask(seed), ['http://127.9.9.1:2380'], { learner: true }));
    const second = await members.add(ask(seed), ['http://127.9.9.2:2380'], { learner: true });
    expect(kindOf(second)).toBe('tooManyLearners');
  });

  it('with a higher limit several learners can be added before any has started', async ({ kit }) => {
    const seed = kit.node('a', { maxLearners: 2 });
    seed.start({ initialCluster: initialCluster([seed]), state: 'new' });
    if (version === '3.5.35') {
      // The flag exists since 3.6: before, a cluster has at most one learner.
      expect(await seed.ended()).toContain('flag provided but not defined: -max-learners');
      return;
    }
    await seed.ready();
    const { members } = kit.etcd;
    for (const url of ['http://127.9.9.1:2380', 'http://127.9.9.2:2380'])
      must(await members.add(ask(seed), [url], { learner: true }));
    const third = await members.add(ask(seed), ['http://127.9.9.3:2380'], { learner: true });
    expect(kindOf(third)).toBe('tooManyLearners');
  });

  it('a duplicate peer URL, an unknown id and an invalid URL are refused', async ({ kit }) => {
    const seed = await kit.seed();
    const { members } = kit.etcd;
    const results = [
      await members.add(ask(seed), [seed.peerURL], { learner: true }),
      await members.add(ask(seed), [seed.peerURL], { learner: false }),
      await members.add(ask(seed), ['nonsense'], { learner: true }),
      await members.remove(ask(seed), 42n),
      await members.promote(ask(seed), 42n),
      await members.update(ask(seed), 42n, ['http://127.9.9.9:2380']),
    ];
    expect(results.map(kindOf)).toEqual([
      'peerURLExists',
      'peerURLExists',
      'badPeerURL',
      'notFound',
      'notFound',
      'notFound',
    ]);
  });

  it('a voter that does not start costs a single member its quorum, and no further member can be added', async ({
    kit,
  }) => {
    const seed = await kit.seed();
    const { members, kv, maintenance } = kit.etcd;
    must(await members.add(ask(seed), ['http://127.9.9.1:2380'], { learner: false }));
    expect(['timeout', 'noLeader']).toContain(kindOf(await kv.put(ask(seed, 1_000), 'k', 'v')));
    expect(['timeout', 'noLeader']).toContain(kindOf(await members.list(ask(seed, 1_000), { linearizable: true })));
    // Requests that this member serves from its own state.
    expect(must(await members.list(ask(seed), { linearizable: false })).members).toHaveLength(2);
    expect(kindOf(await maintenance.status(ask(seed)))).toBe('ok');
    const another = await members.add(ask(seed, 1_000), ['http://127.9.9.2:2380'], { learner: false });
    expect(['notEnoughStarted', 'unhealthyCluster']).toContain(kindOf(another));
  });

  it('the next member can be added only when the peers have been connected for a while', async ({ kit }) => {
    const seed = await kit.seed();
    const { members } = kit.etcd;
    const next = () => members.add(ask(seed), ['http://127.9.9.1:2380'], { learner: true });
    const grown: WorldNode[] = [];
    let result = 'ok';
    for (let i = 0; i < 3 && result === 'ok'; i++) {
      grown.push(await kit.grow(seed, 'bcd'.charAt(i), grown));
      const answer = await next(); // unless growing the cluster has taken that long itself
      if (answer.ok) must(await members.remove(ask(seed), answer.value.added.id));
      result = kindOf(answer);
    }
    expect(result).toBe('unhealthyCluster');
    await kit.accepted('a third member', next);
  });

  it('a dead member can be removed; a live one cannot, while the others would have no quorum', async ({ kit }) => {
    const [a, b, c] = await kit.together(3);
    const { members, kv } = kit.etcd;
    const [idB, idC] = [await kit.idOf(b), await kit.idOf(c)];
    await c.stop();
    await kit.until('the others notice', async () => (await kv.put(ask(a, 1_000), 'k', 'v')).ok || undefined);
    expect(kindOf(await members.remove(ask(a), idB))).toBe('unhealthyCluster');
    await kit.accepted('the removal of the dead one', () => members.remove(ask(a), idC));
    expect((await kit.list(a)).map(({ name }) => name).sort()).toEqual(['a', 'b']);
  });

  it('while one of three is down no member can be added: the new one would count as down, too', async ({ kit }) => {
    const [a, b, c] = await kit.together(3);
    const { members, kv } = kit.etcd;
    const add = (learner: boolean) => members.add(ask(a), [`http://127.9.9.${learner ? 1 : 2}:2380`], { learner });
    const { added } = await kit.accepted('a learner, while all are up', () => add(true));
    must(await members.remove(ask(a), added.id)); // learners can always be removed
    const id = await kit.idOf(c);
    await c.stop();
    await kit.until('the others notice', async () => (await kv.put(ask(a, 1_000), 'k', 'v')).ok || undefined);
    expect([kindOf(await add(true)), kindOf(await add(false))]).toEqual(['unhealthyCluster', 'unhealthyCluster']);
    await kit.until('the removal of the dead one', async () => {
      await members.remove(ask(b), id); // it may be carried out although its response is late
      return (await kit.list(b)).length === 2 || undefined;
    });
    await kit.until('a new member is added', async () => (await add(true)).ok || undefined);
  });

  it('a removed member can be added again only in the next second', async ({ kit }) => {
    const seed = await kit.seed();
    const { members } = kit.etcd;
    const add = () => members.add(ask(seed), ['http://127.9.9.1:2380'], { learner: true });
    let result = 'ok';
    for (let i = 0; i < 10 && result === 'ok'; i++) {
      must(await members.remove(ask(seed), must(await add()).added.id));
      const again = await add(); // unless the second was over
      if (again.ok) must(await members.remove(ask(seed), again.value.added.id));
      result = kindOf(again);
      if (again.ok) await kit.pass(1_000);
    }
    expect(result).toBe('notFound');
    await kit.until('the second is over', async () => (await add()).ok || undefined);
  });

  it('a voter can be removed only when a quorum of the others has started', async ({ kit }) => {
    const [a, b] = await kit.together(2);
    const { members } = kit.etcd;
    const add = () => members.add(ask(a), ['http://127.9.9.1:2380'], { learner: false });
    const { added } = await kit.accepted('a third, which does not start', add);
    expect(kindOf(await members.remove(ask(a), await kit.idOf(b)))).toBe('notEnoughStarted');
    must(await members.remove(ask(a), added.id));
  });

  it('a removed member ends, and cannot restart with its old data', async ({ kit }) => {
    const [a, b] = await kit.together(2);
    const { members } = kit.etcd;
    const id = await kit.idOf(b);
    await kit.accepted('the removal', () => members.remove(ask(a), id));
    await b.ended();
    b.start({ initialCluster: initialCluster([a, b]), state: 'existing' });
    expect(await b.ended()).toMatch(/permanently removed|removed from the cluster|removed/);
    expect((await kit.list(a)).map(({ name }) => name)).toEqual(['a']);
  });

  it('a member that restarts keeps the id in its data, whatever its flags say', async ({ kit }) => {
    const seed = await kit.seed();
    const id = await kit.idOf(seed);
    must(await kit.etcd.kv.put(ask(seed), 'k', 'v'));
    await seed.stop();
    seed.start({ initialCluster: `a=${seed.peerURL},z=http://127.9.9.9:2380`, state: 'existing', token: 'other' });
    await seed.ready();
    expect(await kit.idOf(seed)).toBe(id);
    expect(must(await kit.etcd.kv.range(ask(seed), { key: 'k' })).count).toBe(1n);
  });

  it('a follower that lost its data cannot restart under its id', async ({ kit }) => {
    const nodes = await kit.ledBy();
    const [leader, , lost] = nodes;
    must(await kit.etcd.kv.put(ask(leader), 'k', 'v'));
    await lost.stop();
    lost.wipe();
    lost.start({ initialCluster: initialCluster(nodes), state: 'existing' });
    expect(await lost.ended()).toMatch(/Was the raft log corrupted, truncated, or lost/);
    lost.wipe();
    lost.start({ initialCluster: initialCluster(nodes), state: 'new' });
    expect(await lost.ended()).toMatch(/has already been bootstrapped/);
  });

  it('a leader that lost its data can restart, and its lost entries go unnoticed', async ({ kit }) => {
    const nodes = await kit.ledBy();
    const [lost, next] = nodes;
    const id = await kit.idOf(lost);
    must(await kit.etcd.kv.put(ask(lost), 'k', 'v'));
    await lost.stop();
    lost.wipe();
    await kit.accepted('a new leader', () => kit.etcd.kv.put(ask(next, 1_000), 'k', 'w'));
    lost.start({ initialCluster: initialCluster(nodes), state: 'existing' });
    await lost.ready();
    expect(await kit.idOf(lost)).toBe(id);
  });

  it('a member that joins with a wrong initial cluster ends', async ({ kit }) => {
    const seed = await kit.seed();
    const node = kit.node('b');
    node.start({ initialCluster: initialCluster([seed, node]), state: 'existing' }); // no member has added it
    expect(await node.ended()).toMatch(/member count is unequal/);
  });

  it('only the leader can transfer the leadership, and only to a voter', async ({ kit }) => {
    const [a, b] = await kit.together(2);
    const { maintenance } = kit.etcd;
    const { leader, memberId } = must(await maintenance.status(ask(a)));
    const [first, second] = leader === memberId ? [a, b] : [b, a];
    const target = await kit.idOf(second);
    expect(kindOf(await maintenance.moveLeader(ask(second), target))).toBe('notLeader');
    must(await maintenance.moveLeader(ask(first), target));
    await kit.until('the new leader', async () =>
      must(await maintenance.status(ask(first))).leader === target ? true : undefined,
    );
  });
});
