/**
 * Connections to a port of a Pod through the API server: one WebSocket per connection, protocol `v4.channel.k8s.io`.
 * Each message begins with a channel number: 0 carries the bytes, 1 carries the error message when the Pod's side
 * fails. The first message of each channel is the port number, two bytes, and nothing more.
 *
 * API servers pass this protocol to the kubelet as it is. The newer one (SPDY frames inside a WebSocket) saves a
 * WebSocket per connection, at the price of a second framing layer; a command opens one connection per member.
 */
import { createServer, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { Agent, WebSocket } from 'undici';
import { connector } from './connections.ts';
import { noAnswer } from './errors.ts';
import { identityHeaders } from './identity.ts';
import { pathOf, type Ref } from './object.ts';
import { pods } from './resources.ts';
import type { Transport } from './transport.ts';

const PROTOCOL = 'v4.channel.k8s.io';
const DATA = 0;
const OPEN_MS = 15_000;
/** Writes wait while this much is buffered. */
const HIGH_WATER = 1024 * 1024;
const DRAIN_MS = 5;

/** A connection to a port of a Pod. It fails with ApiError when the Pod, its node or the API server refuses it. */
export async function openPodPort(transport: Transport, ref: Ref, port: number, signal: AbortSignal): Promise<Duplex> {
  const identity = await transport.identity();
  const path = `${pathOf(pods, ref.namespace, ref.name)}/portforward`;
  const what = `GET ${path}`;
  // WebSockets need HTTP/1.1, and a connection each: they do not share the connection pool of plain requests.
  const dispatcher = new Agent({ allowH2: false, connect: connector(identity, { allowH2: false }) });
  const socket = new WebSocket(`${identity.server.replace(/^http/, 'ws')}${path}?ports=${port}`, {
    protocols: PROTOCOL,
    dispatcher,
    headers: Object.entries(identityHeaders(identity)).flatMap(([name, values]) =>
      [values].flat().map((value): [string, string] => [name, value]),
    ),
  });
  socket.binaryType = 'arraybuffer';
  const stream = new PodConnection(socket, what, () => void dispatcher.destroy().catch(() => undefined));
  await stream.opened(AbortSignal.any([signal, AbortSignal.timeout(OPEN_MS)]));
  return stream;
}

class PodConnection extends Duplex {
  readonly #socket: WebSocket;
  readonly #what: string;
  readonly #release: () => void;
  readonly #greeted = new Set<number>();

  constructor(socket: WebSocket, what: string, release: () => void) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#what = what;
    this.#release = release;
    socket.addEventListener('message', (event) => this.#receive(new Uint8Array(event.data as ArrayBuffer)));
    socket.addEventListener('error', (event) => this.#fail(event.error ?? event.message));
    socket.addEventListener('close', () => this.push(null));
  }

  opened(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => this.#fail(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      const done = (settle: () => void) => (): void => {
        signal.removeEventListener('abort', abort);
        settle();
      };
      this.#socket.addEventListener('open', done(resolve), { once: true });
      this.once('error', (error) => done(() => reject(error))());
      if (signal.aborted) abort();
    });
  }

  #receive(message: Uint8Array): void {
    const channel = message[0] ?? -1;
    const content = message.subarray(1);
    if (!this.#greeted.has(channel)) {
      this.#greeted.add(channel);
      return;
    }
    if (channel === DATA) this.push(content);
    else if (content.length > 0) this.#fail(new TextDecoder().decode(content).trim());
  }

  #fail(cause: unknown): void {
    this.destroy(noAnswer(this.#what, 'Unreachable', cause));
  }

  /** The API server sends as fast as it can: a WebSocket has no backpressure, so unread data is buffered. */
  override _read(): void {}

  override _write(chunk: Uint8Array, _encoding: string, done: (error?: Error) => void): void {
    const message = new Uint8Array(chunk.length + 1);
    message[0] = DATA;
    message.set(chunk, 1);
    this.#socket.send(message);
    const drained = (): void => {
      if (this.destroyed || this.#socket.bufferedAmount < HIGH_WATER) done();
      else setTimeout(drained, DRAIN_MS);
    };
    drained();
  }

  override _final(done: () => void): void {
    this.#socket.close();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.close();
    this.#release();
    done(error);
  }
}

export interface LocalPort {
  readonly port: number;
  close(): void;
}

/** A local port for programs that need an address: each connection to it becomes a connection to the Pod. */
export async function listenForPod(
  transport: Transport,
  ref: Ref,
  port: number,
  options: { readonly signal: AbortSignal; readonly onError: (error: unknown) => void },
): Promise<LocalPort> {
  const open = new Set<Socket>();
  const server = createServer((local) => {
    open.add(local);
    local.on('close', () => open.delete(local));
    local.on('error', () => local.destroy());
    openPodPort(transport, ref, port, options.signal).then(
      (remote) => {
        remote.on('error', (error) => {
          options.onError(error);
          local.destroy();
        });
        local.on('close', () => remote.destroy());
        local.pipe(remote).pipe(local);
      },
      (error: unknown) => {
        options.onError(error);
        local.destroy();
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const close = (): void => {
    server.close();
    for (const local of open) local.destroy();
  };
  options.signal.addEventListener('abort', close, { once: true });
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, close };
}
