/**
 * A proxy between a client and one etcd that breaks chosen calls: before etcd receives them, after etcd has carried them out
 * but before the response, or without end. A crash between two calls is a callback here that kills the caller.
 */
import * as http2 from 'node:http2';
import type { AddressInfo } from 'node:net';

export type Fault =
  /** Not forwarded; after `crash` was called the stream is cut without a response. */
  | { readonly do: 'before'; readonly crash: () => void | Promise<void> }
  /** Forwarded and carried out by etcd; after `crash` was called the response is lost. */
  | { readonly do: 'after'; readonly crash: () => void | Promise<void> }
  | { readonly do: 'delay'; readonly ms: number }
  /** Neither forwarded nor answered, as long as the caller waits. */
  | { readonly do: 'hang' }
  /** Forwarded and carried out, without a response. */
  | { readonly do: 'swallow' }
  /** The connection is reset, with every other call on it. */
  | { readonly do: 'cut' }
  /** Responds immediately with this instead. */
  | { readonly do: 'answer'; readonly code: number; readonly message: string };

export interface Rule {
  /** Such as `Cluster/MemberAdd`, or several of them; without it, any call. */
  readonly method?: string | readonly string[];
  /** Which of the matching calls from now on, counted from 1; without it, every one. */
  readonly nth?: number;
  readonly fault: Fault;
}

/** A call that arrived, whatever its result. */
export interface SeenCall {
  readonly method: string;
  readonly headers: http2.IncomingHttpHeaders;
  /** When the caller has its response, or has stopped waiting. */
  readonly over: Promise<void>;
  open: boolean;
}

/** Faults and recorded calls: of one proxy, or of several that count together. */
export class Rulebook {
  readonly calls: SeenCall[] = [];
  /** Connections that were ever opened. */
  opened = 0;
  readonly #listeners = new Set<(call: SeenCall) => void>();
  readonly #rules = new Set<{ readonly rule: Rule; seen: number }>();

  /** Adds a fault; the returned function removes it. */
  add(rule: Rule): () => void {
    const entry = { rule, seen: 0 };
    this.#rules.add(entry);
    return () => void this.#rules.delete(entry);
  }

