/** The HTTP proxy in front of the API server, as kubectl finds it: `proxy-url` of the kubeconfig, else the environment. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';

type Env = Readonly<Record<string, string | undefined>>;

const CONNECT_MS = 15_000;

/** Whether NO_PROXY names the host: itself, a domain that it is in, or all. */
function isExcluded(host: string, port: string, list: string): boolean {
  return list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      const [name = '', only] = entry.split(':');
      if (only !== undefined && only !== port) return false;
      const domain = name.replace(/^\*?\./, '');
      return host === domain || host.endsWith(`.${domain}`);
    });
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || host.startsWith('127.');

/** From HTTPS_PROXY or HTTP_PROXY; never for this machine itself. */
export function proxyFromEnvironment(server: string, env: Env): string | undefined {
  const { protocol, hostname, port } = new URL(server);
  const name = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const given = env[name] || env[name.toLowerCase()];
  const without = env['NO_PROXY'] || env['no_proxy'] || '';
  const effective = port || (protocol === 'https:' ? '443' : '80');
  if (!given || isLoopback(hostname) || isExcluded(hostname.toLowerCase(), effective, without)) return undefined;
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`;
}

export type Tunnelled = (error: Error | null, socket: Socket | null) => void;

/** A connection to the host through the proxy: the proxy sees only bytes. Calls back as undici's connectors do. */
export function tunnel(proxy: string, host: string, port: string, done: Tunnelled): void {
  const { protocol, hostname, port: own, username, password } = new URL(proxy);
  if (protocol !== 'http:' && protocol !== 'https:')
    return done(new Error(`the proxy ${protocol}//${hostname} is not an HTTP proxy`), null);
  const account = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const target = `${host}:${port}`;
  const outgoing = (protocol === 'https:' ? httpsRequest : httpRequest)({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: own || (protocol === 'https:' ? 443 : 80),
    method: 'CONNECT',
    path: target,
    timeout: CONNECT_MS,
    agent: false,
    headers: {
      host: target,
      ...(username !== '' && { 'proxy-authorization': `Basic ${Buffer.from(account).toString('base64')}` }),
    },
  });
  outgoing.once('connect', ({ statusCode }, socket) => {
    if (statusCode === 200) return done(null, socket);
    socket.destroy();
    return done(new Error(`the proxy ${hostname} refused a connection to ${target}: HTTP ${statusCode}`), null);
  });
  outgoing.once('timeout', () => outgoing.destroy(new Error(`the proxy ${hostname} did not respond`)));
  outgoing.once('error', (error) => done(error, null));
  outgoing.end();
}
