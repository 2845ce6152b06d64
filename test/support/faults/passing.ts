/** One call through the fault proxy. */
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { type Agent, type Dispatcher, request } from 'undici';
import { nameCall } from '../../../src/kube/call-name.ts';
import { pause } from '../servers/processes.ts';
import type { Passed, Rule } from './rules.ts';
import { type WatchFault, watchPipe } from './watch.ts';

const WRITES: readonly string[] = ['create', 'patch', 'update', 'delete'];
const NOT_COUNTED = /^(events|leases)(\/|$)/;

/** The token that the server accepts, and the one that the proxy expects instead. */
export interface Tokens {
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

export class Passing {
  readonly #options: PassingOptions;
  readonly #passed: Passed;
  readonly #closed = new AbortController();

  constructor(options: PassingOptions) {
    this.#options = options;
    const { incoming, outgoing, calls } = options;
    const url = new URL(incoming.url, 'https://proxy');
    const named = nameCall(incoming.method, url.pathname, Object.fromEntries(url.searchParams));
    const write = WRITES.includes(named.verb) && !NOT_COUNTED.test(named.resource);
    this.#passed = { ...named, write, path: incoming.url, at: performance.now(), code: undefined };
    calls.push(this.#passed);
    outgoing.on('close', () => this.#closed.abort());
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
      case 'first':
        await fault.run();
        return this.#relay(await this.#forward());
      case 'watch':
        return this.#relay(await this.#forward(), fault.how);
    }
  }

  #ruleFor(): Rule | undefined {
    const { verb, resource, write, name } = this.#passed;
    for (const rule of this.#options.rules) {
      const { match } = rule;
      if (match.verb !== undefined && match.verb !== verb) continue;
      if (match.resource !== undefined && match.resource !== resource) continue;
      if (match.name !== undefined && match.name !== name) continue;
      if (match.write && !write) continue;
      rule.seen++;
      if (match.nth !== undefined && match.nth !== rule.seen) continue;
      if (match.every === undefined || rule.seen % match.every === 0) return rule;
    }
    return undefined;
  }

  /** Breaks the whole connection, as when a machine or a load balancer dies. */
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
      signal: this.#closed.signal,
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
    for await (const chunk of how
      ? watchPipe(bytes, how, this.#closed.signal, this.#passed.path.includes('sendInitialEvents'))
      : bytes)
      outgoing.write(chunk);
    outgoing.end();
  }

  async #half(answer: Dispatcher.ResponseData): Promise<void> {
    this.#head(answer);
    const whole = Buffer.from(await answer.body.arrayBuffer());
    this.#options.outgoing.write(whole.subarray(0, Math.ceil(whole.length / 2)));
    await pause(20); // so that the first half is sent
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
