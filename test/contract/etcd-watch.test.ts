/** Leases and watches, on each real version. */
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../src/etcd/errors.ts';
import type { WatchItem } from '../../src/etcd/watch.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, startLab } from '../support/etcd.ts';

function must<T>(answer: Answer<T>): T {
  if (!answer.ok) throw new Error(`${answer.error.kind}: ${answer.error.message}`);
  return answer.value;
}
const kindOf = (answer: Answer<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);

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

describe.concurrent.each(ETCD_VERSIONS)('etcd %s', (version) => {
  // The flag lost its prefix in 3.6, and 3.7 no longer knows the old one.
  const progressFlag = version === '3.5.35' ? 'experimental-watch-progress-notify' : 'watch-progress-notify';
  const it = test.extend<{ lab: EtcdLab }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
    lab: async ({}, use) => {
      const lab = await startLab();
      await use(lab);
      await lab.close();
    },
  });

  it('a watch tells what happens to the keys of a prefix, from a revision on', async ({ lab }) => {
    const node = await lab.seed({ version });
    const { kv, watches } = lab.client;
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

  it('a watch from a revision that was compacted ends with the first that is left', async ({ lab }) => {
    const node = await lab.seed({ version });
    const { kv, watches } = lab.client;
    for (const value of ['1', '2', '3']) must(await kv.put(ask(node), 'k', value));
    must(await kv.compact(ask(node), 4n));
    const items = await Array.fromAsync(watches.watch(ask(node), { key: 'k', fromRevision: 2n }));
    expect(items.at(-1)).toEqual({ is: 'compacted', compactRevision: 4n });
  });

  it('a watch that nothing happens on tells how far that is so', async ({ lab }) => {
    const node = await lab.seed({ version, flags: [`--${progressFlag}-interval=200ms`] });
    const { kv, watches } = lab.client;
    const revision = must(await kv.put(ask(node), 'other', 'v'));
    const items = await readTo(watches.watch(ask(node), { key: 'k', progress: true }), 'progress');
    expect(items.at(-1)).toEqual({ is: 'progress', revision });
  });

  it('a watch ends when its caller gives up, and when its member does', async ({ lab }) => {
    const node = await lab.seed({ version });
    const { watches } = lab.client;
    const stop = new AbortController();
    const given = readTo(watches.watch({ ...ask(node), signal: stop.signal }, { key: 'k' }), 'events');
    const broken = readTo(watches.watch(ask(node), { key: 'k' }), 'events').catch((error: unknown) => error);
    await readTo(watches.watch(ask(node), { key: 'k' }), 'created');
    stop.abort();
    await expect(given).rejects.toMatchObject({ error: { kind: 'canceled' } });
    await node.stop('SIGKILL');
    expect(await broken).toMatchObject({ error: { kind: 'disconnected' } });
  });

  it('a lease holds its keys until it is revoked', async ({ lab }) => {
    const node = await lab.seed({ version });
    const { kv, lease } = lab.client;
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
