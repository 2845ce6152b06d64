/** HTTP to the API server: one shared HTTP/2 connection pool, JSON in and out, a time limit on every call. */
import { Agent, type Dispatcher, request } from 'undici';
import type { Status } from '../gen/kube.ts';
import { ApiError } from './errors.ts';

/** How to reach and convince the API server, as it is now: credentials rotate under a running process. */
export interface Identity {
  readonly server: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}
export type IdentitySource = () => Promise<Identity>;

export interface Call {
  readonly method?: Dispatcher.HttpMethod;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

const CALL_TIMEOUT_MS = 15_000;
const USER_AGENT = 'etcd-operator';

const retryAfter = (headers: Dispatcher.ResponseData['headers']): number | undefined => {
  const seconds = Number(headers['retry-after']);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
};

const pathWith = (path: string, query: Call['query']): string =>
  query === undefined ? path : `${path}?${new URLSearchParams(query).toString()}`;

export class Transport {
  readonly #source: IdentitySource;
  #agent: Agent | undefined;
  #agentIdentity = '';

  constructor(source: IdentitySource) {
    this.#source = source;
  }

  /** One request, one JSON answer. Rejects with ApiError when the server refuses. */
  async json<T>(path: string, call: Call = {}): Promise<T> {
    const signal = AbortSignal.any([AbortSignal.timeout(call.timeoutMs ?? CALL_TIMEOUT_MS), ...signals(call)]);
    const answer = await this.#send(path, call, signal);
    return (await answer.body.json()) as T;
  }

  /** One JSON document per line, for as long as the server goes on: the shape of a watch. The caller ends it. */
  async *lines<T>(path: string, call: Call & { readonly signal: AbortSignal }): AsyncGenerator<T> {
    const answer = await this.#send(path, call, call.signal);
    answer.body.setEncoding('utf8');
    let rest = '';
    for await (const chunk of answer.body as AsyncIterable<string>) {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop() ?? '';
      for (const line of parts) if (line !== '') yield JSON.parse(line) as T;
    }
  }

  async #send(path: string, call: Call, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const identity = await this.#source();
    const method = call.method ?? 'GET';
    const answer = await request(identity.server + pathWith(path, call.query), {
      method,
      signal,
      dispatcher: this.#agentFor(identity),
      headers: {
        accept: 'application/json',
        'user-agent': USER_AGENT,
        ...(call.body !== undefined && { 'content-type': call.contentType ?? 'application/json' }),
        ...(identity.token !== undefined && { authorization: `Bearer ${identity.token}` }),
      },
      body: call.body === undefined ? null : JSON.stringify(call.body),
    });
    if (answer.statusCode < 300) return answer;
    const status = parseStatus(await answer.body.text());
    throw new ApiError(`${method} ${path}`, answer.statusCode, status, retryAfter(answer.headers));
  }

  /** A new certificate or authority needs new connections; a new token does not. The old pool ends when it is idle. */
  #agentFor(identity: Identity): Agent {
    const { server, ca, cert, key } = identity;
    const fingerprint = JSON.stringify([server, ca, cert, key]);
    if (this.#agent && this.#agentIdentity === fingerprint) return this.#agent;
    void this.#agent?.close();
    this.#agentIdentity = fingerprint;
    this.#agent = new Agent({
      allowH2: true,
      pipelining: 100,
      bodyTimeout: 0, // a watch may be silent for minutes; the watcher has its own idea of a dead peer
      connect: { timeout: 5_000, ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
    });
    return this.#agent;
  }

  async close(): Promise<void> {
    await this.#agent?.destroy();
  }
}

const signals = (call: Call): readonly AbortSignal[] => (call.signal ? [call.signal] : []);

function parseStatus(text: string): Partial<Status> {
  try {
    return JSON.parse(text) as Partial<Status>;
  } catch {
    return { message: text.slice(0, 500) };
  }
}
