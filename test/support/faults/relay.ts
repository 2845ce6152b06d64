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
  const throttle = new Throttle();
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
    client.pipe(throttle.stream()).pipe(upstream);
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
      throttle.bytesPerSecond = bytesPerSecond;
    },
    quietMs: () => performance.now() - last,
    cut: async () => {
      const closed = new Promise((resolve) => server?.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** One rate for all its streams together. */
class Throttle {
  bytesPerSecond: number = Number.POSITIVE_INFINITY;
  #freeAt = 0;

  stream(): Transform {
    return new Transform({
      transform: (bytes: Buffer, _, done) => {
        const now = performance.now();
        this.#freeAt = Math.max(now, this.#freeAt) + (1000 * bytes.length) / this.bytesPerSecond;
        if (this.#freeAt === now) done(null, bytes);
        else setTimeout(done, this.#freeAt - now, null, bytes);
      },
    });
  }
}
