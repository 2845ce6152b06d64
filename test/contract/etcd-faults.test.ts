/** Faults on the connection to etcd: every one of the proxy, TLS failures, and a member that hangs. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Result } from '../../src/etcd/errors.ts';
import { atAny } from '../../src/etcd/failover.ts';
import { openSession } from '../../src/etcd/transport.ts';
import { UserClient } from '../support/etcd-client.ts';
import { type GrpcProxy, startGrpcProxy } from '../support/faults/grpc-proxy.ts';
import { ask, type EtcdLab, type Node, startLab } from '../support/servers/etcd.ts';
import { eventually } from '../support/servers/processes.ts';

function must<T>(answer: Result<T>): T {
  if (!answer.ok) throw new Error(`${answer.error.kind}: ${answer.error.message}`);
  return answer.value;
}
const kindOf = (answer: Result<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);

let lab: EtcdLab;
let node: Node;
beforeAll(async () => {
  lab = await startLab();
  node = await lab.seed({ version: '3.6.16' });
});
afterAll(() => lab.close());

async function aProxy(): Promise<GrpcProxy> {
  const proxy = await startGrpcProxy({ target: node.endpoint });
  onTestFinished(() => proxy.close());
  return proxy;
}

function aClient(pings = { pingIntervalMs: 10_000, pingTimeoutMs: 5_000 }): UserClient {
  const open = (target: Parameters<typeof openSession>[0]) => openSession(target, { ...pings, idleMs: 60_000 });
  const client = new UserClient(() => performance.now(), { open });
  onTestFinished(() => client.close());
  return client;
}

describe('the fault proxy', () => {
  test('forwards everything without a fault: calls, errors, streams in both directions', async () => {
    const proxy = await aProxy();
    const client = aClient();
    must(await client.kv.put(ask(proxy), 'through', 'v'));
    expect(must(await client.kv.range(ask(proxy), { key: 'through' })).count).toBe(1n);
    expect(kindOf(await client.members.remove(ask(proxy), 42n))).toBe('notFound');
    const snapshot = client.maintenance.snapshot(ask(proxy, 20_000));
    for await (const _ of snapshot);
    expect(snapshot.digest).toBeDefined();
    for await (const item of client.watch(ask(proxy), { key: 'watched' })) {
      if (item.is === 'created') must(await client.kv.put(ask(proxy), 'watched', 'v'));
      if (item.is === 'events') break;
    }
    expect(proxy.calls.map(({ method }) => method)).toEqual([
      'KV/Put',
      'KV/Range',
      'Cluster/MemberRemove',
      'Maintenance/Snapshot',
      'Watch/Watch',
      'KV/Put',
    ]);
    expect(proxy.connections).toBe(1);
  });

  test('a crash before the N-th call of a kind: etcd never receives it', async () => {
    const proxy = await aProxy();
    const client = aClient();
    const crashed: string[] = [];
    proxy.add({ method: 'KV/Put', nth: 2, fault: { do: 'before', crash: () => void crashed.push('now') } });
    must(await client.kv.put(ask(proxy), 'before', '1'));
    must(await client.kv.range(ask(proxy), { key: 'before' })); // a call of another kind does not count
    expect(kindOf(await client.kv.put(ask(proxy), 'before', '2'))).toBe('disconnected');
    expect(crashed).toEqual(['now']);
    expect(must(await client.get(ask(node), 'before'))).toBe('1');
    must(await client.kv.put(ask(proxy), 'before', '3'));
  });

  test('a crash after a call, before its response: etcd has carried it out', async () => {
    const proxy = await aProxy();
    const client = aClient();
    let during: string | undefined;
    const crash = async () => {
      during = must(await lab.client.get(ask(node), 'after'));
    };
    proxy.add({ method: 'KV/Put', nth: 1, fault: { do: 'after', crash } });
    expect(kindOf(await client.kv.put(ask(proxy), 'after', 'made'))).toBe('disconnected');
    expect(during).toBe('made');
  });

  test('delays, hangs, lost responses, cuts and responses of its own', async () => {
    const proxy = await aProxy();
    const client = aClient();
    const put = (value: string, timeoutMs = 5_000) => client.kv.put(ask(proxy, timeoutMs), 'k', value);
    must(await put('0'));

    const undelay = proxy.add({ fault: { do: 'delay', ms: 200 } });
    const started = performance.now();
    must(await put('delayed'));
    expect(performance.now() - started).toBeGreaterThan(190);
    undelay();

    proxy.add({ nth: 1, fault: { do: 'hang' } });
    expect(kindOf(await put('hung', 300))).toBe('timeout');
    expect(must(await lab.client.get(ask(node), 'k'))).toBe('delayed');

    proxy.add({ nth: 1, fault: { do: 'swallow' } });
    const swallowed = put('swallowed', 1_500);
    await eventually(
      'etcd carries it out',
      async () => must(await lab.client.get(ask(node), 'k')) === 'swallowed' || undefined,
    );
    expect(kindOf(await swallowed)).toBe('timeout');

    proxy.add({ nth: 1, fault: { do: 'cut' } });
    expect(kindOf(await put('cut'))).toBe('disconnected');

    proxy.add({ nth: 1, fault: { do: 'answer', code: 14, message: 'etcdserver: no leader' } });
    expect(kindOf(await put('refused'))).toBe('noLeader');
    must(await put('well again'));
  });

  test('the timeout of a call reaches etcd', async () => {
    const proxy = await aProxy();
    await aClient().status(ask(proxy, 1_234));
    expect(proxy.calls[0]?.headers['grpc-timeout']).toMatch(/^12[0-3]\dm$/);
  });

  test('a request that a learner refuses is sent to the next member', async () => {
    const learner = await aProxy();
    learner.add({ fault: { do: 'answer', code: 9, message: 'etcdserver: rpc not supported for learner' } });
    const client = aClient();
    const answer = await atAny([learner.endpoint, node.endpoint], { timeoutMs: 5_000 }, { repeatable: false }, (one) =>
      client.members.list(one, { linearizable: true }),
    );
    expect(must(answer).members).toHaveLength(1);
  });
});

describe('a member that hangs', () => {
  test('is detected by a call at its timeout and by a watch through pings, and is used again when it responds', async () => {
    const own = await startLab();
    onTestFinished(() => own.close());
    const hanging = await own.seed({ version: '3.6.16' });
    const client = aClient(); // a client of its own: closing the other client's connection would end its call, too
    const watcher = aClient({ pingIntervalMs: 500, pingTimeoutMs: 1_000 });
    must(await client.status(ask(hanging)));
    const watch = watcher.watch(ask(hanging), { key: 'k' });
    expect((await watch.next()).value).toMatchObject({ is: 'created' });
    await hanging.freeze();
    const started = performance.now();
    const [answer, end] = await Promise.all([
      client.status(ask(hanging, 300)),
      watch.next().catch((error: unknown) => error),
    ]);
    expect(kindOf(answer)).toBe('timeout');
    expect(end).toMatchObject({ error: { kind: 'disconnected' } });
    expect(performance.now() - started).toBeLessThan(5_000);
    hanging.thaw();
    for (const each of [client, watcher]) must(await each.status(ask(hanging)));
  });

  test('a canceled call returns immediately', async () => {
    const proxy = await aProxy();
    proxy.add({ fault: { do: 'hang' } });
    const stop = new AbortController();
    const answer = aClient().status({ ...ask(proxy, 30_000), signal: stop.signal });
    setTimeout(() => stop.abort(), 50);
    expect(kindOf(await answer)).toBe('canceled');
  });
});
