/**
 * A reverse proxy between a program and the API server that misbehaves on purpose. TLS on both sides, HTTP/2 if the client
 * wants it. It counts what passes, and faults are rules: which calls, and what happens to them.
 */
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Agent, type Dispatcher, request } from 'undici';
import { createAuthority, type KeyPair } from '../../local/pki.ts';
import { type CallName, nameCall } from '../../src/kube/call-name.ts';
import type { Identity } from '../../src/kube/identity.ts';
import { type WatchFault, watchPipe } from './fault-watch.ts';
import { startWire } from './fault-wire.ts';
import { pause } from './processes.ts';

export type { WatchFault };

/** One call that came by. */
export interface Passed extends CallName {
  /** It changes something, and is neither about Events nor about Leases. */
  readonly write: boolean;
  readonly path: string;
  /** What the caller was told; undefined while it waits, 0 when the connection broke instead. */
  code: number | undefined;
}

export interface Match {
  readonly verb?: CallName['verb'];
  /** The plural, with its subresource if it is about one: `pods`, `etcdmembers/status`. */
  readonly resource?: string;
  /** Only writes, in the sense of `Passed`. */
  readonly write?: true;
  /** Only the n-th that matches, from 1. */
  readonly nth?: number;
  /** Only every n-th that matches. */
  readonly every?: number;
}

export type Fault =
  /** It does not reach the server. */
  | { readonly do: 'answer'; readonly code: number; readonly retryAfterSeconds?: number }
  /** Nothing comes back until the rule is removed; then it breaks. */
  | { readonly do: 'hang'; readonly forward?: true }
  /** Goes on when the rule is removed. */
  | { readonly do: 'hold' }
  | { readonly do: 'delay'; readonly ms: number }
  /** The connection breaks: before the server hears of it, or half-way through its answer. */
  | { readonly do: 'reset'; readonly when: 'before' | 'mid-response' }
  /** Something happens (usually: the caller is killed) and nobody hears an answer. */
  | { readonly do: 'interrupt'; readonly when: 'before' | 'after'; readonly run: () => Promise<unknown> }
  /** What a watch tells is bent. */
  | { readonly do: 'watch'; readonly how: WatchFault };

interface Rule {
  readonly match: Match;
  readonly fault: Fault;
  readonly over: AbortController;
  seen: number;
}

export interface FaultProxy {
  /** How to reach the API server through the proxy. */
  readonly identity: Identity;
  readonly calls: readonly Passed[];
  /** The answer removes the rule. The first rule that matches a call counts. */
  fault(match: Match, fault: Fault): () => void;
  /** Breaks every connection that is open now. */
  cut(): void;
  /** Asks every client to open another connection, as API servers do now and then to spread them; running calls go on. */
  goAway(): void;
  /** As a network that swallows everything: connections that are open now stay open, and nothing moves on them. */
  freeze(): void;
  /**
   * From now on the proxy has a certificate of another authority and takes another token only, and connections that trust the
   * old ones are broken. Resolves to how to reach it now.
   */
  rotate(): Promise<Identity>;
  close(): Promise<void>;
}

const WRITES: readonly string[] = ['create', 'patch', 'update', 'delete'];
const NOT_COUNTED = /^(events|leases)(\/|$)/;

