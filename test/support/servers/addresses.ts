/** Loopback addresses with all ports free. A block is reserved as long as we listen in it, so that worlds never collide. */
import { createServer, type Server } from 'node:net';

const GUARD = 254;
const GUARD_PORT = 2379;
const TRIES = 100;
/** Addresses on which tests expect no server. */
const UNUSED = '127.9.9';

export class Addresses {
  readonly #guards: Server[] = [];
  #block: Promise<string> | undefined;
  #last = 0;

  async next(): Promise<string> {
    if (this.#last + 1 >= GUARD) {
      this.#block = undefined;
      this.#last = 0;
    }
    this.#block ??= this.#claim();
    const host = ++this.#last;
    return `${await this.#block}.${host}`;
  }

  /** A whole block, such as `127.4.2`: no other process uses any of its addresses. */
  block(): Promise<string> {
    return this.#claim();
  }

  close(): void {
    for (const guard of this.#guards) guard.close();
  }

  async #claim(): Promise<string> {
    for (let tried = 0; tried < TRIES; tried++) {
      const block = `127.${1 + Math.floor(Math.random() * 250)}.${Math.floor(Math.random() * 250)}`;
      const guard = block === UNUSED ? undefined : await listenAt(`${block}.${GUARD}`);
      if (!guard) continue;
      this.#guards.push(guard);
      return block;
    }
    throw new Error('no block of loopback addresses is free');
  }
}

const listenAt = (host: string): Promise<Server | undefined> =>
  new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', () => resolve(undefined));
    server.listen(GUARD_PORT, host, () => resolve(server));
  });
