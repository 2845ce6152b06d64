import { expect, test } from 'vitest';
import { parseAddress, portOf, serve } from './manager.ts';

test.each([
  [':8080', { port: 8080 }],
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
  ['[::1]:8080', { host: '::1', port: 8080 }],
  ['0', undefined],
  ['', undefined],
])('the address %j is parsed as Go programs do', (text, address) => {
  expect(parseAddress(text)).toEqual(address);
});

test.each(['8080', ':http', ':70000', 'localhost'])('the address %j is an error', (text) => {
  expect(() => parseAddress(text)).toThrow('is not an address');
});

test('pages are served, an unknown one is a 404, and one that fails is a 500 and not a crash', async () => {
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
