import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { ApiError } from './errors.ts';
import type { IdentitySource } from './identity.ts';
import { type CallReport, Transport } from './transport.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Answer = (incoming: IncomingMessage, outgoing: ServerResponse) => void;
async function against(answer: Answer, source?: (server: string) => IdentitySource) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const calls: CallReport[] = [];
  const identity = source?.(url) ?? (() => Promise.resolve({ server: url }));
  const transport = new Transport(identity, { onCall: (report) => calls.push(report) });
  cleanups.push(
    () => server.close(),
    () => server.closeAllConnections(),
    () => transport.close(),
  );
  return { transport, calls, server };
}
const failure = (call: Promise<unknown>): Promise<ApiError> =>
  call.then(
    () => Promise.reject(new Error('did not fail')),
    (error: unknown) => {
      if (error instanceof ApiError) return error;
      throw error;
    },
  );

test.each<[string, Answer, object]>([
  [
    'a refusal',
    (_i, o) => o.writeHead(403).end('{"reason":"Forbidden","message":"not you"}'),
    { code: 403, reason: 'Forbidden', serverMessage: 'not you' },
  ],
  ['text that is no JSON', (_i, o) => o.writeHead(502).end('<html>'), { code: 502, serverMessage: '<html>' }],
  [
    'a Retry-After header',
    (_i, o) => o.writeHead(429, { 'retry-after': '3' }).end('{}'),
    { code: 429, retryAfterMs: 3_000 },
  ],
  [
    'a Retry-After header without measure',
    (_i, o) => o.writeHead(429, { 'retry-after': '99999' }).end('{}'),
    { retryAfterMs: 60_000 },
  ],
  [
    'a date instead of seconds',
    (_i, o) => o.writeHead(503, { 'retry-after': 'Wed, 21 Oct 2026' }).end('{}'),
    { retryAfterMs: undefined },
  ],
  ['an incomplete response', (_i, o) => o.writeHead(200).end('{"a":'), { code: 0, reason: 'Garbled' }],
  ['a broken connection', (i) => i.socket.destroy(), { code: 0, reason: 'Unreachable' }],
  ['silence', () => undefined, { code: 0, reason: 'Timeout' }],
])('%s is an ApiError', async (_what, answer, expected) => {
  const { transport, calls } = await against(answer);
  expect(await failure(transport.json('/api/v1/pods', { timeoutMs: 2_000 }))).toMatchObject(expected);
  expect(calls).toMatchObject([{ verb: 'list', resource: 'pods' }]);
});

test('a call that is aborted ends at once', async () => {
  const { transport } = await against(() => undefined);
  const stop = new AbortController();
  const call = failure(transport.json('/api/v1/pods', { signal: stop.signal }));
  setTimeout(() => stop.abort(), 20);
  expect(await call).toMatchObject({ code: 0, reason: 'Aborted' });
});

test('a refused connection is an ApiError, too', async () => {
  const { transport, server } = await against(() => undefined);
  await new Promise((resolve) => server.close(resolve));
  expect(await failure(transport.json('/version'))).toMatchObject({ reason: 'Unreachable' });
});

test('a token that is refused is read again, and the call is repeated with the new one', async () => {
  const seen: string[] = [];
  const { transport } = await against(
    ({ headers }, outgoing) => {
      seen.push(headers.authorization ?? '');
      outgoing.writeHead(headers.authorization === 'Bearer new' ? 200 : 401).end('{}');
    },
    (server) => async (doubt) => ({ server, token: doubt === 'refused' ? 'new' : 'old' }),
  );
  await transport.json('/api/v1/pods', { method: 'POST', body: {} });
  expect(seen).toEqual(['Bearer old', 'Bearer new']);
});

test('without a new token, a refused call is not repeated', async () => {
  let calls = 0;
  const { transport } = await against((_i, outgoing) => {
    calls++;
    outgoing.writeHead(401).end('{}');
  });
  expect((await failure(transport.json('/api/v1/pods'))).code).toBe(401);
  expect(calls).toBe(1);
});

test('the Lease is checked when the request is sent, not when it was decided on', async () => {
  let arrived = 0;
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { transport } = await against(
    (_i, outgoing) => {
      arrived++;
      outgoing.end('{}');
    },
    (server) => async () => {
      await held;
      return { server };
    },
  );
  let may = true;
  const call = failure(transport.json('/api/v1/pods', { method: 'POST', body: {}, maySend: () => may }));
  may = false; // between the decision and the wire
  release();
  expect(await call).toMatchObject({ reason: 'NotLeading' });
  expect(arrived).toBe(0);
});

test('documents are parsed line by line, also across chunks; an incomplete last line is dropped', async () => {
  const { transport } = await against((_i, outgoing) => {
    const pieces = ['{"n":1}\n{"n"', ':2}\n', '\n{"n":"é', '"}\n{"n":'];
    const next = (): void => {
      const piece = pieces.shift();
      if (piece === undefined) outgoing.end();
      else outgoing.write(piece, () => setTimeout(next, 5));
    };
    next();
  });
  const seen: unknown[] = [];
  for await (const line of transport.lines('/x', { signal: new AbortController().signal })) seen.push(line);
  expect(seen).toEqual([{ n: 1 }, { n: 2 }, { n: 'é' }]);
});
