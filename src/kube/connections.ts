/** The pool of connections to one API server with one identity: usually a single HTTP/2 connection that carries everything. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type ClientHttp2Stream, constants } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, buildConnector } from 'undici';
import type { Identity } from './identity.ts';

/** While the first connection is being made, others wait for it at most this long. */
const WAIT_MS = 1_000;
const NEVER_MS = 24 * 3_600_000;
const STREAM_OPENED = 'http2.client.stream.created';

export class Connections {
  readonly agent: Agent;
  /** A connection that is told to go away tells of its end twice: it is remembered, not counted. */
  readonly #open = new Set<unknown>();
  #opening: Promise<void> | undefined;
  #opened: (() => void) | undefined;

  constructor(identity: Identity) {
    listenToEveryStream();
    this.agent = new Agent({
      allowH2: true,
      bodyTimeout: 0, // a watch may be silent for minutes; the watcher has its own idea of a dead peer
      // undici 8.12 ends an idle HTTP/2 connection with an error that now and then nobody catches, and the process with it.
      // The server ends connections when it wants to.
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
   * Until there is a connection, the pool does not know that one is enough, and would open one per call: after a reset all
   * watches come back at once. So the first one goes ahead, and the others follow when it has connected.
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

  /** Ends when nothing is on its way any more. */
  retire(): void {
    this.agent.close().catch(() => undefined);
  }

  destroy(): Promise<void> {
    return this.agent.destroy();
  }
}

/** undici does not show its streams; Node tells of every one that this process opens. */
function listenToEveryStream(): void {
  unsubscribe(STREAM_OPENED, mend); // once is enough
  subscribe(STREAM_OPENED, mend);
}

function mend(message: unknown): void {
  const { stream } = message as { readonly stream: ClientHttp2Stream };
  // undici 8.12 stops listening to some streams before they have ended: when their connection breaks after that, each tells an
  // error that nobody hears, and one such error ends the process. By then nobody waits for that stream any more.
  stream.on('error', unheard);
  // It gives a call up by closing its stream without a code and destroying it at once. Node 26 then tells the server only when
  // the body has gone, which never happens: it makes empty frames for it without end, until no memory is left.
  const close = stream.close.bind(stream);
  stream.close = (code = constants.NGHTTP2_CANCEL, closed) => close(code, closed);
}

export function unheard(): void {}

const connector = ({ ca, cert, key, serverName }: Identity): buildConnector.connector =>
  buildConnector({
    allowH2: true,
    timeout: 5_000,
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(serverName && { servername: serverName }),
  });
