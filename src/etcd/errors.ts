/** How a call to etcd can fail, as a closed set: callers branch on `kind` and report `message`. */
import { Code, ConnectError } from '@connectrpc/connect';
import { shown } from '../lib/printable.ts';

export type EtcdErrorKind =
  // The connection to the member.
  /** No connection could be made: the call was never sent. */
  | 'unreachable'
  /** The connection broke during the call: whether it was carried out is unknown. */
  | 'disconnected'
  /** No response within the call's time limit: whether it was carried out is unknown. */
  | 'timeout'
  /** The caller aborted. */
  | 'canceled'
  /** The member's certificate is not trusted, ours is refused, or one side uses TLS and the other does not. */
  | 'tls'
  // The member and its cluster.
  /** The member is a learner, which serves only a few calls. Another member can be called. */
  | 'learnerRefused'
  | 'noLeader'
  /** Only the leader serves this call. */
  | 'notLeader'
  /** Peers have not been connected for long enough to change the membership now. */
  | 'unhealthyCluster'
  /** The member is starting, stopping or overloaded. */
  | 'busy'
  /** The database has reached its quota. */
  | 'noSpace'
  | 'corrupt'
  // Membership.
  | 'notFound'
  | 'alreadyExists'
  | 'peerURLExists'
  | 'badPeerURL'
  | 'notLearner'
  | 'learnerNotReady'
  | 'tooManyLearners'
  /** The change would leave fewer started members than a quorum. */
  | 'notEnoughStarted'
  // Keys.
  | 'compacted'
  | 'futureRevision'
  | 'tooLarge'
  // Authentication.
  /** The call carried no user, and auth is enabled. */
  | 'authRequired'
  | 'authFailed'
  /** The token is unknown or has expired: authenticate again. */
  | 'invalidToken'
  | 'permissionDenied'
  /**
   * No such user. Without a token, etcd takes the common name of the client certificate as the user, which may not
   * exist.
   */
  | 'userUnknown'
  | 'authNotEnabled'
  | 'rootMissing'
  // Downgrade.
  | 'badDowngradeVersion'
  | 'downgradeInProgress'
  | 'noDowngrade'
  // Responses that are not to be trusted.
  /** This version of etcd does not have the call. */
  | 'unsupported'
  | 'badAnswer'
  /** The response is from another cluster than the expected one. */
  | 'wrongCluster'
  /** The bytes of a snapshot do not match the digest that etcd sent. */
  | 'badDigest'
  | 'other';

export interface EtcdError {
  readonly kind: EtcdErrorKind;
  readonly message: string;
  /** Milliseconds since 1970: no call to this member has succeeded since then. Only clients with backoff know it. */
  readonly since?: number;
}

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: EtcdError };

/** Streams throw this when they fail. */
export class EtcdFailure extends Error {
  readonly error: EtcdError;
  constructor(error: EtcdError, options?: ErrorOptions) {
    super(error.message, options);
    this.name = 'EtcdFailure';
    this.error = error;
  }
}

export const failure = (kind: EtcdErrorKind, message: string): EtcdFailure => new EtcdFailure({ kind, message });

/** After these, a change may have been made although the call failed: read the state before repeating it. */
const UNCERTAIN: readonly EtcdErrorKind[] = ['disconnected', 'timeout', 'canceled', 'noLeader', 'noSpace', 'busy'];
export const mayHaveHappened = ({ kind }: EtcdError): boolean => UNCERTAIN.includes(kind);

/**
 * etcd reports most errors by message only; these are the messages of 3.5, 3.6 and 3.7. The first that matches wins.
 */
