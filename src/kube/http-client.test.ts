import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { HttpClient } from './http-client.ts';
import { pods, secrets, services } from './resources.ts';
import { Transport } from './transport.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A server that responds to a creation only on command, and to anything else at once. */
async function aSlowServer() {
  const waiting: ServerResponse[] = [];
  const server = createServer((incoming, outgoing) => {
    if (incoming.method === 'POST' && incoming.url?.includes('/pods')) waiting.push(outgoing);
    else outgoing.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = new Transport(() => Promise.resolve({ server: url }), {});
  cleanups.push(
    () => server.close(),
    () => server.closeAllConnections(),
    () => transport.close(),
  );
  return { client: new HttpClient(transport), waiting };
}

test('at most 32 objects of one kind are created at a time, and no other call waits for them', async () => {
  const { client, waiting } = await aSlowServer();
  const metadata = { namespace: 'n', name: 'a' };
  // A busy machine takes seconds for 32 connections; the default of one second is not about them.
  const until32Wait = () => vi.waitFor(() => expect(waiting.length).toBe(32), { timeout: 20_000 });
  const all = Array.from({ length: 40 }, () => client.create(pods, { metadata } as never));
  await until32Wait();
  await client.create(services, { metadata } as never);
  await client.patch(pods, metadata, {});
  expect(waiting.length).toBe(32);
  for (const answer of waiting.splice(0, 8)) answer.end('{}');
  await until32Wait();
  for (const answer of waiting) answer.end('{}');
  await Promise.all(all);
});

test('a get without a name finds nothing: the request would list the whole kind', async () => {
  const { client } = await aSlowServer();
  expect(await client.get(secrets, { namespace: 'n', name: 'a' })).toEqual({});
  expect(await client.get(secrets, { namespace: 'n', name: '' })).toBeUndefined();
});
