/** The fault proxy does what it promises: tests that use it would otherwise prove nothing. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { Transport } from '../../src/kube/transport.ts';
import { type Fault, type FaultProxy, startFaultProxy } from '../support/faults/proxy.ts';
import { eventually, pause } from '../support/servers/processes.ts';

const PODS = '/api/v1/namespaces/n/pods';
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A server that records its requests, and a client that reaches it through a proxy. */
async function aProxy(onWatch: (response: ServerResponse) => void = () => undefined) {
  const reached: string[] = [];
  const server = createServer((incoming, outgoing) => {
    reached.push(`${incoming.method} ${incoming.url}`);
    if (incoming.url?.includes('watch=true')) {
      outgoing.writeHead(200).flushHeaders();
      return onWatch(outgoing);
    }
    outgoing.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ message: 'hello' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = await startFaultProxy({
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: 't',
  });
  const transport = new Transport(() => Promise.resolve(proxy.identity));
  cleanups.push(
    () => server.close(),
    () => server.closeAllConnections(),
    () => proxy.close(),
    () => transport.close(),
  );
  const create = (timeoutMs = 10_000) => transport.json(PODS, { method: 'POST', body: {}, timeoutMs });
  return { proxy, transport, create, reached };
}

test('without a rule everything is forwarded, and is counted by verb and kind', async () => {
  const { proxy, transport, create, reached } = await aProxy();
  expect(await create()).toEqual({ message: 'hello' });
  await transport.json('/apis/coordination.k8s.io/v1/namespaces/n/leases/l', { method: 'PATCH', body: {} });
  await transport.json(`${PODS}/a/status`);
  expect(reached.length).toBe(3);
  expect(proxy.calls.map((c) => `${c.verb} ${c.resource} ${c.namespace}/${c.name} ${c.write} ${c.code}`)).toEqual([
    'create pods n/ true 201',
    'patch leases n/l false 201',
    'get pods/status n/a false 201',
  ]);
});

test.each<[string, Fault, string, number]>([
  ['gets a response from the proxy', { do: 'answer', code: 409 }, '409 Conflict', 0],
  ['gets Retry-After', { do: 'answer', code: 429, retryAfterSeconds: 7 }, '429 TooManyRequests', 0],
  ['hangs', { do: 'hang' }, 'Timeout', 0],
  ['reaches the server, and hangs', { do: 'hang', forward: true }, 'Timeout', 1],
  ['is reset before it reaches the server', { do: 'reset', when: 'before' }, 'Unreachable', 0],
  ['is reset in the middle of the response', { do: 'reset', when: 'mid-response' }, 'Unreachable', 1],
  ['is interrupted before', { do: 'interrupt', when: 'before', run: async () => undefined }, 'Unreachable', 0],
  ['is interrupted after', { do: 'interrupt', when: 'after', run: async () => undefined }, 'Unreachable', 1],
])('the second write %s; the others are forwarded', async (_what, fault, message, arrived) => {
  const { proxy, create, reached } = await aProxy();
  const remove = proxy.fault({ write: true, nth: 2 }, fault);
  await create();
  await expect(create(fault.do === 'hang' ? 1_000 : undefined)).rejects.toThrow(message);
  remove();
  expect(reached.length - 1).toBe(arrived);
  expect(await create()).toEqual({ message: 'hello' });
});

test('Retry-After arrives', async () => {
  const { proxy, create } = await aProxy();
  proxy.fault({}, { do: 'answer', code: 429, retryAfterSeconds: 7 });
  await expect(create()).rejects.toMatchObject({ code: 429, retryAfterMs: 7_000 });
});

test('a call that is held continues when it is released', async () => {
  const { proxy, create, reached } = await aProxy();
  const release = proxy.fault({ verb: 'create' }, { do: 'hold' });
  const call = create();
  await pause(50);
  expect(reached).toEqual([]);
  release();
  expect(await call).toEqual({ message: 'hello' });
});

const event = (type: string, name: string): string => `${JSON.stringify({ type, object: { metadata: { name } } })}\n`;

/** Far more than an immediate event takes, on any machine. */
const LATE_MS = 1_000;

/** The events that a watch of Pods receives, and how late. It is ended after the timeout, or soon after `enough` events. */
async function watching(
  proxy: FaultProxy,
  transport: Transport,
  fault: Fault,
  ms: number,
  enough = Number.POSITIVE_INFINITY,
): Promise<readonly string[]> {
  proxy.fault({ verb: 'watch', resource: 'pods' }, fault);
  const seen: string[] = [];
  const started = performance.now();
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(ms)]);
  try {
    type Wire = { type: string; object: { metadata?: { name: string }; code?: number } };
    for await (const e of transport.lines<Wire>(PODS, { query: { watch: 'true' }, signal })) {
      const late = Math.floor((performance.now() - started) / LATE_MS);
      if (seen.push(`${e.type} ${e.object.metadata?.name ?? e.object.code} ${late}`) === enough)
        setTimeout(() => over.abort(), 100);
    }
    seen.push('end');
  } catch {
    seen.push('broken');
  }
  return seen;
}

