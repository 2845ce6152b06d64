/** Leases and watches, on each real version and on the model. */
import { describe, expect } from 'vitest';
import type { WatchItem } from '../../src/etcd/watch.ts';
import { ask, IMPLEMENTATIONS, inWorld, kindOf, must } from './etcd-world.ts';

/** Reads until an item of this kind has come; what it read. */
async function readTo(watch: AsyncIterable<WatchItem>, is: WatchItem['is']): Promise<readonly WatchItem[]> {
  const items: WatchItem[] = [];
  for await (const item of watch) {
    items.push(item);
    if (item.is === is) return items;
  }
  return items;
}

const text = (data: Uint8Array): string => new TextDecoder().decode(data);

describe.concurrent.each(IMPLEMENTATIONS)('etcd $name', ({ start }) => {
  const it = inWorld(start);

  it('a watch tells what happens to the keys of a prefix, from a revision on', async ({ world }) => {
    const node = await world.seed();
    const { kv, watches } = world.etcd;
    const from = must(await kv.put(ask(node), 'a/1', 'first'));
    must(await kv.put(ask(node), 'b/1', 'other'));
    must(await kv.put(ask(node), 'a/1', 'second'));
    const seen: string[] = [];
    const watch = watches.watch(ask(node), { key: 'a/', prefix: true, fromRevision: from, previous: true });
    for await (const item of watch) {
      if (item.is === 'created') must(await kv.delete(ask(node), { key: 'a/1' }));
      if (item.is !== 'events') continue;
      for (const { type, kv: now, previous } of item.events)
        seen.push(`${type} ${text(now.value)} after ${previous ? text(previous.value) : 'nothing'}`);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual(['put first after nothing', 'put second after first', 'delete  after second']);
  });

  it('a watch from a revision that was compacted ends with the first that is left', async ({ world }) => {
    const node = await world.seed();
    const { kv, watches } = world.etcd;
    for (const value of ['1', '2', '3']) must(await kv.put(ask(node), 'k', value));
    must(await kv.compact(ask(node), 4n));
    const items = await Array.fromAsync(watches.watch(ask(node), { key: 'k', fromRevision: 2n }));
    expect(items.at(-1)).toEqual({ is: 'compacted', compactRevision: 4n });
  });

  it('a watch that nothing happens on tells how far that is so', async ({ world }) => {
    const node = await world.seed({ progressMs: 200 });
    const { kv, watches } = world.etcd;
    const revision = must(await kv.put(ask(node), 'other', 'v'));
    const watch = watches.watch(ask(node), { key: 'k', progress: true });
    let last: WatchItem | undefined;
    void readTo(watch, 'progress').then((items) => {
      last = items.at(-1);
    });
    expect(await world.until('progress', async () => last)).toEqual({ is: 'progress', revision });
  });

  it('a watch ends when its caller gives up, and when its member does', async ({ world }) => {
    const node = await world.seed();
    const { watches } = world.etcd;
    const stop = new AbortController();
    const given = readTo(watches.watch({ ...ask(node), signal: stop.signal }, { key: 'k' }), 'events');
    const broken = readTo(watches.watch(ask(node), { key: 'k' }), 'events').catch((error: unknown) => error);
    await readTo(watches.watch(ask(node), { key: 'k' }), 'created');
    stop.abort();
    await expect(given).rejects.toMatchObject({ error: { kind: 'canceled' } });
    await node.stop();
    expect(await broken).toMatchObject({ error: { kind: 'disconnected' } });
  });

  it('a lease holds its keys until it is revoked', async ({ world }) => {
    const node = await world.seed();
    const { kv, lease } = world.etcd;
    const { id } = must(await lease.grant(ask(node), 60n));
    must(await kv.put(ask(node), 'k', 'v', { lease: id }));
    expect(must(await lease.keepAlive(ask(node), id))).toEqual({ id, ttlSeconds: 60n });
    expect(must(await lease.timeToLive(ask(node), id, { keys: true }))).toMatchObject({
      grantedSeconds: 60n,
      keys: [new TextEncoder().encode('k')],
    });
    expect(must(await lease.list(ask(node)))).toEqual([id]);
    expect(kindOf(await lease.grant(ask(node), 60n, id))).toBe('alreadyExists');
    must(await lease.revoke(ask(node), id));
    expect(must(await kv.range(ask(node), { key: 'k' })).count).toBe(0n);
    expect([
      kindOf(await lease.revoke(ask(node), id)),
      kindOf(await lease.keepAlive(ask(node), id)),
      kindOf(await lease.timeToLive(ask(node), id)),
      kindOf(await kv.put(ask(node), 'k', 'v', { lease: id })),
    ]).toEqual(['notFound', 'notFound', 'notFound', 'notFound']);
  });
});