  /** Called with every call as it arrives, until the returned function is called. */
  onCall(listener: (call: SeenCall) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The fault for this call. */
  meet(call: SeenCall): Fault | undefined {
    this.calls.push(call);
    for (const listener of this.#listeners) listener(call);
    const about = ({ method }: Rule): boolean => method === undefined || [method].flat().includes(call.method);
    const matching = [...this.#rules].filter(({ rule }) => about(rule));
    for (const each of matching) each.seen++;
    return matching.find(({ rule, seen }) => rule.nth === undefined || rule.nth === seen)?.rule.fault;
  }
}

export interface GrpcProxy {
  readonly endpoint: string;
  readonly calls: readonly SeenCall[];
  /** Connections that are open now. */
  readonly connections: number;
  /** Adds a fault; the returned function removes it. */
  add(rule: Rule): () => void;
  close(): Promise<void>;
}

export interface ProxyOptions {
  /** `http://address:port` or `https://…` of the real etcd. */
  readonly target: string;
  readonly host?: string;
  readonly port?: number;
  /** TLS options for the next connection to the real etcd. */
  readonly upstream?: () => http2.SecureClientSessionOptions;
  /** With a certificate, the proxy itself serves TLS. */
  readonly tls?: http2.SecureServerOptions;
  /** Its own unless it shares them. */
  readonly rules?: Rulebook;
}

const WIDE = { settings: { initialWindowSize: 4 * 1024 ** 2 } };
const UNAVAILABLE = 14;
/** Headers of one connection, which are not forwarded. */
const OWN = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade', ':authority', ':scheme'];

export async function startGrpcProxy(options: ProxyOptions): Promise<GrpcProxy> {
  const { tls, rules = new Rulebook() } = options;
  const server = tls ? http2.createSecureServer({ ...WIDE, ...tls }) : http2.createServer(WIDE);
  const sessions = new Set<http2.ServerHttp2Session>();
  const upstream = keepUpstream(options);
  server.on('session', (session) => {
    sessions.add(session);
    rules.opened++;
    session.on('close', () => sessions.delete(session)).on('error', () => {});
  });
  server.on('sessionError', () => {});
  server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    stream.on('error', () => {}); // callers disconnect: that is what this proxy tests
    const method = (headers[':path'] ?? '').replace(/^\/etcdserverpb\./, '');
    const over = new Promise<void>((resolve) => stream.once('close', resolve));
    const call: SeenCall = { method, headers, open: true, over };
    void over.then(() => {
      call.open = false;
    });
    void serve(stream, headers, upstream.session, rules.meet(call));
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve));
  const { address, port } = server.address() as AddressInfo;
  return {
    endpoint: `${tls ? 'https' : 'http'}://${address}:${port}`,
    calls: rules.calls,
    get connections() {
      return sessions.size;
    },
    add: (rule) => rules.add(rule),
    close: async () => {
      for (const session of sessions) session.destroy();
      upstream.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** One session to the real etcd, opened on demand and again after it was lost. */
function keepUpstream({ target, upstream }: ProxyOptions): {
  readonly session: () => http2.ClientHttp2Session;
  readonly close: () => void;
} {
  let current: http2.ClientHttp2Session | undefined;
  return {
    session: () => {
      if (current && !current.closed && !current.destroyed) return current;
      const opened = http2.connect(target, { ...WIDE, ...upstream?.() });
      opened.on('error', () => {});
      opened.once('connect', () => opened.setLocalWindowSize(4 * 1024 ** 2));
      current = opened;
      return opened;
    },
    close: () => current?.destroy(),
  };
}

async function serve(
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  upstream: () => http2.ClientHttp2Session,
  fault: Fault | undefined,
): Promise<void> {
  switch (fault?.do) {
    case undefined:
      return forward(stream, headers, upstream());
    case 'delay':
      await new Promise((resolve) => setTimeout(resolve, fault.ms));
      return forward(stream, headers, upstream());
    case 'hang':
      return void stream.resume();
    case 'cut':
      return stream.session?.destroy();
    case 'answer':
      return answer(stream, fault.code, fault.message);
    case 'before':
      await fault.crash();
      return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    case 'after':
    case 'swallow':
      await carryOut(stream, headers, upstream());
      if (fault.do === 'swallow') return;
      await fault.crash();
      return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  }
}

/** An error response of the proxy, as gRPC sends it: in the headers, without a message. */
function answer(stream: http2.ServerHttp2Stream, code: number, message: string): void {
  if (stream.destroyed || stream.headersSent) return;
  const status = { 'grpc-status': String(code), 'grpc-message': encodeURIComponent(message) };
  stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true });
}

function request(
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  session: http2.ClientHttp2Session,
): http2.ClientHttp2Stream {
  const passed = Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN.includes(name)));
  const made = session.request(passed);
  made.on('error', () => {});
  stream.pipe(made);
  return made;
}

function forward(
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  session: http2.ClientHttp2Session,
): void {
  const made = request(stream, headers, session);
  let trailers: http2.OutgoingHttpHeaders = {};
  made.on('response', (answered, flags) => {
    if (stream.destroyed) return;
    const endStream = (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    stream.respond(answered, endStream ? { endStream } : { waitForTrailers: true });
    if (!endStream) made.pipe(stream);
  });
  made.on('trailers', (received) => {
    trailers = received;
  });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.on('close', () => made.close(http2.constants.NGHTTP2_CANCEL));
  made.on('close', () => {
    if (stream.destroyed) return;
    if (!stream.headersSent) answer(stream, UNAVAILABLE, 'the proxy lost the connection to etcd');
    else if (made.rstCode !== 0) stream.close(made.rstCode);
  });
}

/** Resolves when etcd has responded, or cannot any more. Nothing of the response is forwarded. */
async function carryOut(
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  session: http2.ClientHttp2Session,
): Promise<void> {
  const made = request(stream, headers, session);
  made.resume();
  await new Promise((resolve) => made.once('close', resolve));
}
