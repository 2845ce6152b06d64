/** Errors of streams that undici has abandoned must not end the process. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type ClientHttp2Stream, createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createCA } from '../../local/pki.ts';
import { unheard } from '../../src/kube/connections.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { Transport } from '../../src/kube/transport.ts';

test('a stream that undici no longer listens to, and whose connection breaks then, does not end the process', async () => {
  const ca = await createCA();
  const server = createSecureServer(await ca.issue({ user: 'server' }, ['127.0.0.1']));
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200 });
    stream.write('{}\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = new Transport(() => Promise.resolve({ server: address, ca: ca.cert }));
  const streams: ClientHttp2Stream[] = [];
  const see = (message: unknown): void => void streams.push((message as { stream: ClientHttp2Stream }).stream);
  subscribe('http2.client.stream.created', see);
  onTestFinished(async () => {
    unsubscribe('http2.client.stream.created', see);
    await transport.close();
    server.close();
  });

  const watch = transport.lines('/watch', { signal: AbortSignal.timeout(20_000) });
  expect((await watch.next()).value).toEqual({});
  const [stream] = streams;
  if (!stream) throw new Error('undici opened no HTTP/2 stream');
  // As observed with undici: 'other side closed' then came from a stream without a listener.
  const ours = stream.listeners('error').filter((listener) => listener === unheard);
  stream.removeAllListeners('error');
  for (const _ of ours) stream.on('error', unheard);
  stream.destroy(new Error('other side closed'));
  await new Promise((resolve) => stream.once('close', resolve));
  const end = await watch.next().catch((error: unknown) => error);
  expect(end).toBeInstanceOf(ApiError);
});
