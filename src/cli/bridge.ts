/**
 * A local address behind which a member of the cluster is. For programs such as etcdctl: a socket that only this user can open, and
 * behind it TLS with the certificates that the plugin has found; no key is written to a file. For others: a TCP port, with the
 * member's own TLS.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import type { Reached, Session } from './gather/session.ts';

export interface Bridge {
  readonly address: string;
  readonly close: () => void;
}

/** In turns: a member that does not respond costs one connection, and clients try again. */
function inTurns(session: Session): () => Reached | undefined {
  let next = 0;
  return () => session.reached[next++ % session.reached.length];
}

function remoteOf(session: Session, member: Reached, terminate: boolean): Socket {
  const { hostname: host, port } = new URL(member.endpoint);
  const tls = terminate ? session.credentials.access.tls?.(member.endpoint) : undefined;
  if (!tls) return connect({ host, port: Number(port) });
  const { ca, cert, key, serverName } = tls;
  return connectTls({
    host,
    port: Number(port),
    ca,
    ALPNProtocols: ['h2'],
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(serverName !== undefined && { servername: serverName }),
  });
}

function serverFor(session: Session, terminate: boolean): { readonly server: Server; readonly close: () => void } {
  const open = new Set<Socket>();
  const next = inTurns(session);
  const server = createServer((local) => {
    const member = next();
    if (!member) return local.destroy();
    const remote = remoteOf(session, member, terminate);
    for (const [socket, other] of [
      [local, remote],
      [remote, local],
    ] as const) {
      open.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
    local.pipe(remote).pipe(local);
    return undefined;
  });
  const close = (): void => {
    server.close();
    for (const socket of open) socket.destroy();
  };
  return { server, close };
}

const listening = (server: Server, listen: () => void): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => resolve());
    listen();
  });

/** A folder that only this user can enter; it is removed with all that is in it. */
export async function privateFolder(): Promise<{ readonly path: string; readonly remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'kubectl-etcd-')); // mode 0700
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

export async function socketBridge(session: Session, folder: string): Promise<Bridge> {
  const { server, close } = serverFor(session, true);
  const path = join(folder, 'etcd.sock');
  await listening(server, () => server.listen(path));
  return { address: `unix://${path}`, close };
}

/** `port` 0: a free one. */
export async function tcpBridge(session: Session, port: number): Promise<Bridge> {
  const { server, close } = serverFor(session, false);
  await listening(server, () => server.listen(port, '127.0.0.1'));
  const [first] = session.reached;
  const { port: taken } = server.address() as AddressInfo;
  return { address: `${first?.scheme ?? 'http'}://127.0.0.1:${taken}`, close };
}