export async function startFaultProxy(upstream: Identity): Promise<FaultProxy> {
  const { server, ca, cert: _, key: __, ...rest } = upstream;
  const tokens: Tokens = { real: upstream.token, expected: upstream.token };
  const agent = new Agent({
    allowH2: true,
    bodyTimeout: 0,
    headersTimeout: 0,
    keepAliveTimeout: 3_600_000,
    keepAliveMaxTimeout: 3_600_000,
    connect: { ...(ca && { ca }) },
  });
  const certify = async () => {
    const authority = await createAuthority();
    return { ...(await authority.issue({ user: 'fault-proxy' }, ['127.0.0.1'])), ca: authority.cert };
  };
  const own = await certify();
  let rotations = 0;
  const rules = new Set<Rule>();
  const calls: Passed[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const front = await listen(own, sessions, (incoming, outgoing) => {
    const passing = new Passing({ server, agent, tokens, incoming, outgoing, calls, rules });
    passing.run().catch(() => passing.breakOff());
  });
  const wire = await startWire((front.address() as AddressInfo).port);
  const identity: Identity = { ...rest, server: `https://127.0.0.1:${wire.port}`, ca: own.ca };
  return {
    identity,
    calls,
    fault: (match, fault) => {
      const rule: Rule = { match, fault, over: new AbortController(), seen: 0 };
      rules.add(rule);
      return () => {
        rules.delete(rule);
        rule.over.abort();
      };
    },
    cut: () => wire.cut(),
    goAway: () => {
      for (const session of sessions) session.close();
    },
    freeze: () => wire.freeze(),
    rotate: async () => {
      const next = await certify();
      front.setSecureContext(next);
      tokens.expected = `token-${++rotations}`;
      wire.cut();
      return { ...identity, ca: next.ca, token: tokens.expected };
    },
    close: async () => {
      for (const rule of rules) rule.over.abort();
      wire.close();
      front.close();
      await agent.destroy();
    },
  };
}

async function listen(
  own: KeyPair,
  sessions: Set<ServerHttp2Session>,
  onRequest: (incoming: Http2ServerRequest, outgoing: Http2ServerResponse) => void,
): Promise<Http2SecureServer> {
  const front = createSecureServer({ key: own.key, cert: own.cert, allowHTTP1: true });
  front.on('sessionError', () => undefined);
  front.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  front.on('request', (incoming, outgoing) => {
    incoming.on('error', () => undefined);
    outgoing.on('error', () => undefined);
    onRequest(incoming, outgoing);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  return front;
}

/** What the server knows us by, and what the proxy wants to hear instead. */
interface Tokens {
  readonly real: string | undefined;
  expected: string | undefined;
}

interface PassingOptions {
  readonly server: string;
  readonly agent: Agent;
  readonly tokens: Tokens;
  readonly incoming: Http2ServerRequest;
  readonly outgoing: Http2ServerResponse;
  readonly calls: Passed[];
  readonly rules: ReadonlySet<Rule>;
}

/** One call on its way. */
class Passing {
  readonly #options: PassingOptions;
  readonly #passed: Passed;
  readonly #gone = new AbortController();

  constructor(options: PassingOptions) {
    this.#options = options;
    const { incoming, outgoing, calls } = options;
    const url = new URL(incoming.url, 'https://proxy');
    const named = nameCall(incoming.method, url.pathname, Object.fromEntries(url.searchParams));
    const write = WRITES.includes(named.verb) && !NOT_COUNTED.test(named.resource);
    this.#passed = { ...named, write, path: incoming.url, code: undefined };
    calls.push(this.#passed);
    outgoing.on('close', () => this.#gone.abort());
  }

  async run(): Promise<void> {
    const { tokens, incoming } = this.#options;
    if (tokens.expected !== undefined && incoming.headers.authorization !== `Bearer ${tokens.expected}`)
      return this.#answer(401, undefined);
    const rule = this.#ruleFor();
    if (!rule) return this.#relay(await this.#forward());
    const { fault, over } = rule;
    const removed = new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve()));
    switch (fault.do) {
      case 'answer':
        return this.#answer(fault.code, fault.retryAfterSeconds);
      case 'hang':
        if (fault.forward) await (await this.#forward()).body.dump();
        await removed;
        return this.breakOff();
      case 'hold':
        await removed;
        return this.#relay(await this.#forward());
      case 'delay':
        await pause(fault.ms);
        return this.#relay(await this.#forward());
      case 'reset':
        if (fault.when === 'mid-response') await this.#half(await this.#forward());
        return this.breakOff();
      case 'interrupt':
        if (fault.when === 'after') await (await this.#forward()).body.dump();
        await fault.run();
        return this.breakOff();
      case 'watch':
        return this.#relay(await this.#forward(), fault.how);
    }
  }

  #ruleFor(): Rule | undefined {
    const { verb, resource, write } = this.#passed;
    for (const rule of this.#options.rules) {
      const { match } = rule;
      if (match.verb !== undefined && match.verb !== verb) continue;
      if (match.resource !== undefined && match.resource !== resource) continue;
      if (match.write && !write) continue;
      rule.seen++;
      if (match.nth !== undefined && match.nth !== rule.seen) continue;
      if (match.every === undefined || rule.seen % match.every === 0) return rule;
    }
    return undefined;
  }

  /** The whole connection goes, as when a machine or a load balancer dies. */
  breakOff(): void {
    this.#passed.code ??= 0;
    const { incoming } = this.#options;
    if (incoming.stream?.session) incoming.stream.session.destroy();
    else incoming.socket.destroy();
  }

  async #forward(): Promise<Dispatcher.ResponseData> {
    const { server, agent, incoming } = this.#options;
    const body: Buffer[] = [];
    for await (const chunk of incoming) body.push(chunk as Buffer);
    const headers = Object.fromEntries(
      ['content-type', 'accept', 'user-agent']
        .map((name) => [name, incoming.headers[name]] as const)
        .filter(([, value]) => typeof value === 'string'),
    ) as Record<string, string>;
    const { real } = this.#options.tokens;
    if (real !== undefined) headers['authorization'] = `Bearer ${real}`;
    return request(server + incoming.url, {
      method: incoming.method,
      dispatcher: agent,
      headers,
      body: body.length === 0 ? null : Buffer.concat(body),
      signal: this.#gone.signal,
    });
  }

  #head({ statusCode, headers }: Dispatcher.ResponseData): void {
    this.#passed.code = statusCode;
    const kept = ['content-type', 'retry-after'].flatMap((n) => (headers[n] ? [[n, headers[n]] as const] : []));
    this.#options.outgoing.writeHead(statusCode, Object.fromEntries(kept));
  }

  async #relay(answer: Dispatcher.ResponseData, how?: WatchFault): Promise<void> {
    const { outgoing } = this.#options;
    this.#head(answer);
    const bytes: AsyncIterable<Uint8Array> = answer.body;
    for await (const chunk of how ? watchPipe(bytes, how, this.#gone.signal) : bytes) outgoing.write(chunk);
    outgoing.end();
  }

  async #half(answer: Dispatcher.ResponseData): Promise<void> {
    this.#head(answer);
    const whole = Buffer.from(await answer.body.arrayBuffer());
    this.#options.outgoing.write(whole.subarray(0, Math.ceil(whole.length / 2)));
    await pause(20); // so that the first half is on its way
  }

  #answer(code: number, retryAfterSeconds: number | undefined): void {
    this.#passed.code = code;
    const reasons: Record<number, string> = {
      401: 'Unauthorized',
      409: 'Conflict',
      429: 'TooManyRequests',
      500: 'InternalError',
    };
    const status = {
      apiVersion: 'v1',
      kind: 'Status',
      status: 'Failure',
      code,
      reason: reasons[code],
      message: 'made up',
    };
    this.#options.incoming.resume();
    this.#options.outgoing.writeHead(code, {
      'content-type': 'application/json',
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
    });
    this.#options.outgoing.end(JSON.stringify(status));
  }
}
