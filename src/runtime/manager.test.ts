import { expect, test } from 'vitest';
import { parseAddress, portOf, serve } from './manager.ts';

test.each([
  [':8080', { port: 8080 }],
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
  ['[::1]:8080', { host: '::1', port: 8080 }],
  ['0', undefined],
  ['', undefined],
])('%j is understood as Go programs do', (text, address) => {
  expect(parseAddress(text)).toEqual(address);
});

test.each(['8080', ':http', ':70000', 'localhost'])('%j is refused with a sentence', (text) => {
  expect(() => parseAddress(text)).toThrow('is not an address');
});

test('pages are served, unknown ones are not found, a broken one is an error and not a crash', async () => {
  const server = await serve('127.0.0.1:0', {
    '/healthz': () => ({ code: 200, text: 'ok\n' }),
    '/broken': () => Promise.reject(new Error('no')),
  });
  if (!server) throw new Error('not listening');
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${portOf(server)}${path}`)).status;
  expect(await Promise.all([get('/healthz?verbose'), get('/nothing'), get('/broken')])).toEqual([200, 404, 500]);
  server.closeAllConnections();
  server.close();
});
