/** gRPC to one member: a kept connection, checked for a dead peer, and wide enough for bulk data. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { Transport } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { failure } from './errors.ts';
import { Link, type Timing } from './link.ts';
import { unary } from './unary.ts';

/**
 * More than any response about members, alarms or users; a hostile member must not fill our memory with a million of
 * them.
 */
const CONTROL_BYTES = 256 * 1024;
/** Of one message with keys or a chunk of a snapshot. */
const BULK_BYTES = 8 * 1024 * 1024;
const WINDOW_BYTES = 4 * 1024 * 1024;

/** The client certificate and the CA bundle. */
export interface TlsMaterial {
  /** The CA bundle, in PEM. */
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name that the member's certificate must carry, when it is dialled by its address. */
  readonly serverName?: string;
}

export interface Target {
  /** `http://address:port` or `https://address:port` of one member. */
  readonly endpoint: string;
  readonly tls?: TlsMaterial | undefined;
}

export const TIMING: Timing = { pingIntervalMs: 10_000, pingTimeoutMs: 5_000, idleMs: 15 * 60_000 };

/** Unary calls. */
export interface Asking {
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number,
    headers: Headers | undefined,
    request: MessageInitShape<I>,
    /** Of connect's own transports. */
    context?: undefined,
    /** Asked when the connection is there and the request leaves. */
    mayLeave?: () => boolean,
  ): Promise<{ readonly message: MessageShape<O> }>;
}

export interface Session {
  /** For calls with small responses. */
  readonly control: Asking;
  /** For keys, watches and snapshots. */
  readonly bulk: Asking & Pick<Transport, 'stream'>;
  readonly state: () => 'closed' | 'connecting' | 'open';
  readonly close: () => void;
}

export type OpenSession = (target: Target) => Session;

export function openSession(target: Target, timing: Timing = TIMING): Session {
  const { endpoint } = target;
  const settings = { initialWindowSize: WINDOW_BYTES, enablePush: false };
  const link = new Link(endpoint, { settings, ...tlsOptions(target) }, timing);
  const asking = (maxBytes: number): Asking => ({
    unary: (method, signal, timeoutMs, headers, request, _context, mayLeave) =>
      unary(link, method, signal, timeoutMs, headers, request, { maxBytes, mayLeave }),
  });
  let streams: Transport | undefined; // few sessions ever need one
  // Compressed responses are not accepted: a small one could unpack to more than the limit.
  const streaming = (): Transport =>
    (streams ??= createGrpcTransport({
      baseUrl: endpoint,
      sessionManager: link,
      acceptCompression: [],
      readMaxBytes: BULK_BYTES,
    }));
  return {
    control: asking(CONTROL_BYTES),
    bulk: { ...asking(BULK_BYTES), stream: (...call) => streaming().stream(...call) },
    state: () => link.state(),
    close: () => link.close(),
  };
}

/** Plain HTTP where TLS is expected, or the other way round, is an error and never a fallback. */
export function tlsOptions({ endpoint, tls }: Target): object {
  const secure = endpoint.startsWith('https://');
  if (secure && !tls) throw failure('tls', `${endpoint} uses TLS, and no CA bundle was given`);
  if (!secure && tls) throw failure('tls', `${endpoint} is plain HTTP, and this cluster requires TLS`);
  if (!tls) return {};
  const { ca, cert, key, serverName } = tls;
  return {
    ca,
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(serverName !== undefined && { servername: serverName }),
    rejectUnauthorized: true,
    allowPartialTrustChain: true, // as etcd does: a trusted CA may be an intermediate
    minVersion: 'TLSv1.2',
  };
}
