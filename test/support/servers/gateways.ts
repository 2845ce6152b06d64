/** What stands between a user and the API server: a proxy that tunnels, and a gateway that serves it below a path. */
import { createServer, type IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Identity } from '../../../src/kube/identity.ts';

export interface Gateway {
  readonly url: string;
  /** Hosts of tunnels, or paths of requests. */
  readonly seen: readonly string[];
  close(): void;
}

async function started(server: ReturnType<typeof createServer>, seen: readonly string[], path = ''): Promise<Gateway> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}${path}`, seen, close };
}

export function startConnectProxy(): Promise<Gateway> {
  const seen: string[] = [];
  const server = createServer();
  server.on('connect', ({ url = '' }: IncomingMessage, socket: Duplex) => {
    seen.push(url);
    const [host, port] = url.split(':');
    const remote = connect(Number(port), host);
    remote.on('connect', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    for (const [one, other] of [
      [socket, remote],
      [remote, socket],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
    socket.pipe(remote).pipe(socket);
  });
  return started(server, seen);
}

/** Speaks to the API server as this identity, as gateways of providers do. */
export function startPathGateway({ server: upstream, ca, token = '' }: Identity, path: string): Promise<Gateway> {
  const seen: string[] = [];
  const { hostname, port } = new URL(upstream);
  const forwarded = ({ method, url = '', headers }: IncomingMessage) => {
    seen.push(url);
    const sent = { ...headers, host: `${hostname}:${port}`, authorization: `Bearer ${token}` };
    return request({ host: hostname, port, ca, method, path: url.slice(path.length), headers: sent, agent: false });
  };
  const server = createServer((incoming, outgoing) => {
    if (!incoming.url?.startsWith(`${path}/`)) return outgoing.writeHead(404).end();
    const asked = forwarded(incoming);
    asked.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    asked.on('error', () => outgoing.destroy());
    incoming.pipe(asked);
    return undefined;
  });
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex) => {
    const asked = forwarded(incoming);
    asked.on('upgrade', ({ headers }, remote) => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`);
      remote.on('error', () => socket.destroy());
      socket.on('error', () => remote.destroy());
      remote.pipe(socket).pipe(remote);
    });
    asked.on('response', () => socket.destroy());
    asked.on('error', () => socket.destroy());
    asked.end();
  });
  return started(server, seen, path);
}
