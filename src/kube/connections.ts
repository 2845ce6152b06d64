/**
 * The connection pool for one API server and one identity: usually a single HTTP/2 connection that carries everything.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type ClientHttp2Stream, constants } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, buildConnector } from 'undici';
import { present } from '../lib/present.ts';
import type { Identity } from './identity.ts';
import { tunnel } from './proxy.ts';

/** While the first connection is being made, other calls wait for it at most this long. */
const WAIT_MS = 1_000;
const NEVER_MS = 24 * 3_600_000;
const STREAM_OPENED = 'http2.client.stream.created';

export class Connections {
  readonly agent: Agent;
  /**
   * A connection that receives GOAWAY emits its disconnect twice: a set instead of a counter keeps the number right.
   */
  readonly #open = new Set<unknown>();
  #opening: Promise<void> | undefined;
  #opened: (() => void) | undefined;

  constructor(identity: Identity) {
    listenToEveryStream();
    this.agent = new Agent({
      allowH2: true,
      bodyTimeout: 0, // a watch may receive nothing for minutes; the watcher detects a dead peer itself
      // undici 8.12 closes an idle HTTP/2 connection with an error that is sometimes uncaught, which ends the process.
      // The API server closes idle connections itself.
      keepAliveTimeout: NEVER_MS,
      keepAliveMaxTimeout: NEVER_MS,
      connect: connector(identity),
    });
    this.agent.on('connect', (_origin, targets) => {
      this.#open.add(targets.at(-1));
      this.#done();
    });
    this.agent.on('disconnect', (_origin, targets) => {
      this.#open.delete(targets.at(-1));
    });
    this.agent.on('connectionError', () => this.#done());
  }

  /**
   * Until it has a connection, the pool does not know that one is enough and would open one per call: after a reset all
   * watches reconnect at once. So the first call connects, and the others wait for it.
   */
  async turn(): Promise<void> {
    if (this.#open.size > 0) return;
    if (this.#opening) {
      await Promise.race([this.#opening, sleep(WAIT_MS, undefined, { ref: false })]);
      return;
    }
    this.#opening = new Promise((resolve) => {
      this.#opened = resolve;
    });
  }

  #done(): void {
    this.#opened?.();
    this.#opening = undefined;
    this.#opened = undefined;
  }

  /** Closes the pool when its last request has ended. */
  retire(): void {
    this.agent.close().catch(() => undefined);
  }

  destroy(): Promise<void> {
    return this.agent.destroy();
  }
}

/** undici does not expose its streams; Node's diagnostics channel reports every one that this process opens. */
function listenToEveryStream(): void {
  unsubscribe(STREAM_OPENED, mend); // once is enough
  subscribe(STREAM_OPENED, mend);
}

function mend(message: unknown): void {
  const { stream } = message as { readonly stream: ClientHttp2Stream };
  // undici 8.12 removes its error listener from some streams before they have ended: when the connection breaks after
  // that, each emits an unhandled error, and one ends the process. No caller waits for such a stream any more.
  stream.on('error', unheard);
  // undici aborts a call by closing its stream without a code and destroying it at once. Node 26 then sends RST_STREAM
  // only when the body was sent, which never happens: it makes empty frames without end, until no memory is left.
  const close = stream.close.bind(stream);
  stream.close = (code = constants.NGHTTP2_CANCEL, closed) => close(code, closed);
}

export function unheard(): void {}

export const tlsOptions = ({ ca, cert, key, serverName, insecure }: Identity) =>
  present({ ca, cert, key, servername: serverName, rejectUnauthorized: insecure ? false : undefined });

/** WebSockets need HTTP/1.1. */
export function connector(identity: Identity, { allowH2 = true } = {}): buildConnector.connector {
  const direct = buildConnector({ allowH2, timeout: 5_000, ...tlsOptions(identity) });
  const { proxy } = identity;
  if (proxy === undefined) return direct;
  return (options, callback) => {
    const port = options.port || (options.protocol === 'https:' ? '443' : '80');
    tunnel(proxy, options.hostname, port, (error, socket) => {
      if (socket && options.protocol === 'https:') direct({ ...options, httpSocket: socket }, callback);
      else if (socket) callback(null, socket);
      else callback(error ?? new Error('the proxy gave no connection'), null);
    });
  };
}
