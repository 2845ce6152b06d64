/**
 * One HTTP/2 connection to one member: opened when it is needed, checked after an idle time, reopened after it closed.
 * An operator keeps thousands of these, so each is small: under 50 KiB, most of them Node's own.
 */
import * as http2 from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';

export interface Timing {
  /**
   * A stream that received nothing for this long is checked with a ping. etcd refuses pings more often than every 5 s.
   */
  readonly pingIntervalMs: number;
  /** A ping must be acknowledged within this time, or the session and all its calls have failed. */
  readonly pingTimeoutMs: number;
  /** A session without calls is closed after this. */
  readonly idleMs: number;
}

const WINDOW_BYTES = 4 * 1024 * 1024;
const CANCEL = http2.constants.NGHTTP2_CANCEL;

type Options = http2.ClientSessionOptions | http2.SecureClientSessionOptions;

export class Link {
  readonly authority: string;
  readonly #options: Options;
  readonly #timing: Timing;
  #session: http2.ClientHttp2Session | undefined;
  #dialling: { readonly session: http2.ClientHttp2Session; readonly done: Promise<void> } | undefined;
  #checking: Promise<boolean> | undefined;
  #streams = 0;
  #receivedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(endpoint: string, options: Options, timing: Timing) {
    this.authority = endpoint;
    this.#options = options;
    this.#timing = timing;
  }

  state(): 'closed' | 'connecting' | 'open' {
    if (this.#dialling) return 'connecting';
    return isUsable(this.#session) ? 'open' : 'closed';
  }

  /** All calls on it fail. The next request opens another session. */
  close(): void {
    const reason = new ConnectError('the session was closed', Code.Aborted);
    this.#dialling?.session.destroy(reason, CANCEL);
    if (this.#streams === 0) this.#session?.close();
    else this.#session?.destroy(reason, CANCEL);
    this.#session = undefined;
    clearTimeout(this.#timer); // the timer would keep this object in memory until it fires
  }

  async request(
    method: string,
    path: string,
    headers: http2.OutgoingHttpHeaders,
    options: http2.ClientSessionRequestOptions,
  ): Promise<http2.ClientHttp2Stream> {
    for (;;) {
      const session = await this.#ready();
      try {
        return this.#followed(session, session.request({ ...headers, ':method': method, ':path': path }, options));
      } catch (error) {
        if (isUsable(session)) throw error; // otherwise the session was just closed, and nothing was sent
      }
    }
  }

  async #ready(): Promise<http2.ClientHttp2Session> {
    for (;;) {
      const session = this.#session;
      if (isUsable(session)) {
        if (performance.now() - this.#receivedAt < this.#timing.pingIntervalMs) return session;
        if (await this.#isAlive(session)) return session;
      } else await this.#dial();
    }
  }

  #dial(): Promise<void> {
    if (this.#dialling) return this.#dialling.done;
    const session = http2.connect(this.authority, this.#options);
    const done = new Promise<void>((resolve, reject) => {
      session.once('connect', () => {
        if (!isUsable(session)) return; // Node emits this for a destroyed session, too
        this.#opened(session);
        resolve();
      });
      // A member that stops sends GOAWAY, and Node ends an idle session with an error: unhandled, it would end the
      // process.
      session.on('error', reject);
      session.once('close', () => reject(new ConnectError('the connection was closed', Code.Unavailable)));
    }).finally(() => {
      this.#dialling = undefined;
    });
    this.#dialling = { session, done };
    return done;
  }

  #opened(session: http2.ClientHttp2Session): void {
    // Without a wide window a stream over 2 ms of round trip carries 11 MiB/s; with it, 189. The window of a stream
    // changes nothing.
    session.setLocalWindowSize(WINDOW_BYTES);
    session.unref(); // an idle connection does not keep the process alive
    this.#session = session;
    this.#streams = 0;
    this.notifyResponseByteRead();
    session.once('close', () => {
      if (session === this.#session) clearTimeout(this.#timer);
    });
  }

  #followed(session: http2.ClientHttp2Session, stream: http2.ClientHttp2Stream): http2.ClientHttp2Stream {
    if (this.#streams++ === 0) session.ref();
    this.#watch(session);
    stream.once('close', () => {
      if (session !== this.#session || --this.#streams > 0) return;
      session.unref();
      this.#watch(session);
    });
    return stream;
  }

  notifyResponseByteRead(): void {
    this.#receivedAt = performance.now();
  }

  /** While nothing is received: a session with calls is pinged; one without any is closed after its idle time. */
  #watch(session: http2.ClientHttp2Session): void {
    clearTimeout(this.#timer);
    const { pingIntervalMs, idleMs } = this.#timing;
    const busy = this.#streams > 0;
    this.#timer = setTimeout(
      () => {
        if (session !== this.#session) return;
        if (!busy) return session.close();
        if (performance.now() - this.#receivedAt < pingIntervalMs) return this.#watch(session);
        void this.#isAlive(session).then((alive) => alive && this.#watch(session));
      },
      busy ? pingIntervalMs : idleMs,
    ).unref();
  }

  /** Whether it acknowledges a ping in time. A session that does not is destroyed. */
  #isAlive(session: http2.ClientHttp2Session): Promise<boolean> {
    if (!isUsable(session)) return Promise.resolve(false); // a ping on it would throw an uncaught error
    this.#checking ??= new Promise<boolean>((resolve) => {
      const limit = setTimeout(() => resolve(false), this.#timing.pingTimeoutMs);
      session.ref();
      session.ping((error) => {
        clearTimeout(limit);
        resolve(!error);
      });
    }).then((alive) => {
      this.#checking = undefined;
      if (alive) this.notifyResponseByteRead();
      else
        session.destroy(new ConnectError('the connection is dead: a ping was not answered', Code.Unavailable), CANCEL);
      if (alive && this.#streams === 0) session.unref();
      return alive;
    });
    return this.#checking;
  }
}

const isUsable = (session: http2.ClientHttp2Session | undefined): session is http2.ClientHttp2Session =>
  session !== undefined && !session.closed && !session.destroyed;
