/** A TCP connection that carries a limited number of response bytes and then nothing, until it is released or cut. */
import { connect, createServer, type Socket } from 'node:net';

export interface HeldWire {
  readonly port: number;
  /** Resolves when the limit is reached. */
  readonly held: Promise<void>;
  /** Forwards everything from now on. */
  release(): void;
  close(): Promise<void>;
}

export async function heldWire(to: { readonly host: string; readonly port: number }, bytes: number): Promise<HeldWire> {
  const held = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  let left = bytes;
  const server = createServer((near) => {
    const far = connect(to);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.on('data', (chunk: Buffer) => {
      near.write(chunk);
      left -= chunk.length;
      if (left > 0) return;
      far.pause();
      held.resolve();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    held: held.promise,
    release: () => {
      left = Number.POSITIVE_INFINITY;
      for (const socket of sockets) socket.resume();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
