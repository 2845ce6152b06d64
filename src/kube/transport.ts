/** HTTP to the API server: one shared HTTP/2 connection, JSON requests and responses, a time limit on every call. */
import { type Dispatcher, request } from 'undici';
import type { Status } from '../gen/kube.ts';
import { type CallName, nameCall } from './call-name.ts';
import { Connections } from './connections.ts';
import { ApiError, isUnauthorized, noAnswer } from './errors.ts';
import { type Identity, type IdentitySource, identityHeaders } from './identity.ts';
import { jsonLines } from './json-lines.ts';
import { type Limit, limitTo } from './limit.ts';

export type { Identity, IdentitySource };

export interface Call {
  readonly method?: Dispatcher.HttpMethod;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Aborted after this long in any case, even while a response is being received. */
  readonly limitMs?: number;
  /**
   * Checked at the last moment before the request is sent: a process that was suspended must not act on a stale state.
   */
  readonly maySend?: () => boolean;
}

/** One call that has ended: for metrics, and for the time of the API server's last response. */
export interface CallReport extends CallName {
  /** The HTTP status, or 0 without a response. */
  readonly code: number;
  readonly ms: number;
}

export interface TransportOptions {
  readonly onCall?: (report: CallReport) => void;
  readonly monotonic?: () => number;
}

const CALL_TIMEOUT_MS = 15_000;
/** A stream without response headers by then is on a dead connection. */
const STREAM_START_MS = 30_000;
/**
 * When no response starts in time, undici PINGs the server and closes a connection that does not reply, with all
 * watches on it. It checks its timers about every second; our limit would fire first, end only the call, and leave a
 * dead connection in use.
 */
const UNDICI_FIRST_MS = 1_500;
const MAX_RETRY_AFTER_MS = 60_000;
const USER_AGENT = 'etcd-operator';

/** Seconds, as the API server sends them; a proxy in between may send a date, which is ignored. */
const retryAfter = (headers: Dispatcher.ResponseData['headers']): number | undefined => {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : undefined;
};

const pathWith = (path: string, query: Call['query']): string =>
  query === undefined ? path : `${path}?${new URLSearchParams(query).toString()}`;

export class Transport {
  readonly #source: IdentitySource;
  readonly #options: TransportOptions;
  #connections: Connections | undefined;
  #madeFor = '';

  constructor(source: IdentitySource, options: TransportOptions = {}) {
    this.#source = source;
    this.#options = options;
  }

  /** One request, one JSON response. Rejects with ApiError and with nothing else. */
  async json<T>(path: string, call: Call = {}): Promise<T> {
    const answerMs = call.timeoutMs ?? CALL_TIMEOUT_MS;
    const limit = limitTo(Math.min(answerMs + UNDICI_FIRST_MS, call.limitMs ?? Number.POSITIVE_INFINITY), call.signal);
    const work = async () => {
      const answer = await this.#send(path, call, limit.signal, answerMs);
      return { code: answer.statusCode, value: (await answer.body.json()) as T };
    };
    try {
      return await this.#reported(path, call, limit, work);
    } finally {
      limit.done();
    }
  }

  /** One JSON document per line, until the server ends the response: the format of a watch. The caller ends it. */
  async *lines<T>(path: string, call: Call & { readonly signal: AbortSignal }): AsyncGenerator<T> {
    const body = await this.stream(path, call);
    try {
      yield* jsonLines<T>(body);
    } catch (error) {
      throw this.#failure(error, path, call, undefined);
    }
  }

