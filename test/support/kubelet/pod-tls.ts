/** The TLS of one port of an etcd, read from the files in its command line: a proxy in front of it is that etcd for its clients. */
import { readFileSync, realpathSync } from 'node:fs';
import type { SecureClientSessionOptions, SecureServerOptions } from 'node:http2';
import { connect, createServer, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { createSecureContext } from 'node:tls';

export interface PortTls {
  /** What etcd serves now: it reads its certificate at every handshake. */
  readonly pair: () => { readonly cert: string; readonly key: string };
  /** etcd reads its CA bundle at start; a Pod's bundle never changes. Absent: clients need no certificate. */
  readonly ca: string | undefined;
}

/** `undefined` for a plain port. */
export function portTls(args: readonly string[], port: 'client' | 'peer'): PortTls | undefined {
  const file = (flag: string): string | undefined =>
    args.find((word) => word.startsWith(`--${port === 'peer' ? 'peer-' : ''}${flag}=`))?.split('=')[1];
  const [cert, key, bundle] = [file('cert-file'), file('key-file'), file('trusted-ca-file')];
  if (cert === undefined || key === undefined) return undefined;
  const pair = () => {
    const folder = realpathSync(dirname(cert)); // both of one version of the Secret
    const read = (path: string): string => readFileSync(join(folder, basename(path)), 'utf8');
    return { cert: read(cert), key: read(key) };
  };
  return { pair, ca: bundle === undefined ? undefined : readFileSync(bundle, 'utf8') };
}

/** How a proxy serves in place of this port, and connects to it: the certificate of a member may be used by a client, too. */
export function proxyTls({ pair, ca }: PortTls): {
  readonly tls: SecureServerOptions;
  readonly upstream: () => SecureClientSessionOptions;
} {
  const verified = ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true };
  return {
    tls: {
      ...pair(),
      ...verified,
      SNICallback: (_name, done) => done(null, createSecureContext({ ...pair(), ...(ca !== undefined && { ca }) })),
    },
    upstream: () => ({ ...pair(), rejectUnauthorized: false }),
  };
}

/** A port of one address that is that of another one. */
export async function forwardPort(from: string, to: string, port: number): Promise<Server> {
  const server = createServer((near) => {
    const far = connect(port, to);
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.on('error', end).on('close', end);
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(port, from, resolve));
  return server;
}
