import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { acceptPort, message } from '../../test/support/servers/websocket.ts';
import { podLog } from './pod-log.ts';
import { listenForPod, openPodPort } from './port-forward.ts';
import { Transport } from './transport.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A Pod whose port echoes in capitals, behind an API server that serves the channel protocol. */
async function aPod(onOpen: (socket: Duplex) => void = () => undefined) {
  const asked: string[] = [];
  const server = createServer((incoming, outgoing) => {
    asked.push(incoming.url ?? '');
    outgoing.write('one\ntw');
    outgoing.end('o\nthree');
  });
  server.on('upgrade', (incoming, socket) => {
    const { 'sec-websocket-protocol': protocol, authorization } = incoming.headers;
    asked.push(`${incoming.url} ${protocol} ${authorization}`);
    acceptPort(incoming, socket);
    onOpen(socket);
    cleanups.push(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = new Transport(() => Promise.resolve({ server: url, token: 't' }));
  cleanups.push(
    () => server.close(),
    () => server.closeAllConnections(),
    () => transport.close(),
  );
  return { transport, asked };
}
const ref = { namespace: 'n', name: 'p' };
const soon = () => AbortSignal.timeout(3_000);

test('bytes reach the port of the Pod and are echoed', async () => {
  const { transport, asked } = await aPod();
  const port = await openPodPort(transport, ref, 2379, soon());
  port.write('hello');
  expect(String((await once(port, 'data'))[0])).toBe('HELLO');
  port.write('x'.repeat(1_000));
  expect(String((await once(port, 'data'))[0])).toBe('X'.repeat(1_000));
  expect(asked).toEqual(['/api/v1/namespaces/n/pods/p/portforward?ports=2379 v4.channel.k8s.io Bearer t']);
  port.destroy();
});

test('an error in the Pod is reported', async () => {
  const { transport } = await aPod((socket) => setTimeout(() => socket.write(message(1, 'connection refused')), 20));
  const port = await openPodPort(transport, ref, 2379, soon());
  const [error] = (await once(port, 'error')) as [Error];
  expect(error.message).toContain('connection refused');
});

test('an unreachable server is an error, and so is one that does not respond in time', async () => {
  const { transport } = await aPod();
  const unreachable = new Transport(() => Promise.resolve({ server: 'http://127.0.0.1:1' }));
  await expect(openPodPort(unreachable, ref, 1, soon())).rejects.toMatchObject({
    name: 'ApiError',
    reason: 'Unreachable',
  });
  await expect(openPodPort(transport, ref, 1, AbortSignal.abort())).rejects.toMatchObject({ name: 'ApiError' });
});

test('a local port forwards to the Pod', async () => {
  const { transport } = await aPod();
  const local = await listenForPod(transport, ref, 2379, { signal: soon(), onError: () => undefined });
  const socket = connect(local.port, '127.0.0.1');
  socket.write('through');
  expect(String((await once(socket, 'data'))[0])).toBe('THROUGH');
  local.close();
  await once(socket, 'close');
});

test('a log is read line by line, with or without a final line break', async () => {
  const { transport, asked } = await aPod();
  const lines: string[] = [];
  for await (const line of podLog(transport, ref, { container: 'etcd', tailLines: 3, previous: true, signal: soon() }))
    lines.push(line);
  expect(lines).toEqual(['one', 'two', 'three']);
  expect(asked).toEqual(['/api/v1/namespaces/n/pods/p/log?container=etcd&tailLines=3&previous=true']);
});