test.each<[string, Fault, readonly string[]]>([
  ['as they are', { do: 'delay', ms: 0 }, ['ADDED a 0', 'MODIFIED a 0', 'DELETED a 0', 'broken']],
  ['late', { do: 'watch', how: { is: 'late', ms: LATE_MS } }, ['ADDED a 1', 'MODIFIED a 1', 'DELETED a 1', 'broken']],
  ['with gaps', { do: 'watch', how: { is: 'lossy', types: ['MODIFIED'] } }, ['ADDED a 0', 'DELETED a 0', 'broken']],
  ['as their last state only', { do: 'watch', how: { is: 'coalesced', ms: LATE_MS + 10 } }, ['DELETED a 1', 'broken']],
  ['cut short', { do: 'watch', how: { is: 'cut', afterMs: 500 } }, ['ADDED a 0', 'MODIFIED a 0', 'DELETED a 0', 'end']],
  [
    'not for a while, and then with 410',
    { do: 'watch', how: { is: 'lost', ms: LATE_MS + 10 } },
    ['ERROR 410 1', 'end'],
  ],
  ['with 410', { do: 'watch', how: { is: 'gone' } }, ['ERROR 410 0', 'end']],
])('events arrive %s', async (_how, fault, expected) => {
  const { proxy, transport, create } = await aProxy((response) => {
    response.write(event('ADDED', 'a') + event('MODIFIED', 'a') + event('DELETED', 'a'));
  });
  await create(); // opens a connection, so that only the watch itself is measured
  const enough = expected.at(-1) === 'broken' ? expected.length - 1 : undefined;
  expect(await watching(proxy, transport, fault, 20_000, enough)).toEqual(expected);
});

test('all connections break at once, and new ones are opened', async () => {
  const { proxy, transport, create } = await aProxy();
  const watch = watching(proxy, transport, { do: 'delay', ms: 0 }, 2_000);
  await pause(100);
  proxy.cut();
  expect(await watch).toEqual(['broken']);
  await create();
});

test('after GOAWAY calls use a new connection, and no call waits', async () => {
  let watched: ServerResponse | undefined;
  const { proxy, transport, create } = await aProxy((response) => {
    response.write(event('ADDED', 'a'));
    watched = response;
  });
  const watch = watching(proxy, transport, { do: 'delay', ms: 0 }, 20_000, 2);
  await create();
  const response = await eventually('the watch', () => watched);
  for (let round = 0; round < 5; round++) {
    proxy.goAway();
    await pause(50);
    for (let n = 0; n < 5; n++) {
      const started = performance.now();
      await create();
      expect(performance.now() - started).toBeLessThan(1_000); // the timeout of a connection that is never opened
    }
  }
  response.write(event('MODIFIED', 'a'));
  expect((await watch).map((words) => words.split(' ')[0])).toEqual(['ADDED', 'MODIFIED', 'broken']);
});

test('a frozen network is detected: the call times out, the dead connection is dropped with its watches, and new calls succeed', async () => {
  const { proxy, transport, create } = await aProxy();
  const watch = watching(proxy, transport, { do: 'delay', ms: 0 }, 20_000);
  await create();
  proxy.freeze();
  await expect(create(1_000)).rejects.toMatchObject({ reason: 'Timeout' });
  expect(await watch).toEqual(['broken']);
  expect(await create()).toEqual({ message: 'hello' });
});
