/** Forwards bytes to a local port until it is cut: then it stops listening and breaks its connections. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';

export interface Relay {
  readonly port: number;
  cut(): Promise<void>;
  /** From now on, clients send this many bytes a second at most, over all connections. */
  throttle(bytesPerSecond: number): void;
  mend(): Promise<void>;
  /** Bytes that clients have sent so far. */
  sent(): number;
  /** For how long nothing was forwarded in either direction. */
  quietMs(): number;
}

export async function relayTo(target: number): Promise<Relay> {
  const sockets = new Set<Socket>();
  let sent = 0;
  let last = performance.now();
  let port = 0;
  let rate = Number.POSITIVE_INFINITY;
  let freeAt = 0;
  const slowly = (): Transform =>
    new Transform({
      transform: (bytes: Buffer, _, done) => {
        const now = performance.now();
        freeAt = Math.max(now, freeAt) + (1000 * bytes.length) / rate;
        if (freeAt === now) done(null, bytes);
        else setTimeout(done, freeAt - now, null, bytes);
      },
    });
  let server: Server | undefined;
  const pass = (client: Socket): void => {
    const upstream = connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (bytes) => {
      sent += bytes.length;
      last = performance.now();
    });
    upstream.on('data', () => {
      last = performance.now();
    });
    client.pipe(slowly()).pipe(upstream);
    upstream.pipe(client);
  };
  const mend = async (): Promise<void> => {
    const listening = createServer(pass);
    await new Promise<void>((resolve, reject) => {
      listening.once('error', reject);
      listening.listen(port, '127.0.0.1', resolve);
    });
    server = listening;
    port = (listening.address() as { port: number }).port;
  };
  await mend();
  return {
    port,
    mend,
    sent: () => sent,
    throttle: (bytesPerSecond) => {
      rate = bytesPerSecond;
    },
    quietMs: () => performance.now() - last,
    cut: async () => {
      const closed = new Promise((resolve) => server?.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
