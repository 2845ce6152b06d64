/** gRPC to one member: an HTTP/2 session that is kept, noticed when dead, and wide enough for bulk data. */
import { Code, ConnectError, type Transport } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { failure } from './errors.ts';

const WINDOW_BYTES = 4 * 1024 * 1024;
/** More than any answer about members, alarms or users; a hostile member must not fill our memory with a million of them. */
const CONTROL_BYTES = 256 * 1024;
/** Of one message with keys or a piece of a snapshot. */
const BULK_BYTES = 8 * 1024 * 1024;

/** Who we are and whom we trust. */
export interface TlsMaterial {
  /** Certificates, in PEM, of the authorities that we trust. */
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

export interface Timing {
  /** A stream on which nothing came for this long is checked with a ping. etcd refuses pings more often than every 5 s. */
  readonly pingIntervalMs: number;
  /** The answer to a ping must come within this time, or the session and all on it have failed. */
  readonly pingTimeoutMs: number;
  /** A session without calls is closed after this. */
  readonly idleMs: number;
}

export const TIMING: Timing = { pingIntervalMs: 10_000, pingTimeoutMs: 5_000, idleMs: 15 * 60_000 };

export interface Session {
  /** For questions with small answers. */
  readonly control: Transport;
  /** For keys, watches and snapshots. */
  readonly bulk: Transport;
  readonly state: () => 'closed' | 'connecting' | 'open';
  readonly close: () => void;
}

export type OpenSession = (target: Target) => Session;

/** Without a wide connection window a stream over 2 ms of round trip carries 11 MiB/s; with it, 189. */
class WideSessionManager extends Http2SessionManager {
  readonly #widened = new WeakSet<object>();

  override async request(
    ...args: Parameters<Http2SessionManager['request']>
  ): ReturnType<Http2SessionManager['request']> {
    const stream = await super.request(...args);
    const { session } = stream;
    if (session && !this.#widened.has(session)) {
      this.#widened.add(session);
      session.setLocalWindowSize(WINDOW_BYTES); // the window of a stream alone changes nothing
      // A member that stops says GOAWAY, and the manager destroys the idle session with an error that it may no longer
      // listen for: without this, a stopping etcd ends the operator (connectrpc/connect-es#1768).
      session.on('error', () => {});
    }
    return stream;
  }
}

const STATES = { closed: 'closed', error: 'closed', connecting: 'connecting' } as const;

export function openSession(target: Target, timing: Timing = TIMING): Session {
  const { endpoint } = target;
  const manager = new WideSessionManager(
    endpoint,
    {
      idleConnectionTimeoutMs: timing.idleMs,
      pingIntervalMs: timing.pingIntervalMs,
      pingTimeoutMs: timing.pingTimeoutMs,
    },
    { settings: { initialWindowSize: WINDOW_BYTES, enablePush: false }, ...tlsOptions(target) },
  );
  // Compressed answers are not asked for: a small one could unpack to more than the limit.
  const common = { baseUrl: endpoint, sessionManager: manager, acceptCompression: [] };
  return {
    control: createGrpcTransport({ ...common, readMaxBytes: CONTROL_BYTES }),
    bulk: createGrpcTransport({ ...common, readMaxBytes: BULK_BYTES }),
    state: () => {
      const state = manager.state();
      return state in STATES ? STATES[state as keyof typeof STATES] : 'open';
    },
    close: () => manager.abort(new ConnectError('the session was closed', Code.Aborted)),
  };
}

/** Plain where TLS was meant, or the other way round, is an error and never a fall-back. */
function tlsOptions({ endpoint, tls }: Target): object {
  const secure = endpoint.startsWith('https://');
  if (secure && !tls) throw failure('tls', `${endpoint} wants TLS, and no authority to trust was given`);
  if (!secure && tls) throw failure('tls', `${endpoint} is plain HTTP, and this cluster is reached with TLS only`);
  if (!tls) return {};
  const { ca, cert, key, serverName } = tls;
  return {
    ca,
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(serverName !== undefined && { servername: serverName }),
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
  };
}