const MESSAGES: readonly (readonly [RegExp, EtcdErrorKind])[] = [
  [/rpc not supported for learner/, 'learnerRefused'],
  [/server stopped|too many requests|too many concurrent requests|cluster version not found|not capable/, 'busy'],
  [/no leader|leader changed|previous leader failure/, 'noLeader'],
  [/not leader/, 'notLeader'],
  [/request timed out|context deadline exceeded|timeout waiting/, 'timeout'],
  [/unhealthy cluster/, 'unhealthyCluster'],
  [/database space exceeded/, 'noSpace'],
  [/corrupt cluster/, 'corrupt'],
  [/Peer URLs already exists/, 'peerURLExists'],
  [/given member URLs are invalid/, 'badPeerURL'],
  [/too many learner members/, 'tooManyLearners'],
  [/in sync with leader/, 'learnerNotReady'],
  [/can only promote a learner member/, 'notLearner'],
  [/not enough started members/, 'notEnoughStarted'],
  [/bad leader transferee/, 'notFound'],
  [/has been compacted/, 'compacted'],
  [/is a future revision/, 'futureRevision'],
  [/request is too large|too many operations/, 'tooLarge'],
  [/root user does not/, 'rootMissing'],
  [/user name is empty/, 'authRequired'],
  [/authentication failed/, 'authFailed'],
  [/invalid auth token|revision of auth store is old/, 'invalidToken'],
  [/permission denied/, 'permissionDenied'],
  [/authentication is not enabled/, 'authNotEnabled'],
  [/user (name )?not found/, 'userUnknown'],
  [/downgrade target version/, 'badDowngradeVersion'],
  [/downgrade job in progress/, 'downgradeInProgress'],
  [/no inflight downgrade/, 'noDowngrade'],
  [/cluster ID mismatch/, 'wrongCluster'],
  [/not found/, 'notFound'],
  [/already exist/, 'alreadyExists'],
];

const NOT_CONNECTED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EHOSTDOWN|ETIMEDOUT)$/;
const CUT = /^(ECONN|EPIPE$|ENET|ERR_STREAM_|ERR_HTTP2_)/;
const TLS = /^(ERR_SSL_|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$|ERR_OSSL_|HOSTNAME_MISMATCH)/;

/** By gRPC code, for errors without a known message. */
const BY_CODE: Partial<Record<Code, EtcdErrorKind>> = {
  [Code.DeadlineExceeded]: 'timeout',
  [Code.Canceled]: 'canceled',
  [Code.Unimplemented]: 'unsupported',
  [Code.Unavailable]: 'disconnected',
  [Code.Aborted]: 'disconnected',
  [Code.Internal]: 'badAnswer', // bytes that are no message; broken connections were classified before
  [Code.ResourceExhausted]: 'badAnswer',
  [Code.NotFound]: 'notFound',
  [Code.PermissionDenied]: 'permissionDenied',
  [Code.DataLoss]: 'corrupt',
};

/** A member may send 64 KiB of anything as the message of an error, and the API server refuses a status that is too long. */
const MAX_MESSAGE = 500;

export function classify(error: unknown): EtcdError {
  if (error instanceof EtcdFailure) return error.error;
  const known = ConnectError.from(error);
  const message = shown(known.rawMessage, MAX_MESSAGE);
  return { kind: kindOf(known, message, codesOf(error)), message };
}

function kindOf(known: ConnectError, message: string, codes: readonly string[]): EtcdErrorKind {
  if (codes.some((code) => TLS.test(code)) || /tlsv?1? alert|ERR_TLS|altname/i.test(message)) return 'tls';
  if (codes.some((code) => NOT_CONNECTED.test(code)) || /ECONNREFUSED|ENOTFOUND/.test(message)) return 'unreachable';
  const reset = message.startsWith('http/2 ') && known.code !== Code.Canceled;
  if (reset || codes.some((code) => CUT.test(code))) return 'disconnected';
  if (message.startsWith('grpc: received message larger than max')) return 'tooLarge'; // the request, not the response
  const byMessage =
    message.startsWith('etcdserver:') || known.code === Code.Unknown ? kindByMessage(message) : undefined;
  if (byMessage) return byMessage;
  if (message.startsWith('protocol error') || /message size|invalid (envelope|wire)|missing EndStream/i.test(message))
    return 'badAnswer';
  return BY_CODE[known.code] ?? 'other';
}

const kindByMessage = (message: string): EtcdErrorKind | undefined =>
  MESSAGES.find(([pattern]) => pattern.test(message))?.[1];

/** Node reports the cause by a code somewhere in the chain of causes. */
function codesOf(error: unknown): readonly string[] {
  const codes: string[] = [];
  let current: unknown = error;
  for (let depth = 0; current instanceof Error && depth < 8; depth++) {
    if ('code' in current && typeof current.code === 'string') codes.push(current.code);
    current = current.cause;
  }
  return codes;
}