  /** The bytes of a response as they are received. The caller ends it. */
  async stream(path: string, call: Call & { readonly signal: AbortSignal }): Promise<Dispatcher.ResponseData['body']> {
    return this.#reported(path, call, undefined, async () => {
      const answer = await this.#send(path, call, call.signal, STREAM_START_MS);
      return { code: answer.statusCode, value: answer.body };
    });
  }

  /** The current identity, for connections that are not plain requests. */
  identity(): Promise<Identity> {
    return this.#source();
  }

  async #reported<T>(
    path: string,
    call: Call,
    limit: Limit | undefined,
    work: () => Promise<{ readonly code: number; readonly value: T }>,
  ): Promise<T> {
    const clock = this.#options.monotonic ?? (() => performance.now());
    const started = clock();
    const report = (code: number): void =>
      this.#options.onCall?.({ ...nameCall(call.method ?? 'GET', path, call.query), code, ms: clock() - started });
    try {
      const { code, value } = await work();
      report(code);
      return value;
    } catch (error) {
      const failure = this.#failure(error, path, call, limit);
      report(failure.code);
      throw failure;
    }
  }

  /** Retries with a new identity after a 401: a refused request was not carried out, so it may be repeated. */
  async #send(path: string, call: Call, signal: AbortSignal, answerMs: number): Promise<Dispatcher.ResponseData> {
    const identity = await this.#source();
    try {
      return await this.#sendAs(identity, path, call, signal, answerMs);
    } catch (error) {
      if (!isUnauthorized(error)) throw error;
      const fresh = await this.#source('refused');
      if (fresh.token === identity.token && fresh.cert === identity.cert) throw error;
      return this.#sendAs(fresh, path, call, signal, answerMs);
    }
  }

  async #sendAs(
    identity: Identity,
    path: string,
    call: Call,
    signal: AbortSignal,
    answerMs: number,
  ): Promise<Dispatcher.ResponseData> {
    const method = call.method ?? 'GET';
    const connections = this.#connectionsFor(identity);
    await connections.turn();
    if (call.maySend && !call.maySend())
      throw noAnswer(`${method} ${path}`, 'NotLeading', 'this process no longer holds the lease: it must not write');
    const answer = await request(identity.server + pathWith(path, call.query), {
      method,
      signal,
      dispatcher: connections.agent,
      headersTimeout: answerMs,
      headers: {
        accept: 'application/json',
        'user-agent': USER_AGENT,
        ...(call.body !== undefined && { 'content-type': call.contentType ?? 'application/json' }),
        ...identityHeaders(identity),
      },
      body: call.body === undefined ? null : JSON.stringify(call.body),
    });
    if (answer.statusCode < 300) return answer;
    const status = parseStatus(await answer.body.text());
    throw new ApiError(`${method} ${path}`, answer.statusCode, status, { retryAfterMs: retryAfter(answer.headers) });
  }

  #failure(error: unknown, path: string, call: Call, limit: Limit | undefined): ApiError {
    if (error instanceof ApiError) return error;
    const what = `${call.method ?? 'GET'} ${path}`;
    if (call.signal?.aborted) return noAnswer(what, 'Aborted', error);
    if (limit?.passed || isHeadersTimeout(error)) return noAnswer(what, 'Timeout', error);
    if (error instanceof SyntaxError) return noAnswer(what, 'Garbled', error);
    // A refused certificate is often one that was just rotated: the next call reads the files again.
    void this.#source('unreachable').catch(() => undefined);
    return noAnswer(what, 'Unreachable', error);
  }

  /**
   * A new client certificate or CA needs new connections; a new token does not. The old ones close when they are idle.
   */
  #connectionsFor(identity: Identity): Connections {
    const { server, ca, cert, key, serverName, insecure, proxy } = identity;
    const fingerprint = JSON.stringify([server, ca, cert, key, serverName, insecure, proxy]);
    if (this.#connections && this.#madeFor === fingerprint) return this.#connections;
    this.#connections?.retire();
    this.#madeFor = fingerprint;
    this.#connections = new Connections(identity);
    return this.#connections;
  }

  async close(): Promise<void> {
    await this.#connections?.destroy();
  }
}

const isHeadersTimeout = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'UND_ERR_HEADERS_TIMEOUT';

function parseStatus(text: string): Partial<Status> {
  try {
    return JSON.parse(text) as Partial<Status>;
  } catch {
    return { message: text.slice(0, 500) };
  }
}
