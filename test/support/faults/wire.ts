/** A TCP proxy in front of a server: connections can be broken, or frozen as by a network that drops everything. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Wire {
  readonly port: number;
  /** How many connections were ever opened. */
  readonly opened: number;
  /** Breaks every connection that is open now. */
  cut(): void;
  /** Connections that are open now stay open and nothing moves on them; new ones work. */
  freeze(): void;
  close(): void;
}

export async function startWire(to: number, host = '127.0.0.1'): Promise<Wire> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let opened = 0;
  const server = createServer((near) => {
    opened++;
    const far = connect(to, host);
    const pair = [near, far] as const;
    pairs.add(pair);
    const end = (): void => {
      pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of pair) socket.setNoDelay(true).on('error', end).on('close', end);
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const [near, far] of pairs) {
      near.resetAndDestroy();
      far.destroy();
    }
  };
  return {
    port: (server.address() as AddressInfo).port,
    get opened() {
      return opened;
    },
    cut,
    freeze: () => {
      for (const [near, far] of pairs) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
      }
    },
    close: () => {
      cut();
      server.close();
    },
  };
}
