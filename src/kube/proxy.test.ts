import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp } from 'node:net';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { proxyFromEnvironment, tunnel } from './proxy.ts';

const tunnelled = promisify(tunnel);

describe('the proxy of the environment', () => {
  const SERVER = 'https://api.example.com:6443';
  test.each([
    ['that of HTTPS', { HTTPS_PROXY: 'http://p:1' }, 'http://p:1'],
    ['in small letters, without a scheme', { https_proxy: 'p:1' }, 'http://p:1'],
    ['not that of HTTP', { HTTP_PROXY: 'http://p:1' }, undefined],
    ['not for a name in NO_PROXY', { HTTPS_PROXY: 'http://p:1', NO_PROXY: 'a, api.example.com' }, undefined],
    ['not for a domain in NO_PROXY', { HTTPS_PROXY: 'http://p:1', NO_PROXY: '.example.com' }, undefined],
    ['for another port than in NO_PROXY', { HTTPS_PROXY: 'http://p:1', NO_PROXY: 'example.com:443' }, 'http://p:1'],
    ['for another name that ends alike', { HTTPS_PROXY: 'http://p:1', NO_PROXY: 'ample.com' }, 'http://p:1'],
    ['none at all', { HTTPS_PROXY: 'http://p:1', NO_PROXY: '*' }, undefined],
  ])('%s', (_, env, proxy) => expect(proxyFromEnvironment(SERVER, env)).toBe(proxy));
  test('never for this machine', () => {
    expect(proxyFromEnvironment('https://127.0.0.1:6443', { HTTPS_PROXY: 'http://p:1' })).toBeUndefined();
  });
});

async function listening(server: ReturnType<typeof createTcp>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return String((server.address() as AddressInfo).port);
}

test('a tunnel through the proxy, with its password; a refusal names the proxy', async () => {
  const target = await listening(createTcp((socket) => socket.end('hello')));
  const asked: (string | undefined)[] = [];
  const proxy = createServer();
  proxy.on('connect', ({ url = '', headers }, socket) => {
    asked.push(headers['proxy-authorization']);
    if (url.endsWith(':1')) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const [host, port] = url.split(':');
    const remote = connect(Number(port), host);
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    socket.pipe(remote).pipe(socket);
    return undefined;
  });
  const port = await listening(proxy);
  const socket = await tunnelled(`http://me:p%40ss@127.0.0.1:${port}`, '127.0.0.1', target);
  const text = await new Promise<string>((resolve) => socket?.once('data', (data) => resolve(String(data))));
  expect([text, asked]).toEqual(['hello', [`Basic ${Buffer.from('me:p@ss').toString('base64')}`]]);
  await expect(tunnelled(`http://127.0.0.1:${port}`, 'a', '1')).rejects.toThrow(
    '127.0.0.1 refused a connection to a:1',
  );
  await expect(tunnelled('socks5://p:1', 'a', '1')).rejects.toThrow('not an HTTP proxy');
});
